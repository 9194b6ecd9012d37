"""State on disk: runs, grouped in units.

A *run* is an immutable Arrow IPC file of partial aggregates, sorted by the attribute that closes groups (the window
label, or else the first key). A *unit* is what one operator keeps for one bucket and one group of windows. Closing
windows consumes a prefix of a run: the manifest then says how many rows to skip, and the file is dropped when none
is left. So a run is never rewritten just because part of it is done.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa

from penstock.engine.storage import Storage
from penstock.errors import CheckpointError


@dataclass(frozen=True)
class Run:
    """One file of state. Rows before `skip` are done with, and so are `dead` others, which the file `marks` tells.

    Marks speak of the rows behind `skip`, which stays what it is from then on.
    """

    name: str
    rows: int
    bytes: int
    epoch: int
    low: int | None = None
    high: int | None = None
    skip: int = 0
    marks: str | None = None
    dead: int = 0

    @property
    def live(self) -> int:
        return self.rows - self.skip - self.dead

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, order=True)
class UnitKey:
    """Operator, bucket, group of windows. What an operator keeps of its input n alone is filed under `operator#n`."""

    operator: str
    bucket: int
    group: int = 0

    def __str__(self) -> str:
        return f"{self.operator}/{self.bucket}/{self.group}"

    @classmethod
    def parse(cls, text: str) -> UnitKey:
        operator, bucket, group = text.rsplit("/", 2)
        return cls(operator, int(bucket), int(group))


Units = dict[UnitKey, tuple[Run, ...]]


def units_to_json(units: Units) -> dict[str, list[dict[str, Any]]]:
    return {str(key): [r.to_json() for r in runs] for key, runs in sorted(units.items()) if runs}


def units_from_json(stored: dict[str, list[dict[str, Any]]]) -> Units:
    return {UnitKey.parse(key): tuple(Run(**r) for r in runs) for key, runs in stored.items()}


def run_names(units: Units) -> set[str]:
    """All files of state that units refer to."""
    runs = [r for runs in units.values() for r in runs]
    return {r.name for r in runs} | {r.marks for r in runs if r.marks is not None}


def write_run(storage: Storage, key: UnitKey, epoch: int, table: pa.Table, low: int | None, high: int | None) -> Run:
    """Store rows under a name nobody else has: a task that is tried twice writes two files, and one is kept."""
    name, size = write_table(storage, key, epoch, table)
    return Run(name, table.num_rows, size, epoch, low, high)


def write_table(storage: Storage, key: UnitKey, epoch: int, table: pa.Table, kind: str = "") -> tuple[str, int]:
    """Write an Arrow file for a unit; returns its name and size."""
    folder = f"state/{key.operator.replace(':', '_').replace('#', '_')}/{key.bucket}"
    name = f"{folder}/{epoch:06d}-{key.group}-{kind}{uuid.uuid4().hex[:12]}.arrow"
    path = storage.path(name)
    try:
        storage.make(folder)
        with storage.filesystem.open_output_stream(path) as stream:
            with pa.ipc.new_file(stream, table.schema) as writer:
                # In one piece: kernels look up a few rows of a mapped column, and would have to copy one of several.
                writer.write_table(table.combine_chunks())
            size = stream.tell()
    except OSError as error:
        with contextlib.suppress(OSError):
            storage.delete(name)
        raise CheckpointError(
            f"operator {key.operator}, bucket {key.bucket}: cannot write state to {path}: {error}",
            hint="free space or fix access there, then start again: nothing is lost",
        ) from error
    return name, size


def read_run(storage: Storage, key: UnitKey, run: Run) -> pa.Table:
    """The live rows of a run: mapped, not read, on local disks, so only what is looked at costs anything."""
    return _read(storage, key, run, run.name, run.rows).slice(run.skip)


def read_marks(storage: Storage, key: UnitKey, run: Run) -> pa.Table | None:
    """The bits that go with the rows of a run, if it has any."""
    return None if run.marks is None else _read(storage, key, run, run.marks, run.rows - run.skip)


def _read(storage: Storage, key: UnitKey, run: Run, name: str, rows: int) -> pa.Table:
    path = storage.path(name)
    try:
        source = pa.memory_map(path) if storage.local else storage.filesystem.open_input_file(path)
        table = pa.ipc.open_file(source).read_all()
    except (OSError, pa.ArrowInvalid) as error:
        raise CheckpointError(
            f"operator {key.operator}, bucket {key.bucket}: state run {path} of epoch {run.epoch} "
            f"is missing or damaged: {error}",
            hint="restore the file from a backup of the checkpoint; the checkpoint itself is unchanged",
        ) from error
    if table.num_rows != rows:
        raise CheckpointError(
            f"operator {key.operator}, bucket {key.bucket}: state run {path} holds {table.num_rows} rows, "
            f"its manifest says {rows}",
            hint="restore the file from a backup of the checkpoint; the checkpoint itself is unchanged",
        )
    return table


@dataclass(frozen=True)
class Change:
    """What one task did to one unit: runs it dropped, prefixes it consumed, runs it added, marks it replaced.

    `marked` lists (run, file of the marks, how many rows are dead by them).
    """

    key: UnitKey
    dropped: tuple[str, ...] = ()
    skipped: tuple[tuple[str, int], ...] = ()
    added: tuple[Run, ...] = ()
    marked: tuple[tuple[str, str, int], ...] = ()


def apply(units: Units, changes: Iterable[Change]) -> Units:
    """The units after the changes.

    >>> k, r = UnitKey("aggregate-1", 0), Run("a", rows=5, bytes=100, epoch=1)
    >>> apply({k: (r,)}, [Change(k, skipped=(("a", 5),))])
    {}
    """
    out = dict(units)
    for change in changes:
        skipped = dict(change.skipped)
        marked = {name: (marks, dead) for name, marks, dead in change.marked}
        runs = (
            _changed(r, skipped.get(r.name, 0), marked.get(r.name))
            for r in (*out.get(change.key, ()), *change.added)
            if r.name not in change.dropped
        )
        kept = tuple(r for r in runs if r.live > 0)
        if kept:
            out[change.key] = kept
        else:
            out.pop(change.key, None)
    return out


def _changed(run: Run, skipped: int, marked: tuple[str, int] | None) -> Run:
    if marked is not None:
        run = replace(run, marks=marked[0], dead=marked[1])
    return replace(run, skip=run.skip + skipped) if skipped else run
