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
from penstock.engine.sink.target import BoundTarget, DeliverTarget, Target
from penstock.errors import UserError, counted, shortly

__all__ = ["BoundTarget", "MemoryTarget", "Target", "console", "deliver", "json_lines", "memory", "parquet"]


def parquet(path: str | os.PathLike[str], *, partition_by: str | Sequence[str] = ()) -> Target:
    """Parquet files in a folder, exactly once.

    With `partition_by=["day"]` in folders by value, `day=2026-01-01/`, as Hive lays them out.
    """
    return FileTarget(folder_text(path, "ps.parquet('out')"), "parquet", _columns(partition_by, "parquet"))


def json_lines(path: str | os.PathLike[str], *, partition_by: str | Sequence[str] = ()) -> Target:
    """Files with one JSON object a line in a folder, exactly once; with `partition_by`, in folders by value."""
    return FileTarget(folder_text(path, "ps.json_lines('out')"), "json", _columns(partition_by, "json_lines"))


def _columns(given: object, call: str) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, list | tuple) or not all(isinstance(n, str) and n for n in names):
        raise UserError(
            f"{call}(partition_by={shortly(given)}): these are not names of columns",
            hint=f"write them as ps.{call}('out', partition_by=['day'])",
        )
    return tuple(names)


def deliver(function: Callable[[Any, int], None], *, form: Literal["arrow", "spark"] = "arrow") -> Target:
    """Call `function(rows, epoch)` after each epoch that has results.

    With `form="spark"` rows are a Spark DataFrame, ready for any batch writer; otherwise a pyarrow.Table. After a
    crash an epoch may be delivered again with the same id.
    """
    if not callable(function):
        raise UserError(f"deliver({function!r}): not a function", hint="deliver(lambda rows, epoch: …)")
    if form not in ("arrow", "spark"):
        raise UserError(f"deliver(form='{form}') is not possible", hint="'arrow' or 'spark'")
    return DeliverTarget(function, form)


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

    def __repr__(self) -> str:
        return "ps.memory()"


def memory() -> MemoryTarget:
    """Results in the driver's memory: `.rows()`, `.table()`."""
    return MemoryTarget()


def console(limit: int = 20) -> Target:
    """Print the first rows of each epoch's results."""
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
        raise UserError(f"console(limit={limit!r}) is not possible", hint="a whole number of rows, 0 or more")

    def show(rows: pa.Table, epoch: int) -> None:
        from penstock.engine.terminal import grid, terminal

        terminal().print(grid(rows, limit, f"epoch {epoch}: {counted(rows.num_rows, 'row')}"))

    return DeliverTarget(show, "arrow", "console")
