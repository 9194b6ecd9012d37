"""Cutting one file into units that can be read alone: row groups of Parquet, runs of whole lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.algebra.operator import Source
from penstock.engine.source.folder import Candidate
from penstock.engine.source.footer import Footer, read_footer
from penstock.engine.source.place import first_line, locate
from penstock.errors import SourceError

_PROBE = 1 << 16
_MAGIC = b"PAR1"


@dataclass(frozen=True)
class Unit:
    """The smallest part of a file that a split may consist of."""

    start: int
    stop: int
    rows: int | None
    bytes: int
    group: int | None
    low: int | None
    high: int | None
    last: bool


@dataclass
class Budget:
    """What an epoch may still take. The first unit is always allowed, else nothing would ever move."""

    rows: int | None
    bytes: int | None
    parallelism: int
    taken: int = 0

    def take(self, unit: Unit, estimated_rows: int) -> bool:
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
    """The file is not whole yet."""


def parquet_footer(source: Source, file: Candidate) -> Footer:
    """The footer of a Parquet file; `NotReady` while it has none."""
    what = f"stream '{source.name}': file '{file.address}'"
    place = locate(file.address)
    try:
        with place.filesystem.open_input_file(place.path) as handle:
            if file.size >= 4 and handle.read(4) != _MAGIC:
                raise SourceError(f"{what} is not a Parquet file", hint="use read_csv or read_json for text")
            if file.size < 12:
                raise NotReady("no footer yet")
            handle.seek(file.size - 4)
            if handle.read(4) != _MAGIC:
                raise NotReady("no footer yet")
            try:
                metadata = pq.read_metadata(handle)
            except (pa.ArrowInvalid, OSError) as error:
                raise NotReady(f"footer cannot be read: {first_line(error)}") from None
    except OSError as error:
        raise SourceError(f"{what} cannot be read: {first_line(error)}", hint="check its permissions") from None
    return read_footer(metadata, source.schema, source.promises)


def parquet_units(footer: Footer, position: int, limit_rows: int | None, limit_bytes: int | None) -> Iterator[Unit]:
    """The row groups from a row number on; one that exceeds a limit by itself is cut into ranges of rows."""
    first, total = 0, footer.rows
    for index, group in enumerate(footer.groups):
        end = first + group.rows
        step = group.rows
        if limit_rows is not None:
            step = min(step, max(1, limit_rows))
        if limit_bytes is not None and group.bytes > limit_bytes:
            step = min(step, max(1, group.rows * limit_bytes // group.bytes))
        start = max(first, position)
        while start < end:
            stop = min(end, start + step)
            whole = stop - start == group.rows
            size = group.bytes * (stop - start) // group.rows
            low, high = (group.low, group.high) if whole else (None, None)
            yield Unit(start, stop, stop - start, size, index, low, high, stop == total)
            start = stop
        first = end


@dataclass(frozen=True)
class TextShape:
    """What a look at the first lines of a text file tells."""

    first_byte: int
    bytes_per_row: float


def text_shape(source: Source, file: Candidate, header: bool) -> TextShape:
    """Where the events begin (after byte order mark and header) and how long a line is on average."""
    what = f"stream '{source.name}': file '{file.address}'"
    place = locate(file.address)
    try:
        with place.filesystem.open_input_file(place.path) as handle:
            head = handle.read(min(_PROBE, file.size))
            if head[:4] == _MAGIC:
                raise SourceError(f"{what} is a Parquet file", hint="use read_parquet")
            first = 3 if head.startswith(b"\xef\xbb\xbf") else 0
            if header:
                while b"\n" not in head and len(head) < file.size and (more := handle.read(_PROBE)):
                    head += more
                newline = head.find(b"\n", first)
                first = newline + 1 if newline >= 0 else file.size
    except OSError as error:
        raise SourceError(f"{what} cannot be read: {first_line(error)}", hint="check its permissions") from None
    lines = head.count(b"\n", first)
    return TextShape(first, max(1.0, (len(head) - first) / lines) if lines else float(max(1, file.size)))


def text_units(file: Candidate, position: int, step: int | None) -> Iterator[Unit]:
    """Runs of whole lines from a byte offset on, each of about `step` bytes; one unit if `step` is None."""
    place = locate(file.address)
    if step is None:
        if position < file.size:
            yield _text_unit(position, file.size, file)
        return
    with place.filesystem.open_input_file(place.path) as handle:
        while position < file.size:
            stop = _line_end(handle, min(file.size, position + max(1, step)), file.size)
            yield _text_unit(position, stop, file)
            position = stop


def _text_unit(start: int, stop: int, file: Candidate) -> Unit:
    return Unit(start, stop, None, stop - start, None, None, None, stop == file.size)


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
