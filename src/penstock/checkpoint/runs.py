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
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from penstock.checkpoint.intact import DamagedError, Written, open_whole, writing
from penstock.checkpoint.storage import Storage
from penstock.errors import CheckpointError

#: Bytes of the word that an Arrow file begins with.
_MAGIC = 8


@dataclass(frozen=True)
class StoredRun:
    """One file of state. Rows before `skip` are done with, and so are `dead` others, which the file `marks` tells.

    Marks speak of the rows behind `skip`, which stays what it is from then on. Both files are known by their sizes and
    checksums.
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
    crc: int = 0
    marks_bytes: int = 0
    marks_crc: int = 0

    @property
    def live(self) -> int:
        return self.rows - self.skip - self.dead

    @property
    def file(self) -> Written:
        return Written(self.name, self.bytes, self.crc)

    @property
    def files(self) -> tuple[Written, ...]:
        """The file of its rows and, if there is one, that of its marks."""
        if self.marks is None:
            return (self.file,)
        return self.file, Written(self.marks, self.marks_bytes, self.marks_crc)

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True, order=True)
class UnitKey:
    """Operator, bucket, group of windows. What an operator keeps of its input n alone is filed under `operator#n`.

    Where much is kept, parts of it may be filed by their share of the groups: 1 is all of them, 2 and 3 are the halves
    of that by a hash, 4 and 5 those of 2.

    >>> str(UnitKey("aggregate-1", 0, 7, share=5)), UnitKey.parse("aggregate-1/0/7.5").share
    ('aggregate-1/0/7.5', 5)
    """

    operator: str
    bucket: int
    group: int = 0
    share: int = 1

    def __str__(self) -> str:
        return f"{self.operator}/{self.bucket}/{self.part}"

    @property
    def part(self) -> str:
        """Group and share."""
        return str(self.group) if self.share == 1 else f"{self.group}.{self.share}"

    @classmethod
    def parse(cls, text: str) -> UnitKey:
        operator, bucket, part = text.rsplit("/", 2)
        group, _, share = part.partition(".")
        return cls(operator, int(bucket), int(group), int(share or 1))


Units = dict[UnitKey, tuple[StoredRun, ...]]


def units_to_json(units: Units) -> dict[str, list[dict[str, Any]]]:
    return {str(key): [r.to_json() for r in runs] for key, runs in sorted(units.items()) if runs}


def units_from_json(stored: dict[str, list[dict[str, Any]]]) -> Units:
    return {UnitKey.parse(key): tuple(StoredRun(**r) for r in runs) for key, runs in stored.items()}


def run_names(units: Units) -> set[str]:
    """All files of state that units refer to."""
    return set(run_files(units))


def run_files(units: Units) -> dict[str, Written]:
    """All files of state that units refer to, by name, as they were written."""
    return {f.name: f for runs in units.values() for r in runs for f in r.files}


def write_run(
    storage: Storage, key: UnitKey, epoch: int, table: pa.Table, low: int | None, high: int | None
) -> StoredRun:
    """Store rows under a name nobody else has: a task that is tried twice writes two files, and one is kept."""
    file = write_table(storage, key, epoch, table)
    return StoredRun(file.name, table.num_rows, file.bytes, epoch, low, high, crc=file.crc)


def write_table(storage: Storage, key: UnitKey, epoch: int, table: pa.Table, kind: str = "") -> Written:
    """Write an Arrow file for a unit. Nobody has waited for the disk yet: that is done for many files at once."""
    folder = f"state/{key.operator.replace(':', '_').replace('#', '_')}/{key.bucket}"
    name = f"{folder}/{epoch:06d}-{key.group}-{kind}{uuid.uuid4().hex[:12]}.arrow"
    try:
        if not storage.local:
            storage.make(folder)
        with writing(storage, name) as tally, pa.ipc.new_file(tally, table.schema) as writer:
            # In one piece: kernels look up a few rows of a mapped column, and would have to copy one of several.
            writer.write_table(table.combine_chunks())
    except OSError as error:
        with contextlib.suppress(CheckpointError, OSError):
            storage.delete(name)
        raise CheckpointError(
            f"operator {key.operator}, bucket {key.bucket}: cannot write state to {storage.path(name)}: {error}",
            hint="free space or fix access there, then start again: nothing is lost",
        ) from error
    return Written(name, tally.bytes, tally.crc)


def read_run(storage: Storage, key: UnitKey, run: StoredRun) -> pa.Table:
    """The live rows of a run: mapped, not read, on local disks, so only what is looked at costs anything.

    The first time a process looks at a run, it looks at all of it: its checksum must be right.
    """
    return _read(storage, key, run, run.file, run.rows).slice(run.skip)


def read_marks(storage: Storage, key: UnitKey, run: StoredRun) -> pa.Table | None:
    """The bits that go with the rows of a run, if it has any."""
    return None if run.marks is None else _read(storage, key, run, run.files[1], run.rows - run.skip)


def _read(storage: Storage, key: UnitKey, run: StoredRun, file: Written, rows: int) -> pa.Table:
    try:
        source = open_whole(storage, file)
        # As the stream that a file holds behind its first word: its index at the end would be read by another thread.
        source.seek(_MAGIC)
        table = pa.ipc.open_stream(source).read_all()
        if table.num_rows != rows:
            raise DamagedError(f"it holds {table.num_rows} rows, its manifest says {rows}")
    except (OSError, pa.ArrowInvalid, DamagedError) as error:
        why = error.message if isinstance(error, DamagedError) else error
        raise DamagedError(
            f"operator {key.operator}, bucket {key.bucket}: state run {storage.path(file.name)} of epoch {run.epoch} "
            f"is missing or damaged: {why}",
            name=file.name,
            hint="restore the file from a backup of the checkpoint; the checkpoint itself is unchanged",
        ) from error
    return table


@dataclass(frozen=True)
class Change:
    """What one task did to one unit: runs it dropped, prefixes it consumed, runs it added, marks it replaced.

    `marked` lists (run, file of the marks, how many rows are dead by them).
    """

    key: UnitKey
    dropped: tuple[str, ...] = ()
    skipped: tuple[tuple[str, int], ...] = ()
    added: tuple[StoredRun, ...] = ()
    marked: tuple[tuple[str, Written, int], ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """The files that were written for it."""
        return (*(r.name for r in self.added), *(f.name for _, f, _ in self.marked))


def apply(units: Units, changes: Iterable[Change]) -> Units:
    """The units after the changes.

    >>> k, r = UnitKey("aggregate-1", 0), StoredRun("a", rows=5, bytes=100, epoch=1)
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


def _changed(run: StoredRun, skipped: int, marked: tuple[Written, int] | None) -> StoredRun:
    if marked is not None:
        file, dead = marked
        run = replace(run, marks=file.name, dead=dead, marks_bytes=file.bytes, marks_crc=file.crc)
    return replace(run, skip=run.skip + skipped) if skipped else run
