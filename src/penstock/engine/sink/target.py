"""Where results go, and how they get there exactly once.

Tasks write results as files under names of their own. The manifest of the epoch names those that count. After the
commit the driver publishes them: files are moved to their final, deterministic names, which can be repeated after a
crash without harm; other targets are handed the rows together with the id of the epoch.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.checkpoint.checkpoint import Output
from penstock.checkpoint.fault import reach
from penstock.checkpoint.intact import DamagedError, damage, read_whole, writing
from penstock.checkpoint.storage import Storage, seal, unseal
from penstock.engine.sink.final import FinalUpTo
from penstock.engine.sink.hive import cut, namesakes
from penstock.errors import CheckpointError, PenstockError, UserError, shortly
from penstock.kernels.duck import query
from penstock.kernels.weights import pairs, spelled_out
from penstock.pattern.schema import Schema
from penstock.plan.weight import PART, WEIGHT

#: Forms of results that may be corrected: every change as it is, before and after side by side, the table as it is
#: now, or only what can no longer change.
Changes = Literal["log", "pairs", "fold", "final"]


def checked_changes(given: object, possible: Sequence[Changes], call: str) -> Changes:
    """The form of changes that a user has asked for, if this sink has it.

    >>> checked_changes("fold", ["log", "final"], "ps.deliver(f")
    Traceback (most recent call last):
    penstock.errors.UserError: ps.deliver(f, changes='fold') is not possible. Hint: 'log' or 'final'
    """
    for form in possible:
        if form == given:
            return form
    said = " or ".join(map(repr, possible))
    raise UserError(f"{call}, changes={shortly(given)}) is not possible", hint=said)


def repeating(table: pa.Table, sample: int = 4096) -> list[str]:
    """The columns whose values repeat, judged by the first of them: only for these a dictionary pays.

    Trying one on columns of all different values took four times as long as writing them plainly.

    >>> repeating(pa.table({"serial": range(5000), "kind": ["a", "b"] * 2500}))
    ['kind']
    """
    first = table.slice(0, sample)
    plain = (n for n in table.column_names if not pa.types.is_nested(table.schema.field(n).type))
    return [n for n in plain if 2 * len(first[n].unique()) <= max(first.num_rows, 512)]


@dataclass(frozen=True)
class Staging:
    """The part of a target that a task needs: where to leave files and in what form."""

    sink: str
    storage: Storage
    folder: str
    format: Literal["parquet", "json", "arrow"]
    #: Columns whose values name the folders of results.
    partition_by: tuple[str, ...] = ()
    #: Whether it is a table in parts, which are replaced.
    folds: bool = False

    def write(self, table: pa.Table, epoch: int, task: str) -> list[Output]:
        """Leave results for the driver to publish: one file, or one for each folder; or each part of a table."""
        found: list[Output] = []
        try:
            # Parts are replaced, so what comes and goes apart must not lie in files of the same name.
            apart = namesakes(table, self.partition_by) if self.folds else [("", table)]
            for mark, part in apart:
                for folder, rows in cut(part, self.partition_by, self.sink) if self.partition_by else [("", part)]:
                    final = f"{folder}/part-" if folder else "part-"
                    if self.folds:
                        named = ((f"{final}{number:04d}{mark}", r) for number, r in table_parts(rows))
                        found += [self._write(r, epoch, task, name) for name, r in named]
                    else:
                        found.append(self._write(rows, epoch, task, f"{final}{epoch:06d}-{task}"))
        except BaseException:
            for output in found:
                with contextlib.suppress(CheckpointError, OSError):
                    self.storage.delete(output.staged)
            raise
        return found

    def _write(self, table: pa.Table, epoch: int, task: str, name: str) -> Output:
        suffix = {"parquet": "parquet", "json": "json", "arrow": "arrow"}[self.format]
        staged = f"{self.folder}/{epoch:06d}-{task}-{uuid.uuid4().hex[:12]}.{suffix}"
        try:
            if not self.storage.local:
                self.storage.make(self.folder)
            with writing(self.storage, staged) as tally:
                if self.format == "parquet":
                    pq.write_table(table, tally, compression="snappy", use_dictionary=repeating(table))
                elif self.format == "arrow":
                    with pa.ipc.new_file(tally, table.schema) as writer:
                        writer.write_table(table)
                else:
                    tally.write(json_lines(table))
        except OSError as error:
            with contextlib.suppress(CheckpointError, OSError):
                self.storage.delete(staged)  # Leave no half file behind on a disk that may be full.
            raise CheckpointError(
                f"sink {self.sink}: cannot write results to {self.storage.path(staged)}: {error}",
                hint="free space or fix access there, then start again: nothing is lost",
            ) from error
        return Output(self.sink, staged, f"{name}.{suffix}", table.num_rows, tally.bytes, tally.crc)


def table_parts(rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """The parts of a table that is told in parts, each with all of its rows; one may have none.

    >>> rows = pa.table({"k": ["a", "b", "b"], WEIGHT: [0, 0, 2], PART: [7, 8, 8]})
    >>> [(part, found.to_pydict()) for part, found in table_parts(rows)]
    [(7, {'k': []}), (8, {'k': ['b', 'b']})]
    """
    for part in sorted(pc.unique(rows[PART]).to_pylist()):
        holding = pc.and_(pc.equal(rows[PART], part), pc.greater(rows[WEIGHT], 0))
        yield part, spelled_out(rows.filter(holding).drop_columns([PART]))


def json_lines(table: pa.Table) -> bytes:
    """One JSON object per row; timestamps as ISO text.

    >>> json_lines(pa.table({"t": [1], "rows": ["a"]}))
    b'{"t":1,"rows":"a"}\\n'
    """
    if table.num_rows == 0:
        return b""
    whole = "rows"  # A column of that name would be taken for the row.
    while whole in {name.casefold() for name in table.column_names}:
        whole += "_"
    lines = query(f"SELECT to_json({whole})::VARCHAR AS line FROM {whole}", **{whole: table})["line"].to_pylist()
    return ("\n".join(lines) + "\n").encode()


@dataclass(frozen=True)
class Target:
    """A declaration of where results go."""

    def bind(self, sink: str, checkpoint: Storage) -> BoundTarget:
        raise NotImplementedError

    @property
    def takes(self) -> Changes:
        """In what form it takes results that may be corrected."""
        return "log"

    def paired(self, keys: tuple[str, ...] | None) -> Target:
        """The same for results that these attributes tell apart."""
        return self

    @property
    def laid_out_by(self) -> tuple[str, ...]:
        """The columns whose values name the folders of results."""
        return ()

    def fitted(self, schema: Schema) -> Target:
        """The same for results of a schema, or an error if they cannot go there."""
        return self

    @property
    def home(self) -> str | None:
        """A folder beside which a checkpoint may live, if the user names none."""
        return None


class BoundTarget:
    """A target of one run: what tasks write to, and what the driver does after a commit."""

    staging: Staging
    #: Where it notes what it has done: with the records of the run.
    records: Storage

    def claim(self, checkpoint_id: str, *, fresh: bool = False) -> None:
        """Refuse a place that holds the results of another checkpoint; or any, if nothing has been published yet."""

    def known(self, target: str) -> dict[str, str]:
        """What the plan of an epoch says of it, so that it can be found without the query."""
        return {"target": target}

    def publish(self, epoch: int, outputs: Sequence[Output], spark: Any) -> None:
        raise NotImplementedError

    def mark(self, epoch: int, final: FinalUpTo) -> None:
        """Say beside the results what is final of them, where there is a place for that."""

    def settle(self, epoch: int, outputs: Sequence[Output]) -> None:
        """Wait until what was published is on the disk. Before the next manifest is there: only this one could tell
        that it was to be published."""

    def damage(self, epoch: int, output: Output) -> str | None:
        """What is wrong with a result of the newest epoch that is still to be published, or just was."""
        return None

    def damaged_part(self, output: Output) -> str | None:
        """The path of a published result if it is there and is not what was written."""
        return None

    def withdraw(self, outputs: Sequence[Output]) -> None:
        """Take back the results of an epoch that will be run again."""

    def sweep(self, keep: set[str], epoch: int, guard: Callable[[], None] = lambda: None) -> list[str]:
        """Delete what crashed epochs left, and results published by epochs after `epoch`, which never happened.

        Only what this checkpoint's records name, or what lies in its own staging folder under a name of its own.
        """
        return []

    def close(self) -> None:
        """The run is over."""


@dataclass(frozen=True)
class DeliverTarget(Target):
    """Rows handed to a function on the driver, once per committed epoch, with the epoch's id."""

    function: Callable[[Any, int], None] = field(repr=False)
    form: Literal["arrow", "spark"] = "arrow"
    name: str = "deliver"
    changes: Changes = "log"
    #: What tells results apart.
    keys: tuple[str, ...] | None = None

    @property
    def takes(self) -> Changes:
        return self.changes

    def paired(self, keys: tuple[str, ...] | None) -> Target:
        return replace(self, keys=keys)

    def bind(self, sink: str, checkpoint: Storage) -> BoundTarget:
        shaped = partial(pairs, keys=self.keys) if self.changes == "pairs" else None
        return DriverTarget(sink, checkpoint, self.function, self.form, shaped)

    def __repr__(self) -> str:
        what = getattr(self.function, "__name__", "function") if self.name == "deliver" else ""
        how = f", changes='{self.changes}'" if self.changes != "log" else ""
        return f"ps.{self.name}({what}{how})"


#: Where it is noted which epoch was delivered last.
_NOTE = "delivered/{}.json"


def delivered(records: Storage, sink: str) -> int:
    """The epoch that was delivered last; 0 before the first."""
    # A note that is torn says as much as none: the epoch is delivered again, under the same id.
    with contextlib.suppress(CheckpointError, FileNotFoundError, KeyError, TypeError, ValueError):
        name = _NOTE.format(sink)
        return int(unseal(records.read(name), name)["epoch"])
    return 0


class DriverTarget(BoundTarget):
    """Delivers from the driver and remembers, durably, which epoch was delivered last.

    A crash between delivery and that note means the same epoch is delivered again under the same id, so a function
    that ignores ids it has seen gets every row exactly once.
    """

    def __init__(
        self,
        sink: str,
        checkpoint: Storage,
        function: Callable[[Any, int], None],
        form: Literal["arrow", "spark"],
        shaped: Callable[[pa.Table], pa.Table] | None = None,
    ) -> None:
        self.function = function
        self.form = form
        self.shaped = shaped
        self.checkpoint = self.records = checkpoint
        self.sink = sink
        # Spark reads Parquet; for everything else Arrow files are cheaper.
        self.staging = Staging(sink, checkpoint, "results", "parquet" if form == "spark" else "arrow")
        self._delivered: int | None = None

    @property
    def delivered(self) -> int:
        if self._delivered is None:
            self._delivered = delivered(self.records, self.sink)
        return self._delivered

    def damage(self, epoch: int, output: Output) -> str | None:
        return None if epoch <= self.delivered else damage(self.checkpoint, output.as_staged)

    def publish(self, epoch: int, outputs: Sequence[Output], spark: Any) -> None:
        if epoch <= self.delivered or not outputs:
            return
        rows: Any
        if self.form == "spark":
            rows = spark.read.parquet(*(self.checkpoint.spark_path(o.staged) for o in outputs))
        else:
            rows = pa.concat_tables([self._read(epoch, o) for o in outputs])
            rows = rows if self.shaped is None else self.shaped(rows)
        reach("deliver")
        try:
            self.function(rows, epoch)
        except PenstockError:
            raise
        except Exception as error:
            raise UserError(
                f"sink {self.sink}: the function failed on epoch {epoch}: {type(error).__name__}: {error}",
                hint="fix it and start again: the epoch is committed and will be delivered again under the same id",
            ) from error
        reach("delivered")
        self.records.write(_NOTE.format(self.sink), seal({"epoch": epoch}))
        self._delivered = epoch

    def _read(self, epoch: int, output: Output) -> pa.Table:
        # Not mapped: whoever is given the rows may keep them for longer than the file is there.
        try:
            return pa.ipc.open_file(pa.BufferReader(read_whole(self.checkpoint, output.as_staged))).read_all()
        except (OSError, pa.ArrowInvalid, DamagedError) as error:
            raise DamagedError(
                f"sink {self.sink}: the results of epoch {epoch} in {self.checkpoint.path(output.staged)} "
                f"are missing or damaged: {error}",
                name=output.staged,
                hint="start again: its epoch is then run once more",
            ) from error
