"""Files of a checkpoint or a sink, on local disk or any file system that `pyarrow.fs` knows by its URL.

Nothing relies on atomic rename: a record counts only when it is whole, which its checksum tells. On local disks a
record is nevertheless written to a temporary name, flushed to the disk and renamed, and the rename flushed too, so that
power loss cannot leave half of one behind, nor take one back. Files of rows are written first and waited for together,
by `sync`. Object stores keep what they have confirmed: there is nothing to wait for.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
from pyarrow import fs

from penstock.checkpoint.disk import disk, make_folder, settle_folder, sync_all, sync_names
from penstock.checkpoint.fault import reach
from penstock.errors import CheckpointError, UserError, encodable, shortly


def split_url(url: str) -> tuple[fs.FileSystem, str]:
    """The file system of a path or URL, and the path within it."""
    text = folder_text(url, "'out', or a URL such as s3://bucket/folder")
    if "://" in text:
        try:
            filesystem, path = fs.FileSystem.from_uri(text)
        except (pa.ArrowInvalid, OSError, ValueError) as error:
            raise UserError(
                f"cannot open '{text}': {error}", hint="use a path or a URL such as s3://bucket/folder"
            ) from error
        return filesystem, path.rstrip("/")
    return fs.LocalFileSystem(), str(Path(text).expanduser().absolute())


def folder_text(path: object, example: str) -> str:
    """A path or URL from a user, as text that can be a name.

    >>> folder_text(None, "ps.parquet('out')")
    Traceback (most recent call last):
    penstock.errors.UserError: None is not a path. Hint: write the name of a folder: ps.parquet('out')
    """
    said = f"write the name of a folder: {example}"
    if not isinstance(path, str | os.PathLike):
        raise UserError(f"{path!r} is not a path", hint=said)
    text = os.fspath(path)
    if not isinstance(text, str):
        raise UserError(f"{path!r} is a path of bytes", hint=said)
    if not text.strip():
        raise UserError("the path is empty", hint=said)
    if "\0" in text or not encodable(text):
        raise UserError(f"the path {text!r} has characters that cannot be written", hint=said)
    if "://" not in text and any(len(part.encode()) > 255 for part in text.split("/")):
        raise UserError(f"the path {shortly(text)} has a name that is too long", hint="names may have 255 bytes")
    return text


def below(url: str, name: str) -> str:
    """The address of something in a folder. Connection options of a URL stay at its end.

    >>> below("out", "a"), below("s3://bucket/out?region=eu-west-1", "a/b")
    ('out/a', 's3://bucket/out/a/b?region=eu-west-1')
    """
    plain, mark, options = url.partition("?") if "://" in url else (url, "", "")
    return f"{plain.rstrip('/')}/{name}{mark}{options}"


@dataclass(frozen=True)
class Storage:
    """A folder and what is in it. Names are relative, with forward slashes.

    One that is not `durable` never waits for the disk: what it holds survives the end of a process, not of the power.

    >>> import tempfile
    >>> s = Storage.at(tempfile.mkdtemp())
    >>> s.write("a/b.txt", b"x"); s.read("a/b.txt"), s.names("a")
    (b'x', ['b.txt'])
    """

    url: str
    filesystem: fs.FileSystem
    base: str
    durable: bool = True

    @classmethod
    def at(cls, url: str, durable: bool = True) -> Storage:
        filesystem, base = split_url(url)
        # Tasks may run in other folders than the driver: from here on every path is absolute.
        return cls(os.fspath(url) if "://" in os.fspath(url) else base, filesystem, base, durable)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Storage.at, (self.url, self.durable))

    @property
    def local(self) -> bool:
        return isinstance(self.filesystem, fs.LocalFileSystem)

    def path(self, name: str) -> str:
        return f"{self.base}/{name}" if name else self.base

    def within(self, name: str) -> Storage:
        return Storage(below(self.url, name), self.filesystem, self.path(name), self.durable)

    def spark_path(self, name: str) -> str:
        """The same for Spark, where a bare path means the cluster's default file system and options have no place."""
        return f"file://{self.path(name)}" if self.local else below(self.url, name).partition("?")[0]

    def make(self, name: str = "") -> None:
        if self.local:
            make_folder(self.path(name))
        else:
            self.filesystem.create_dir(self.path(name), recursive=True)

    def exists(self, name: str) -> bool:
        return bool(self.filesystem.get_file_info(self.path(name)).type != fs.FileType.NotFound)

    def size(self, name: str) -> int:
        return self.size_of(name) or 0

    def size_of(self, name: str) -> int | None:
        """How large a file is, None if there is none."""
        info = self.filesystem.get_file_info(self.path(name))
        return int(info.size) if info.type == fs.FileType.File else None

    def read(self, name: str) -> bytes:
        try:
            with self.filesystem.open_input_stream(self.path(name)) as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            raise
        except OSError as error:
            raise CheckpointError(f"cannot read {self.path(name)}: {error}", hint="check what is there") from error

    def write(self, name: str, data: bytes, *, sync: bool = True) -> None:
        """Write whole or not at all, as far as the file system can."""
        reach(f"write {name}")
        with self._telling(name):
            if self.local:
                self._write_local(name, data, sync and self.durable)
            else:
                self._write_remote(name, data)
        reach(f"written {name}")

    @contextmanager
    def _telling(self, name: str = "") -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CheckpointError(
                f"cannot write {self.path(name)}: {error}",
                hint="free space or fix access there, then start again: nothing is lost",
            ) from error

    def _write_remote(self, name: str, data: bytes) -> None:
        path = self.path(name)
        try:
            stream = self.filesystem.open_output_stream(path)
        except FileNotFoundError:  # Object stores need no folders; others do.
            self.filesystem.create_dir(path.rpartition("/")[0], recursive=True)
            stream = self.filesystem.open_output_stream(path)
        with stream:
            stream.write(data)

    def _write_local(self, name: str, data: bytes, sync: bool) -> None:
        # Plain strings: this is done several times in each epoch.
        folder, _, base = self.path(name).rpartition("/")
        partial = f"{folder}/.{base}.{os.getpid()}.partial"
        with self._create_local(partial) as file:
            file.write(data)
            file.flush()
            reach(f"flush {name}")
        if sync:
            disk().sync(partial)
        reach(f"rename {name}")
        disk().replace(partial, f"{folder}/{base}")
        if sync:
            reach(f"renamed {name}")
            sync_names(folder)

    def create(self, name: str) -> IO[bytes] | pa.NativeFile:
        """A new file to write to, under its own name: for what no record names yet."""
        if self.local:
            return self._create_local(self.path(name))
        return self.filesystem.open_output_stream(self.path(name))

    @staticmethod
    def _create_local(path: str) -> IO[bytes]:
        try:
            return disk().create(path)
        except FileNotFoundError:
            make_folder(os.path.dirname(path))
            return disk().create(path)

    def sync(self, names: Iterable[str]) -> None:
        """Wait until files are on the disk, with their names."""
        if self.local and self.durable:
            files = list(names)
            with self._telling(files[0] if len(files) == 1 else ""):
                sync_all(self.path(n) for n in files)

    def sync_folder(self, name: str = "") -> None:
        """Wait until renames into a folder, and removals from it, are on the disk."""
        if self.local and self.durable:
            with self._telling():
                sync_names(self.path(name))

    def settle(self, name: str) -> None:
        """Wait until a folder itself is on the disk, with those above it; each time but the first costs nothing."""
        if self.local and self.durable:
            with self._telling():
                settle_folder(self.path(name))

    def delete(self, name: str) -> None:
        """Delete a file; it is fine if it is gone already."""
        try:
            if self.local:
                disk().delete(self.path(name))
            else:
                self.filesystem.delete_file(self.path(name))
        except FileNotFoundError:
            return
        except OSError as error:
            if self.exists(name):
                raise CheckpointError(
                    f"cannot delete {self.path(name)}: {error}",
                    hint="move away what is there, or fix access to it, then start again: nothing is lost",
                ) from error

    def move(self, name: str, target: str) -> None:
        if self.local:
            disk().replace(self.path(name), self.path(target))
        else:
            self.filesystem.move(self.path(name), self.path(target))

    def names(self, folder: str = "") -> list[str]:
        """The files directly in a folder, sorted; none if there is no such folder."""
        return sorted(i.base_name for i in self._infos(folder) if i.type == fs.FileType.File)

    def oldest_first(self, folder: str) -> list[str]:
        """The files directly in a folder in the order in which they were written."""
        files = sorted((i.mtime_ns or 0, i.base_name) for i in self._infos(folder) if i.type == fs.FileType.File)
        return [name for _, name in files]

    def tree(self, folder: str = "") -> list[str]:
        """All files below a folder, as names relative to this storage. Symbolic links to folders are not followed."""
        cut = len(self.base) + 1
        if self.local:
            found = [f"{at}/{name}"[cut:] for at, _, names in os.walk(self.path(folder)) for name in names]
        else:
            found = [i.path[cut:] for i in self._infos(folder, recursive=True) if i.type == fs.FileType.File]
        return sorted(found)

    def _infos(self, folder: str, *, recursive: bool = False) -> list[fs.FileInfo]:
        selector = fs.FileSelector(self.path(folder), recursive=recursive, allow_not_found=True)
        try:
            found: list[fs.FileInfo] = self.filesystem.get_file_info(selector)
        except OSError as error:
            raise CheckpointError(
                f"cannot list the folder {self.path(folder)}: {error}",
                hint="move away what is there instead of a folder, or fix access to it",
            ) from error
        return found


def seal(body: dict[str, Any]) -> bytes:
    """A record with its checksum."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f'{{"sha256":"{digest}","body":{text}}}\n'.encode()


def unseal(data: bytes, name: str) -> dict[str, Any]:
    """The record, if it is whole.

    >>> unseal(seal({"epoch": 1}), "x")
    {'epoch': 1}
    """
    try:
        record = json.loads(data)
        text = json.dumps(record["body"], sort_keys=True, separators=(",", ":"))
        whole = hashlib.sha256(text.encode()).hexdigest() == record["sha256"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{name} is not a whole record") from error
    if not whole:
        raise CheckpointError(f"{name} does not match its checksum")
    body = record["body"]
    if not isinstance(body, dict):
        raise CheckpointError(f"{name} is a whole record, but not one of ours")
    return body
