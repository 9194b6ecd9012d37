"""Where results go, and how they get there exactly once.

Tasks write results as files under names of their own. The manifest of the epoch names those that count. After the
commit the driver publishes them: files are moved to their final, deterministic names, which can be repeated after a
crash without harm; other targets are handed the rows together with the id of the epoch.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.checkpoint.checkpoint import Output
from penstock.checkpoint.fault import reach
from penstock.checkpoint.intact import DamagedError, damage, read_whole, writing
from penstock.checkpoint.names import PART, STAGING, is_ours, refuse_links
from penstock.checkpoint.storage import Storage, seal, unseal
from penstock.engine.sink.published import Published
from penstock.errors import CheckpointError, PenstockError, UserError
from penstock.kernels.duck import query

OWNER = "_penstock/owner.json"


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

    def write(self, table: pa.Table, epoch: int, task: str) -> Output:
        """Leave results for the driver to publish."""
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
        final = f"part-{epoch:06d}-{task}.{suffix}"
        return Output(self.sink, staged, final, table.num_rows, tally.bytes, tally.crc)


def json_lines(table: pa.Table) -> bytes:
    """One JSON object per row; timestamps as ISO text."""
    if table.num_rows == 0:
        return b""
    lines = query("SELECT to_json(t)::VARCHAR AS line FROM t", t=table)["line"].to_pylist()
    return ("\n".join(lines) + "\n").encode()


@dataclass(frozen=True)
class Target:
    """A declaration of where results go."""

    def bind(self, sink: str, checkpoint: Storage) -> BoundTarget:
        raise NotImplementedError

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

    def publish(self, epoch: int, outputs: Sequence[Output], spark: Any) -> None:
        raise NotImplementedError

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
class FileTarget(Target):
    """Parquet or JSON-lines files in a folder. Plain readers of the folder see committed results only."""

    path: str
    format: Literal["parquet", "json"] = "parquet"

    def bind(self, sink: str, checkpoint: Storage) -> BoundTarget:
        storage = Storage.at(self.path, checkpoint.durable)
        if storage.local and storage.filesystem.get_file_info(storage.base).is_file:
            raise UserError(f"sink '{self.path}' is a file", hint="name a folder")
        return FolderTarget(Staging(sink, storage, STAGING, self.format), checkpoint)

    @property
    def home(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"ps.{'parquet' if self.format == 'parquet' else 'json_lines'}('{self.path}')"


class FolderTarget(BoundTarget):
    def __init__(self, staging: Staging, records: Storage) -> None:
        self.staging = staging
        self.storage = staging.storage
        self.records = records

    @cached_property
    def published(self) -> Published:
        return Published(self.records, self.staging.sink)

    def claim(self, checkpoint_id: str, *, fresh: bool = False) -> None:
        where = f"sink '{self.storage.url}'"
        refuse_links(self.storage, ("_penstock/owner.json", STAGING))
        owned = self.storage.exists(OWNER)
        if owned:
            try:
                owner = unseal(self.storage.read(OWNER), OWNER).get("checkpoint")
            except CheckpointError as error:
                hint = f"delete {OWNER} there if all results in the folder are this query's"
                raise CheckpointError(f"{where}: {error.message}", hint=hint) from None
            if owner != checkpoint_id:
                raise UserError(
                    f"{where} holds the results of another checkpoint",
                    hint="continue with that checkpoint, choose another folder, or delete this one",
                )
        if fresh and (found := [n for n in self._parts() if n not in self.published.after(0)]):
            raise UserError(
                f"{where} holds results that this checkpoint did not write, such as {found[0]}",
                hint="choose an empty folder, or move them away: results are never mixed with those of others",
            )
        if owned:
            return
        try:
            self.storage.make(STAGING)
            self.storage.write(OWNER, seal({"checkpoint": checkpoint_id}))
        except (OSError, CheckpointError) as error:
            raise UserError(f"cannot write to {where}: {error}", hint="check the path") from error

    def _parts(self) -> list[str]:
        return [n for n in self.storage.names() if PART.fullmatch(n)]

    def publish(self, epoch: int, outputs: Sequence[Output], spark: Any) -> None:
        staged = [o for o in outputs if self.storage.exists(o.staged)]
        for output in staged:
            self._refuse_foreign(epoch, output)
        if outputs:
            self.published.note(epoch, (o.final for o in outputs))
        for output in outputs:
            reach(f"publish {output.final}")
            if output in staged:
                # Somebody who has taken over may have moved it just now; whether it is there is looked at below.
                with contextlib.suppress(FileNotFoundError):
                    self.storage.move(output.staged, output.final)
            if not self.storage.exists(output.final):
                raise CheckpointError(
                    f"sink '{self.storage.url}': {output.final} of epoch {epoch} is gone",
                    hint="results were deleted while the query was running; start again with a new checkpoint",
                )
        if outputs:
            # Before the next manifest is there: only this one could tell that they were to be moved.
            reach(f"settle {epoch}")
            self.storage.sync_folder()

    def damage(self, epoch: int, output: Output) -> str | None:
        # Object stores look after what they have confirmed; reading it all again would be dear.
        why = damage(self.storage, output.as_published, deep=self.storage.local)
        if not self.storage.exists(output.staged):
            return why
        waiting = damage(self.storage, output.as_staged, deep=self.storage.local)
        if waiting is not None and why is None:
            self.storage.delete(output.staged)  # It must not take the place of the good one.
            return None
        return waiting

    def damaged_part(self, output: Output) -> str | None:
        there = self.storage.exists(output.final)
        hurt = there and damage(self.storage, output.as_published, deep=self.storage.local) is not None
        return self.storage.path(output.final) if hurt else None

    def withdraw(self, outputs: Sequence[Output]) -> None:
        for output in outputs:
            self.storage.delete(output.final)

    def _refuse_foreign(self, epoch: int, output: Output) -> None:
        """Never overwrite a file that this query has not written."""
        # Where a move is a copy and a deletion, a crash may have come between the two: then both are the same.
        if self.storage.exists(output.final) and self.storage.read(output.final) != self.storage.read(output.staged):
            raise CheckpointError(
                f"sink '{self.storage.url}': there is a file {output.final} already, which is not by this query",
                hint=f"move it away and start again: the results of epoch {epoch} are kept until then",
            )

    def sweep(self, keep: set[str], epoch: int, guard: Callable[[], None] = lambda: None) -> list[str]:
        orphans = [n for n in self.storage.tree(STAGING) if n not in keep and is_ours(n)]
        orphans += [n for n in self.published.after(epoch) if self.storage.exists(n)]
        guard()
        for name in orphans:
            self.storage.delete(name)
        return orphans


@dataclass(frozen=True)
class DeliverTarget(Target):
    """Rows handed to a function on the driver, once per committed epoch, with the epoch's id."""

    function: Callable[[Any, int], None] = field(repr=False)
    form: Literal["arrow", "spark"] = "arrow"
    name: str = "deliver"

    def bind(self, sink: str, checkpoint: Storage) -> BoundTarget:
        return DriverTarget(sink, checkpoint, self.function, self.form)

    def __repr__(self) -> str:
        return f"ps.{self.name}({'' if self.name != 'deliver' else getattr(self.function, '__name__', 'function')})"


class DriverTarget(BoundTarget):
    """Delivers from the driver and remembers, durably, which epoch was delivered last.

    A crash between delivery and that note means the same epoch is delivered again under the same id, so a function
    that ignores ids it has seen gets every row exactly once.
    """

    def __init__(
        self, sink: str, checkpoint: Storage, function: Callable[[Any, int], None], form: Literal["arrow", "spark"]
    ) -> None:
        self.function = function
        self.form = form
        self.checkpoint = self.records = checkpoint
        self.sink = sink
        # Spark reads Parquet; for everything else Arrow files are cheaper.
        self.staging = Staging(sink, checkpoint, "results", "parquet" if form == "spark" else "arrow")
        self._note = f"delivered/{sink}.json"
        self._delivered: int | None = None

    @property
    def delivered(self) -> int:
        if self._delivered is None:
            self._delivered = 0
            # A note that is torn says as much as none: the epoch is delivered again, under the same id.
            with contextlib.suppress(CheckpointError, FileNotFoundError, KeyError, TypeError, ValueError):
                self._delivered = int(unseal(self.records.read(self._note), self._note)["epoch"])
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
        self.records.write(self._note, seal({"epoch": epoch}))
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
