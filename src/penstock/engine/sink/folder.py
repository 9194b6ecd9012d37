"""Files in a folder: moved to their final names when their epoch is committed, which can be repeated without harm.

Files of others are neither read, overwritten nor deleted, and no symbolic link below the folder is followed.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from penstock.checkpoint.checkpoint import Output
from penstock.checkpoint.fault import reach
from penstock.checkpoint.intact import damage
from penstock.checkpoint.names import STAGING, is_ours, is_result, is_table_part, refuse_links, refuse_links_to
from penstock.checkpoint.storage import Storage, seal, unseal
from penstock.engine.sink.final import MARKER, FinalUpTo
from penstock.engine.sink.hive import fitted
from penstock.engine.sink.published import Published
from penstock.engine.sink.target import BoundTarget, Changes, Staging, Target
from penstock.errors import CheckpointError, UserError
from penstock.pattern.schema import Schema
from penstock.plan.weight import PART, without_weight

OWNER = "_penstock/owner.json"
#: What a crash leaves of a marker that was being written.
_HALF = re.compile(r"_penstock/\.final\.json\.\d+\.partial")


@dataclass(frozen=True)
class FileTarget(Target):
    """Parquet or JSON-lines files in a folder. Plain readers of the folder see committed results only."""

    path: str
    format: Literal["parquet", "json"] = "parquet"
    partition_by: tuple[str, ...] = ()
    changes: Changes = "log"
    #: Whether it is a table in parts that are replaced.
    folds: bool = False

    @property
    def takes(self) -> Changes:
        return self.changes

    @property
    def laid_out_by(self) -> tuple[str, ...]:
        return self.partition_by

    def fitted(self, schema: Schema) -> Target:
        columns = fitted(self.partition_by, without_weight(schema), repr(self)) if self.partition_by else ()
        return replace(self, partition_by=columns, folds=self.changes == "fold" and PART in schema)

    def bind(self, sink: str, checkpoint: Storage) -> BoundTarget:
        storage = Storage.at(self.path, checkpoint.durable)
        if storage.local and storage.filesystem.get_file_info(storage.base).is_file:
            raise UserError(f"sink '{self.path}' is a file", hint="name a folder")
        return FolderTarget(Staging(sink, storage, STAGING, self.format, self.partition_by, self.folds), checkpoint)

    @property
    def home(self) -> str:
        return self.path

    def __repr__(self) -> str:
        by = f", partition_by={list(self.partition_by)}" if self.partition_by else ""
        by += f", changes='{self.changes}'" if self.changes != "log" else ""
        return f"ps.{'parquet' if self.format == 'parquet' else 'json_lines'}('{self.path}'{by})"


class FolderTarget(BoundTarget):
    def __init__(self, staging: Staging, records: Storage) -> None:
        self.staging, self.folds = staging, staging.folds
        self.storage = staging.storage
        self.records = records

    def known(self, target: str) -> dict[str, str]:
        return {"target": target, "folder": self.storage.url}

    @cached_property
    def published(self) -> Published:
        return Published(self.records, self.staging.sink)

    def claim(self, checkpoint_id: str, *, fresh: bool = False) -> None:
        where = f"sink '{self.storage.url}'"
        refuse_links(self.storage, ("_penstock/owner.json", STAGING))
        layout = list(self.staging.partition_by)
        owned = self.storage.exists(OWNER)
        if owned:
            try:
                owner = unseal(self.storage.read(OWNER), OWNER)
            except CheckpointError as error:
                hint = f"delete {OWNER} there if all results in the folder are this query's"
                raise CheckpointError(f"{where}: {error.message}", hint=hint) from None
            if owner.get("checkpoint") != checkpoint_id:
                raise UserError(
                    f"{where} holds the results of another checkpoint",
                    hint="continue with that checkpoint, choose another folder, or delete this one",
                )
            before = owner.get("partition_by", [])
            if before != layout and not fresh:
                raise UserError(
                    f"{where} is laid out by {_listed(before)}, not by {_listed(layout)}, as partition_by= says now",
                    hint="keep the layout that its results have, or choose another folder",
                )
            if owner.get("folds", False) != self.folds and not fresh:
                is_now, was = ("one table", "changes") if self.folds else ("changes", "one table")
                raise UserError(
                    f"{where} holds {was}, and is now to hold {is_now}, as changes= and consistency= say",
                    hint="keep the form that its results have, or choose another folder and checkpoint",
                )
            owned = before == layout
        if fresh and (found := sorted({*self._parts()} - {*self.published.after(0), *self.published.parts})):
            raise UserError(
                f"{where} holds results that this checkpoint did not write, such as {found[0]}",
                hint="choose an empty folder, or move them away: results are never mixed with those of others",
            )
        if owned:
            return
        try:
            self.storage.make(STAGING)
            record = {"checkpoint": checkpoint_id, "partition_by": layout} | ({"folds": True} if self.folds else {})
            self.storage.write(OWNER, seal(record))
        except (OSError, CheckpointError) as error:
            raise UserError(f"cannot write to {where}: {error}", hint="check the path") from error

    def _parts(self) -> list[str]:
        """All results that lie here, in folders by value, too."""
        return [n for n in self.storage.tree() if is_result(n)]

    def publish(self, epoch: int, outputs: Sequence[Output], spark: Any) -> None:
        for output in outputs:
            refuse_links_to(self.storage, output.final)
        staged = [o for o in outputs if self.storage.exists(o.staged)]
        # Parts of a table take the place of those before.
        table = {o.final for o in outputs if is_table_part(o.final)}
        ours = self.published.parts if table else frozenset()
        for output in staged:
            if output.final not in ours:
                self._refuse_foreign(epoch, output)
        self.published.note_parts(table)
        if outputs and not table:
            self.published.note(epoch, (o.final for o in outputs))
        for folder in filter(None, _folders(outputs)):
            self._make(epoch, folder)
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

    def settle(self, epoch: int, outputs: Sequence[Output]) -> None:
        if outputs:
            reach(f"settle {epoch}")
            for folder in _folders(outputs):
                self.storage.sync_folder(folder)

    def mark(self, epoch: int, final: FinalUpTo) -> None:
        # Not flushed: a start writes it again. What it speaks of is on the disk.
        self.storage.write(MARKER, final.marker(epoch), sync=False)

    def _make(self, epoch: int, folder: str) -> None:
        """A folder of results, on the disk before anything is moved there: a file must not go down with its folder."""
        try:
            self.storage.make(folder)
        except OSError as error:
            raise CheckpointError(
                f"sink '{self.storage.url}': cannot make the folder {folder}: {error}",
                hint=f"move away what is there, or fix access; the results of epoch {epoch} are kept until then",
            ) from error
        self.storage.settle(folder)

    def damage(self, epoch: int, output: Output) -> str | None:
        refuse_links_to(self.storage, output.final)
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
        refuse_links_to(self.storage, output.final)
        there = self.storage.exists(output.final)
        hurt = there and damage(self.storage, output.as_published, deep=self.storage.local) is not None
        return self.storage.path(output.final) if hurt else None

    def withdraw(self, outputs: Sequence[Output]) -> None:
        for output in outputs:
            refuse_links_to(self.storage, output.final)
        for output in outputs:
            # A part of a table is replaced, and until then is what it was.
            if not is_table_part(output.final):
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
        orphans += [n for n in map("_penstock/{}".format, self.storage.names("_penstock")) if _HALF.fullmatch(n)]
        for name in orphans:
            refuse_links_to(self.storage, name)
        guard()
        for name in orphans:
            self.storage.delete(name)
        return orphans


def _folders(outputs: Sequence[Output]) -> list[str]:
    return sorted({o.final.rpartition("/")[0] for o in outputs})


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(columns) or "nothing"
