"""The reader of a folder: a cursor over its files, moved by planning and restored from what was written down."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from penstock.algebra.operator import Source
from penstock.algebra.source import Files
from penstock.engine.source.cut import (
    Budget,
    NotReady,
    TextShape,
    Unit,
    parquet_footer,
    parquet_units,
    text_shape,
    text_units,
)
from penstock.engine.source.folder import Candidate, Folder
from penstock.engine.source.footer import Footer
from penstock.engine.source.split import Split
from penstock.errors import SourceError, UserError

# Below this size a run of lines is not worth a task of its own.
_SMALLEST_TEXT = 1 << 20


class Listed(Protocol):
    """Where files come from: what may be read now, in order, and the short name of each."""

    def candidates(self) -> tuple[Candidate, ...]: ...
    def name_of(self, address: str) -> str: ...


@dataclass(frozen=True)
class Cursor:
    """The one file that is read in part: everything from `position` (row or byte) on is still to come."""

    name: str
    size: int
    mtime_ns: int
    position: int


class FilesReader:
    """Plans splits of the files in a folder, each exactly once, in order of appearance.

    The cursor moves when splits are planned, not when they are read: what was planned is written down before it is
    read, and read again from there after a crash.
    """

    def __init__(self, source: Source, files: Files, folder: Listed | None = None) -> None:
        self.source = source
        self.files = files
        self.waiting: tuple[tuple[str, str], ...] = ()
        self._folder: Listed = folder if folder is not None else Folder(source.name, files)
        self._options = dict(files.options)
        self._settle = float(self._options.get("settle", 1.0))
        self._done: dict[str, tuple[int, int]] = {}
        self._finished = 0
        self._cursor: Cursor | None = None
        self._ordinals: dict[str, int] = {}
        self._partitions: set[str] = set()
        self._delta: list[list[Any]] = []
        self._touched: set[str] = set()
        self._footers: dict[str, tuple[int, int, Footer | TextShape]] = {}
        self._seen: dict[str, tuple[int, int, float]] = {}
        self._only: frozenset[str] | None = None

    @property
    def partitions(self) -> tuple[str, ...]:
        """Every source partition that is known, read or not: the stream is only as far as the slowest of them."""
        return tuple(sorted(self._partitions))

    @property
    def exhausted(self) -> bool:
        """Whether there is nothing left to read now. Files that are not whole yet do not count."""
        return next(self._next_units(self._pending(settled=True), Budget(1, None, 1)), None) is None

    def plan(
        self, max_rows: int | None, max_bytes: int | None, parallelism: int, settled: bool = False
    ) -> tuple[Split, ...]:
        """The next splits in arrival order, within the budget; at least one if there is anything to read."""
        budget = Budget(max_rows, max_bytes, max(1, parallelism))
        taken = list(self._next_units(self._pending(settled), budget))
        splits = self._numbered(_packed(taken, max(1, parallelism)))
        self.advance(splits)
        return splits

    def advance(self, splits: Sequence[Split]) -> None:
        """Move past splits, planned just now or read from a write-ahead plan."""
        for split in splits:
            name = self._name(split)
            self._partitions.add(split.partition)
            self._ordinals[split.partition] = split.ordinal + 1
            self._touched.add(split.partition)
            if split.last:
                self._finish(name, split.size, split.mtime_ns)
                self._cursor = None
                self._footers.pop(name, None)
                self._seen.pop(name, None)
            else:
                self._cursor = Cursor(name, split.size, split.mtime_ns, split.stop)

    def _finish(self, name: str, size: int, mtime_ns: int) -> None:
        self._done[name] = (size, mtime_ns)
        self._delta.append([name, size, mtime_ns])
        self._finished += 1

    def position(self) -> dict[str, Any]:
        """What changed since the last call: call it once per epoch, right after its plan."""
        delta = {
            "files_done": self._finished,
            "delta": self._delta,
            "cursor": self._cursor_json(),
            "ordinals": {p: self._ordinals[p] for p in sorted(self._touched)},
        }
        self._delta, self._touched = [], set()
        return delta

    def snapshot(self) -> dict[str, Any]:
        """Everything, so that older deltas can be dropped. Same moment as `position`."""
        return {
            "files_done": self._finished,
            "delta": [[n, *f] for n, f in self._done.items()],
            "cursor": self._cursor_json(),
            "ordinals": dict(sorted(self._ordinals.items())),
        }

    def restore(self, snapshot: Mapping[str, Any] | None, deltas: Sequence[Mapping[str, Any]]) -> None:
        """Take up the position of a snapshot and the deltas after it."""
        for part in ([snapshot] if snapshot is not None else []) + list(deltas):
            self._done.update({n: (size, mtime) for n, size, mtime in part["delta"]})
            self._ordinals.update(part["ordinals"])
            self._finished = part["files_done"]
            self._cursor = Cursor(*part["cursor"]) if part["cursor"] else None
        self._partitions.update(self._ordinals)
        self._delta, self._touched = [], set()

    def fix(self) -> None:
        """Take what is there now for everything there is: a bounded run ends even if files keep coming."""
        self._only = frozenset(c.name for c in self._folder.candidates())

    def _cursor_json(self) -> list[Any] | None:
        c = self._cursor
        return [c.name, c.size, c.mtime_ns, c.position] if c else None

    def _name(self, split: Split) -> str:
        # A name is the address below the folder; kept short because every epoch writes it down.
        return self._folder.name_of(split.path)

    def _pending(self, settled: bool) -> Iterator[Candidate]:
        """Files still to be read, the one read in part first; checks that files already read are as they were."""
        listed = self._folder.candidates()
        if not listed and not self._done and self._cursor is None and not self._options.get("wait", False):
            raise UserError(
                f"stream '{self.source.name}': no file to read in '{self.files.path}'",
                hint="names that start with '_' or '.' and unfinished files are not read; if files come later, "
                f"read_{self.files.format}(…, wait=True) begins with none",
            )
        if self._only is not None:
            listed = tuple(c for c in listed if c.name in self._only)
        self._partitions.update(c.partition for c in listed)
        self.waiting = ()
        todo = []
        current = None
        for c in listed:
            before = self._done.get(c.name)
            if self._cursor is not None and c.name == self._cursor.name:
                before, current = (self._cursor.size, self._cursor.mtime_ns), c
            if before is None:
                todo.append(c)
            elif before != (c.size, c.mtime_ns):
                raise SourceError(
                    f"stream '{self.source.name}': file '{c.address}' changed after it was read",
                    hint="write new events to a new file",
                )
        if self._cursor is not None and current is None:
            raise SourceError(
                f"stream '{self.source.name}': file '{self._cursor.name}' is gone, but only a part of it was read",
                hint="put it back",
            )
        if current is not None:
            yield current
        for c in todo:
            if self._ready(c, settled):
                yield c

    def _ready(self, c: Candidate, settled: bool) -> bool:
        if self.files.format == "parquet":
            return True  # the footer tells
        if c.size == 0:
            return False
        if settled or self._settle <= 0:
            return True
        now = time.monotonic()
        seen = self._seen.get(c.name)
        if seen is None or seen[:2] != (c.size, c.mtime_ns):
            seen = self._seen[c.name] = (c.size, c.mtime_ns, now)
        if now - seen[2] >= self._settle or time.time() - c.mtime_ns / 1e9 >= self._settle:
            return True
        self.waiting = (*self.waiting, (c.address, "still being written"))
        return False

    def _next_units(self, files: Iterator[Candidate], budget: Budget) -> Iterator[tuple[Candidate, Unit]]:
        for file in files:
            if budget.is_spent():
                return
            try:
                units, per_row = self._units(file, budget)
            except NotReady as why:
                self.waiting = (*self.waiting, (file.address, str(why)))
                continue
            empty = True
            for unit in units:
                empty = False
                if not budget.take(unit, int(unit.bytes / per_row)):
                    return
                yield file, unit
                if budget.is_spent():
                    return
            if empty:
                # No split will ever name it, so it is ticked off here.
                self._finish(file.name, file.size, file.mtime_ns)

    def _units(self, file: Candidate, budget: Budget) -> tuple[Iterator[Unit], float]:
        start = self._cursor.position if self._cursor is not None and self._cursor.name == file.name else 0
        shape = self._shape(file)
        if isinstance(shape, Footer):
            return parquet_units(shape, start, budget.rows, budget.bytes), 1.0
        start = max(start, shape.first_byte)
        if self.files.format == "csv" and self._options.get("multiline", False):
            return text_units(file, start, None), shape.bytes_per_row
        step = max(_SMALLEST_TEXT, -(-(file.size - start) // budget.parallelism))
        if budget.rows is not None:
            step = min(step, int(budget.rows * shape.bytes_per_row))
        if budget.bytes is not None:
            step = min(step, budget.bytes)
        return text_units(file, start, max(1, step)), shape.bytes_per_row

    def _shape(self, file: Candidate) -> Footer | TextShape:
        known = self._footers.get(file.name)
        if known is not None and known[:2] == (file.size, file.mtime_ns):
            return known[2]
        shape: Footer | TextShape
        if self.files.format == "parquet":
            shape = parquet_footer(self.source, file)
        else:
            header = self.files.format == "csv" and bool(self._options.get("header", True))
            shape = text_shape(self.source, file, header)
        self._footers[file.name] = (file.size, file.mtime_ns, shape)
        return shape

    def _numbered(self, taken: Sequence[tuple[Candidate, Sequence[Unit]]]) -> tuple[Split, ...]:
        ordinals = dict(self._ordinals)
        splits = []
        for file, units in taken:
            ordinal = ordinals.get(file.partition, 0)
            ordinals[file.partition] = ordinal + 1
            splits.append(self._split(file, units, ordinal))
        return tuple(splits)

    def _split(self, file: Candidate, units: Sequence[Unit], ordinal: int) -> Split:
        first, last = units[0], units[-1]
        exact = all(u.high is not None for u in units)
        split = Split(
            stream=self.source.name,
            partition=file.partition,
            ordinal=ordinal,
            path=file.address,
            format=self.files.format,
            start=first.start,
            stop=last.stop,
            rows=None if first.rows is None else last.stop - first.start,
            bytes=sum(u.bytes for u in units),
            size=file.size,
            mtime_ns=file.mtime_ns,
            row_groups=tuple(dict.fromkeys(u.group for u in units if u.group is not None)),
            last=last.last,
        )
        if not exact:
            return split
        return replace(
            split,
            low=min(u.low for u in units if u.low is not None),
            high=max(u.high for u in units if u.high is not None),
        )


def _packed(taken: Sequence[tuple[Candidate, Unit]], parallelism: int) -> list[tuple[Candidate, list[Unit]]]:
    """Adjacent units of one file joined, so that every task gets about one split of about the same size."""
    total = sum(max(1, u.bytes) for _, u in taken)
    packed: list[tuple[Candidate, list[Unit]]] = []
    before, slot_before = 0, -1
    for file, unit in taken:
        weight = max(1, unit.bytes)
        slot = (2 * before + weight) * parallelism // (2 * total)
        before += weight
        if packed and packed[-1][0] is file and slot == slot_before and unit.group is not None:
            packed[-1][1].append(unit)
        else:
            packed.append((file, [unit]))
        slot_before = slot
    return packed
