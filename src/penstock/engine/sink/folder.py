"""Files in a folder: moved to their final names when their epoch is committed, which can be repeated without harm.

Files of others are neither read, overwritten nor deleted, and no symbolic link below the folder is followed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from penstock.checkpoint.checkpoint import Output
from penstock.checkpoint.fault import reach
from penstock.checkpoint.intact import damage
from penstock.checkpoint.names import STAGING, is_ours, is_result, refuse_links, refuse_links_to
from penstock.checkpoint.storage import Storage, seal, unseal
from penstock.engine.sink.hive import fitted
from penstock.engine.sink.published import Published
from penstock.engine.sink.target import BoundTarget, Staging, Target
from penstock.errors import CheckpointError, UserError
from penstock.pattern.schema import Schema

OWNER = "_penstock/owner.json"


@dataclass(frozen=True)
class FileTarget(Target):
    """Parquet or JSON-lines files in a folder. Plain readers of the folder see committed results only."""

    path: str
    format: Literal["parquet", "json"] = "parquet"
    partition_by: tuple[str, ...] = ()

    def fitted(self, schema: Schema) -> Target:
        return replace(self, partition_by=fitted(self.partition_by, schema, repr(self))) if self.partition_by else self

    def bind(self, sink: str, checkpoint: Storage) -> BoundTarget:
        storage = Storage.at(self.path, checkpoint.durable)
        if storage.local and storage.filesystem.get_file_info(storage.base).is_file:
            raise UserError(f"sink '{self.path}' is a file", hint="name a folder")
        return FolderTarget(Staging(sink, storage, STAGING, self.format, self.partition_by), checkpoint)

    @property
    def home(self) -> str:
        return self.path

    def __repr__(self) -> str:
        by = f", partition_by={list(self.partition_by)}" if self.partition_by else ""
        return f"ps.{'parquet' if self.format == 'parquet' else 'json_lines'}('{self.path}'{by})"


class FolderTarget(BoundTarget):
    def __init__(self, staging: Staging, records: Storage) -> None:
        self.staging = staging
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
            owned = before == layout
        if fresh and (found := [n for n in self._parts() if n not in self.published.after(0)]):
            raise UserError(
                f"{where} holds results that this checkpoint did not write, such as {found[0]}",
                hint="choose an empty folder, or move them away: results are never mixed with those of others",
            )
        if owned:
            return
        try:
            self.storage.make(STAGING)
            self.storage.write(OWNER, seal({"checkpoint": checkpoint_id, "partition_by": layout}))
        except (OSError, CheckpointError) as error:
            raise UserError(f"cannot write to {where}: {error}", hint="check the path") from error

    def _parts(self) -> list[str]:
        """All results that lie here, in folders by value, too."""
        return [n for n in self.storage.tree() if is_result(n)]

    def publish(self, epoch: int, outputs: Sequence[Output], spark: Any) -> None:
        for output in outputs:
            refuse_links_to(self.storage, output.final)
        staged = [o for o in outputs if self.storage.exists(o.staged)]
        for output in staged:
            self._refuse_foreign(epoch, output)
        if outputs:
            self.published.note(epoch, (o.final for o in outputs))
        folders = sorted({o.final.rpartition("/")[0] for o in outputs})
        for folder in filter(None, folders):
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
        if outputs:
            # Before the next manifest is there: only this one could tell that they were to be moved.
            reach(f"settle {epoch}")
            for folder in folders:
                self.storage.sync_folder(folder)

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
        for name in orphans:
            refuse_links_to(self.storage, name)
        guard()
        for name in orphans:
            self.storage.delete(name)
        return orphans


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(columns) or "nothing"
