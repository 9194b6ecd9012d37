"""Sinks: where results go.

>>> import penstock as ps
>>> ps.parquet("out"), ps.memory()
(ps.parquet('out'), ps.memory())
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import pyarrow as pa

from penstock.checkpoint.storage import Storage, folder_text
from penstock.engine.sink.folder import FileTarget
from penstock.engine.sink.target import BoundTarget, DeliverTarget, Target, checked_changes
from penstock.errors import UserError, counted, shortly
from penstock.kernels.weights import net, spelled_out
from penstock.plan.weight import WEIGHT

__all__ = ["BoundTarget", "MemoryTarget", "Target", "console", "deliver", "json_lines", "memory", "parquet"]


Form = Literal["log", "fold", "final"]


def parquet(path: str | os.PathLike[str], *, partition_by: str | Sequence[str] = (), changes: Form = "log") -> Target:
    """Parquet files in a folder, exactly once.

    With `partition_by=["day"]` in folders by value, `day=2026-01-01/`, as Hive lays them out.

    Of results that are corrected (`consistency=`) every change is written, with its `_weight`; with `changes="final"`
    only results that can no longer change, and with `changes="fold"` the folder holds the table as it is now.
    """
    return _files(path, "parquet", partition_by, changes)


def json_lines(
    path: str | os.PathLike[str], *, partition_by: str | Sequence[str] = (), changes: Form = "log"
) -> Target:
    """Files with one JSON object a line in a folder, exactly once; `partition_by` and `changes` as for `parquet`."""
    return _files(path, "json", partition_by, changes)


def _files(path: object, format: Literal["parquet", "json"], partition_by: object, changes: object) -> Target:
    call = "parquet" if format == "parquet" else "json_lines"
    form = checked_changes(changes, ["log", "fold", "final"], f"ps.{call}('out'")
    return FileTarget(folder_text(path, f"ps.{call}('out')"), format, _columns(partition_by, call), form)


def _columns(given: object, call: str) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, list | tuple) or not all(isinstance(n, str) and n for n in names):
        raise UserError(
            f"{call}(partition_by={shortly(given)}): these are not names of columns",
            hint=f"write them as ps.{call}('out', partition_by=['day'])",
        )
    return tuple(names)


def deliver(
    function: Callable[[Any, int], None],
    *,
    form: Literal["arrow", "spark"] = "arrow",
    changes: Literal["log", "pairs"] = "log",
) -> Target:
    """Call `function(rows, epoch)` after each epoch that has results.

    With `form="spark"` rows are a Spark DataFrame, ready for any batch writer; otherwise a pyarrow.Table. After a
    crash an epoch may be delivered again with the same id.

    Results that are corrected (`consistency=`) come as rows with a `_weight`, or with `changes="pairs"` as what was and
    what is now: a table of the columns `before` and `after`, null where there is none.
    """
    if not callable(function):
        raise UserError(f"deliver({function!r}): not a function", hint="deliver(lambda rows, epoch: …)")
    if form not in ("arrow", "spark"):
        raise UserError(f"deliver(form='{form}') is not possible", hint="'arrow' or 'spark'")
    form_of_changes = checked_changes(changes, ["log", "pairs"], "deliver(…")
    if form_of_changes == "pairs" and form == "spark":
        raise UserError("deliver(changes='pairs') needs form='arrow'", hint="leave one of the two out")
    return DeliverTarget(function, form, changes=form_of_changes)


@dataclass(frozen=True)
class MemoryTarget(Target):
    """Results kept in the driver's memory, for tests and notebooks."""

    tables: list[tuple[int, pa.Table]] = field(default_factory=list, repr=False, compare=False)
    _kept: set[tuple[str, int]] = field(default_factory=set, repr=False, compare=False)

    def bind(self, sink: str, checkpoint: Storage) -> BoundTarget:
        return DeliverTarget(partial(self._keep, checkpoint.url), "arrow", "memory").bind(sink, checkpoint)

    def _keep(self, checkpoint: str, rows: pa.Table, epoch: int) -> None:
        # By checkpoint, too: another run that is given this target has an epoch 1 of its own.
        if (checkpoint, epoch) not in self._kept:
            self._kept.add((checkpoint, epoch))
            self.tables.append((epoch, rows))

    def table(self) -> pa.Table | None:
        """All results so far; None while there are none (`collect()` returns an empty table of the schema then)."""
        return pa.concat_tables([t for _, t in self.tables]) if self.tables else None

    def rows(self) -> list[dict[str, Any]]:
        table = self.table()
        return [] if table is None else table.to_pylist()

    def holding(self) -> list[dict[str, Any]]:
        """What holds now: of results that are corrected, those that were not taken back, without their weights."""
        table = self.table()
        if table is None or WEIGHT not in table.column_names:
            return self.rows()
        return list(spelled_out(net([table])).to_pylist())

    def __repr__(self) -> str:
        return "ps.memory()"


def memory() -> MemoryTarget:
    """Results in the driver's memory: `.rows()`, `.table()`; of those that are corrected what holds, `.holding()`."""
    return MemoryTarget()


def console(limit: int = 20) -> Target:
    """Print the first rows of each epoch's results; where they are corrected, + is what holds now, − what did."""
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
        raise UserError(f"console(limit={limit!r}) is not possible", hint="a whole number of rows, 0 or more")

    def show(rows: pa.Table, epoch: int) -> None:
        from penstock.engine.terminal import grid, terminal

        what = "change" if WEIGHT in rows.column_names else "row"
        terminal().print(grid(_signed(rows.slice(0, limit)), limit, f"epoch {epoch}: {counted(rows.num_rows, what)}"))

    return DeliverTarget(show, "arrow", "console")


def _signed(rows: pa.Table) -> pa.Table:
    """Changes as people read them, with a sign in front instead of a weight behind."""
    if WEIGHT not in rows.column_names:
        return rows
    signs = [("+" if w > 0 else "−") + (str(abs(w)) if abs(w) > 1 else "") for w in rows[WEIGHT].to_pylist()]
    return rows.drop_columns([WEIGHT]).add_column(0, "", pa.array(signs, pa.string()))
