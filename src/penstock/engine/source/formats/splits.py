"""Cutting one file into units that can be read alone: row groups of Parquet, runs of whole lines of text.

Neighbouring units become one split, as many as there are tasks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.engine.source.folder import FoundFile
from penstock.engine.source.formats.footer import Footer, read_footer
from penstock.engine.source.formats.lasting import as_written
from penstock.engine.source.place import first_line, locate
from penstock.engine.source.split import Split
from penstock.engine.source.stretch import Stretch, gaps
from penstock.errors import SourceError
from penstock.operators.source.operator import Source

_PROBE = 1 << 16
_MAGIC = b"PAR1"
#: How compressed files begin.
_COMPRESSED = {"gzip": b"\x1f\x8b", "Zstandard": b"\x28\xb5\x2f\xfd", "xz": b"\xfd7zXZ\0", "bzip2": b"BZh"}


@dataclass(frozen=True)
class ReadingUnit:
    """The smallest part of a file that a split may consist of. What is `spared` is passed over without being read."""

    start: int
    stop: int
    rows: int | None
    bytes: int
    group: int | None
    low: int | None
    high: int | None
    spared: bool = False
    unreadable: str = ""


@dataclass
class Budget:
    """What an epoch may still take. The first unit is always allowed, else nothing would ever move.

    `steady`: what is spared counts as if it were read.
    """

    rows: int | None
    bytes: int | None
    parallelism: int
    steady: bool = False
    taken: int = 0

    @property
    def is_limited(self) -> bool:
        return self.rows is not None or self.bytes is not None

    def take(self, unit: ReadingUnit, estimated_rows: int) -> bool:
        rows = unit.rows if unit.rows is not None else estimated_rows
        over = (self.rows is not None and rows > self.rows) or (self.bytes is not None and unit.bytes > self.bytes)
        if over and self.taken:
            return False
        self.taken += 1
        if self.rows is not None:
            self.rows = max(0, self.rows - rows)
        if self.bytes is not None:
            self.bytes = max(0, self.bytes - unit.bytes)
        return True

    def is_spent(self) -> bool:
        return bool(self.taken) and (self.rows == 0 or self.bytes == 0)


class NotReady(Exception):  # noqa: N818 (not an error: the file is looked at again later)
    """The file is not whole yet, or cannot be read for another reason."""


class Vanished(Exception):  # noqa: N818 (there is nothing to wait for)
    """The file was listed and is gone."""


@contextmanager
def _opened(file: FoundFile) -> Iterator[Any]:
    """A file to look into; whatever hinders that makes it not ready."""
    place = locate(file.address)
    try:
        with place.filesystem.open_input_file(place.path) as handle:
            yield handle
    except FileNotFoundError:
        raise Vanished from None
    except OSError as error:
        why = f": {os.strerror(error.errno)}" if error.errno else f": {first_line(error)}"
        raise NotReady(f"cannot be opened{why}") from None


def parquet_footer(source: Source, file: FoundFile) -> Footer:
    """The footer of a Parquet file; `NotReady` while it has none."""
    what = f"stream '{source.name}': file '{file.address}'"
    with _opened(file) as handle:
        if file.size >= 4 and handle.read(4) != _MAGIC:
            raise SourceError(f"{what} is not a Parquet file", hint="use read_csv or read_json for text")
        if file.size < 12:
            raise NotReady("no footer yet")
        handle.seek(file.size - 4)
        if handle.read(4) != _MAGIC:
            raise NotReady("no footer yet")
        try:
            return read_footer(pq.read_metadata(handle), as_written(source.schema), source.promises)
        except (pa.ArrowException, OSError) as error:
            raise NotReady(f"footer cannot be read: {first_line(error)}") from None


def parquet_units(
    footer: Footer,
    read: Sequence[Stretch],
    limit_rows: int | None,
    limit_bytes: int | None,
    spared: Callable[[int], bool],
    groups: Collection[int] | None = None,
    steady: bool = False,
) -> Iterator[ReadingUnit]:
    """The row groups, or some of them, as far as they have not been read.

    A row group that exceeds a limit by itself is cut into ranges of rows; one that is spared is so only for a reader
    that is to be steady. The last rows of that count with the ticks of the whole: the maximum behind it is the same,
    though something of it was read before.
    """
    first = 0
    for index, group in enumerate(footer.groups):
        end = first + group.rows
        step = group.rows
        if limit_rows is not None:
            step = min(step, max(1, limit_rows))
        if limit_bytes is not None and group.bytes > limit_bytes:
            step = min(step, max(1, group.rows * limit_bytes // group.bytes))
        for start, last in gaps(read, first, end) if groups is None or index in groups else ():
            passed = spared(index)
            while start < last:
                stop = last if passed and not steady else min(last, start + step)
                known = stop == last if passed else stop - start == group.rows
                size = group.bytes * (stop - start) // group.rows
                low, high = (group.low, group.high) if known else (None, None)
                # A row group that is spared in parts counts once.
                yield ReadingUnit(
                    start, stop, stop - start, size, index if known or not passed else None, low, high, passed
                )
                start = stop
        first = end


@dataclass(frozen=True)
class TextShape:
    """What a look at the first lines of a text file tells."""

    first_byte: int
    bytes_per_row: float


def text_shape(source: Source, file: FoundFile, header: bool) -> TextShape:
    """Where the events begin (after byte order mark and header) and how long a line is on average."""
    with _opened(file) as handle:
        head = handle.read(min(_PROBE, file.size))
        if head[:4] == _MAGIC:
            what = f"stream '{source.name}': file '{file.address}'"
            raise SourceError(f"{what} is a Parquet file", hint="use read_parquet")
        _check_text(source, file, head)
        first = 3 if head.startswith(b"\xef\xbb\xbf") else 0
        if header:
            while b"\n" not in head and len(head) < file.size and (more := handle.read(_PROBE)):
                head += more
            newline = head.find(b"\n", first)
            first = newline + 1 if newline >= 0 else file.size
            if 0 < file.size <= first:
                _check_header_alone(source, head)
    lines = head.count(b"\n", first)
    return TextShape(first, max(1.0, (len(head) - first) / lines) if lines else float(max(1, file.size)))


def _check_text(source: Source, file: FoundFile, head: bytes) -> None:
    for name, magic in _COMPRESSED.items():
        if head.startswith(magic):
            raise SourceError(
                f"stream '{source.name}': file '{file.address}' is compressed ({name})",
                hint="unpack it, as text is read",
            )
    if b"\0" in head:
        raise NotReady("it has zero bytes, as damaged files have, and text that is not in UTF-8")


def _check_header_alone(source: Source, head: bytes) -> None:
    """No row will be read, so nobody else would see that this is no header: a file of anything would have no events."""
    text = head.decode(errors="replace")
    for name in as_written(source.schema).names:
        if name not in text:
            raise NotReady(
                f"it has one line, which is not a header: it does not name '{name}' (without a header: header=False)"
            )


def text_units(file: FoundFile, position: int, step: int | None) -> Iterator[ReadingUnit]:
    """Runs of whole lines from a byte offset on, each of about `step` bytes; one unit if `step` is None."""
    if step is None:
        if position < file.size:
            yield _text_unit(position, file.size)
        return
    with _opened(file) as handle:
        while position < file.size:
            stop = _line_end(handle, min(file.size, position + max(1, step)), file.size)
            yield _text_unit(position, stop)
            position = stop


def _text_unit(start: int, stop: int) -> ReadingUnit:
    return ReadingUnit(start, stop, None, stop - start, None, None, None)


def _line_end(handle: Any, position: int, size: int) -> int:
    """The first position at or after the given one where a line begins, or the end of the file."""
    position -= 1
    while position < size:
        handle.seek(position)
        block = handle.read(min(_PROBE, size - position))
        if not block:
            return size
        found = block.find(b"\n")
        if found >= 0:
            return int(position) + int(found) + 1
        position += len(block)
    return size


def packed_units(
    taken: Sequence[tuple[FoundFile, ReadingUnit]], parallelism: int
) -> list[tuple[FoundFile, list[ReadingUnit]]]:
    """Adjacent units of one file joined, so that every task gets about one split of about the same size."""
    weights = [0 if u.spared or u.unreadable else max(1, u.bytes) for _, u in taken]
    total = sum(weights)
    found: list[tuple[FoundFile, list[ReadingUnit]]] = []
    before, slot_before = 0, -1
    for (file, unit), weight in zip(taken, weights):
        slot = slot_before if not weight else (2 * before + weight) * parallelism // (2 * total)
        before += weight
        if (
            found
            and found[-1][0] is file
            and slot == slot_before
            and unit.group is not None
            and (found[-1][1][-1].stop, found[-1][1][-1].spared) == (unit.start, unit.spared)
        ):
            found[-1][1].append(unit)
        else:
            found.append((file, [unit]))
        slot_before = slot
    return found


def split_of(
    stream: str, format: str, file: FoundFile, units: Sequence[ReadingUnit], ordinal: int, last: bool, mark: str = ""
) -> Split:
    """Neighbouring units of one file as a split; its ticks are known if those of all its units are.

    Of a row group that is spared in parts, the last has the ticks of the whole.
    """
    highs = [u.high for u in units if u.high is not None]
    lows = [u.low for u in units if u.low is not None]
    exact = len(highs) == len(units) or (units[0].spared and bool(highs))
    start, stop = units[0].start, units[-1].stop
    return Split(
        stream=stream,
        partition=file.partition,
        ordinal=ordinal,
        path=file.address,
        format=format,
        start=start,
        stop=stop,
        rows=None if units[0].rows is None else stop - start,
        bytes=sum(u.bytes for u in units if not u.spared),
        size=file.size,
        mtime_ns=file.mtime_ns,
        row_groups=tuple(dict.fromkeys(u.group for u in units if u.group is not None)),
        low=min(lows) if exact else None,
        high=max(highs) if exact else None,
        last=last,
        spared=units[0].spared,
        unreadable=units[0].unreadable,
        mark=mark,
    )
