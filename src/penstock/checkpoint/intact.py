"""Files that are known by size and checksum: whatever happens to one is found out before it is used.

The checksum is CRC-32. It is made for accidents, finds every damage of up to 32 bits in a row and misses one in four
thousand million others; `zlib` computes some gigabytes of it in a second, while the file is written.
"""

from __future__ import annotations

import os
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

import pyarrow as pa

from penstock.checkpoint.storage import Storage
from penstock.errors import CheckpointError

#: Files that a process remembers to have found whole.
REMEMBERED = 4096
#: So much of a file is looked at in one go.
_STRETCH = 1 << 24


class DamagedError(CheckpointError):
    """A file that a record names is not what was written. `name` says which, as the record does."""

    def __init__(self, message: str, *, name: str = "", hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return _damaged, (self.message, self.name, self.hint)


def _damaged(message: str, name: str, hint: str | None) -> DamagedError:
    return DamagedError(message, name=name, hint=hint)


@dataclass(frozen=True)
class Written:
    """A file as it was written."""

    name: str
    bytes: int
    crc: int


class SummedStream:
    """A stream to write to that counts and sums up what goes through."""

    def __init__(self, stream: IO[bytes] | pa.NativeFile) -> None:
        self._write = stream.write
        self.bytes = 0
        self.crc = 0
        self.closed = False

    def write(self, data: Any) -> int:
        self._write(data)
        self.crc = zlib.crc32(data, self.crc)
        size = len(data)
        self.bytes += size
        return size

    def flush(self) -> None:
        """Nothing: the stream behind is closed by who opened it."""


@contextmanager
def writing(storage: Storage, name: str) -> Iterator[SummedStream]:
    """A new file to write to; the tally tells afterwards what it has become.

    >>> import tempfile
    >>> s = Storage.at(tempfile.mkdtemp())
    >>> with writing(s, "a/b") as tally:
    ...     _ = tally.write(b"some")
    >>> tally.bytes, tally.crc == zlib.crc32(b"some"), s.read("a/b")
    (4, True, b'some')
    """
    with storage.create(name) as stream:
        tally = SummedStream(stream)
        yield tally
    if storage.local:
        # What this process has just written it need not look at again.
        path = storage.path(name)
        _remember(_key(path, os.stat(path), tally.crc))


# --- looking at them ------------------------------------------------------------------------------------------------

_Key = tuple[str, int, int, int, int]
_whole: OrderedDict[_Key, None] = OrderedDict()
_lock = threading.Lock()


def _key(path: str, status: os.stat_result, crc: int) -> _Key:
    return path, status.st_ino, status.st_mtime_ns, status.st_size, crc


def _remember(key: _Key) -> None:
    with _lock:
        _whole[key] = None
        while len(_whole) > REMEMBERED:
            _whole.popitem(last=False)


def open_whole(storage: Storage, file: Written) -> pa.NativeFile:
    """The file, open for reading, if it is what was written.

    On local disks it is mapped, and looked at as a whole once per process, unless that has written it: as long as
    neither its inode nor its time of change are others, it is the file that was found whole.
    """
    path = storage.path(file.name)
    if not storage.local:
        return pa.BufferReader(read_whole(storage, file))
    status = os.stat(path)
    key = _key(path, status, file.crc)
    with _lock:
        known = key in _whole
        if known:
            _whole.move_to_end(key)
    if not known and status.st_size != file.bytes:
        raise DamagedError(f"{status.st_size:,} bytes instead of {file.bytes:,}", name=file.name)
    source = pa.memory_map(path)
    if not known:
        _compare(file, source.size(), lambda: _sum(source))
        source.seek(0)
        _remember(key)
    return source


def read_whole(storage: Storage, file: Written) -> pa.Buffer:
    """The contents of a file, in memory, if they are what was written."""
    with storage.filesystem.open_input_stream(storage.path(file.name)) as stream:
        data = stream.read_buffer()
    _compare(file, data.size, lambda: zlib.crc32(data))
    return data


def _sum(source: pa.NativeFile) -> int:
    crc = 0
    while (stretch := source.read_buffer(_STRETCH)).size:
        crc = zlib.crc32(stretch, crc)
    return crc


def _compare(file: Written, size: int, crc: Any) -> None:
    if size != file.bytes:
        raise DamagedError(f"{size:,} bytes instead of {file.bytes:,}", name=file.name)
    if crc() != file.crc:
        raise DamagedError("its contents do not match their checksum", name=file.name)


def damage(storage: Storage, file: Written, *, deep: bool = True) -> str | None:
    """What is wrong with a file, None if it is whole. Without `deep`, its size is taken for its contents."""
    try:
        if deep:
            open_whole(storage, file).close()
        elif (size := storage.size_of(file.name)) != file.bytes:
            return "it is gone" if size is None else f"{size:,} bytes instead of {file.bytes:,}"
    except FileNotFoundError:
        return "it is gone"
    except (OSError, pa.ArrowInvalid) as error:
        return str(error)
    except DamagedError as error:
        return error.message
    return None
