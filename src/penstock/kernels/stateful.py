"""What every kernel with rows for state has in common: joins, duplicate elimination, sorting.

State is a set of immutable runs per port (input), each with optional *marks*: one bit per row and question, such as
whether the row is dead or has found a partner. A kernel is given the runs and the rows that arrived, and answers with
results and instructions: drop this run, replace the marks of that one, add these. It touches no file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import pyarrow as pa

from penstock.pattern.feedback import Feedback
from penstock.plan.orders import Answer, Orders

__all__ = ["DEAD", "Answer", "Fresh", "Held", "Orders", "Shrinking", "Stateful", "Step"]

#: The mark of rows that are of no further use.
DEAD = "dead"


@dataclass(frozen=True)
class Held:
    """One stored run as a kernel sees it. On local disks rows and marks are mapped, so only what is looked at costs."""

    name: str
    rows: pa.Table
    marks: pa.Table | None = None
    group: int = 0
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True)
class Fresh:
    """A run to be stored. `low` and `high` bound the time of its rows in ticks, `group` names its slice of time."""

    port: int
    rows: pa.Table
    group: int = 0
    low: int | None = None
    high: int | None = None
    marks: pa.Table | None = None


@dataclass(frozen=True)
class Step:
    """What one epoch did to one bucket of an operator.

    `issued` is what the operator now knows that it will not need, for those upstream: over the schema of its first
    input.
    """

    output: pa.Table
    dropped: tuple[str, ...] = ()
    marked: tuple[tuple[str, pa.Table], ...] = ()
    added: tuple[Fresh, ...] = ()
    answers: tuple[tuple[Answer, ...], ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    skipped: tuple[tuple[str, int], ...] = ()
    """Runs without marks, and how many of their first rows are done with."""
    issued: tuple[Feedback, ...] = ()


class Stateful(Protocol):
    """A kernel over rows with state."""

    #: Per port the attributes that decide the bucket; empty sends everything to one.
    spread: tuple[tuple[str, ...], ...]
    #: Per port the attributes to bring; None brings all.
    needed: tuple[tuple[str, ...] | None, ...]

    def step(self, fresh: Sequence[pa.Table | None], held: Sequence[Sequence[Held]], orders: Orders) -> Step:
        """Take in the rows that arrived (in order of arrival), then carry out the orders."""
        ...


@runtime_checkable
class Shrinking(Protocol):
    """A kernel that can do without some rows before it has seen the others: they need not travel."""

    def shrink(self, rows: pa.Table) -> pa.Table:
        """Of rows that arrive together, in their order, those that can matter."""
        ...
