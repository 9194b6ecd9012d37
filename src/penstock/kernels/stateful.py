"""What every kernel with state has in common: aggregates, joins, duplicate elimination, sorting.

State is a set of immutable runs per port (input), each with optional *marks*: one bit per row and question, such as
whether the row is dead or has found a partner. A kernel is given the runs and the rows that arrived, and answers with
results and instructions: drop this run, skip a prefix of that one, replace the marks of a third, add these. It touches
no file.

What only some kernels can do they declare as a capability: they hear of the circumstances (`Heeding`), do without rows
before they travel (`Shrinking`), need not see every run (`Choosing`), let others merge their runs (`Merging`), close
by the promises behind them (`Closing`), note what fails (`Failing`), and know what takes so much room (`Weighing`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import pyarrow as pa

from penstock.pattern.feedback import Feedback
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Schema
from penstock.plan.orders import Answer, Orders

if TYPE_CHECKING:
    from penstock.kernels.failing import Failed

__all__ = [
    "DEAD",
    "Answer",
    "Choosing",
    "Circumstances",
    "Closing",
    "Failing",
    "Fresh",
    "Heeding",
    "Held",
    "Laziness",
    "Merging",
    "Orders",
    "Shrinking",
    "Stateful",
    "Stepped",
    "Weighing",
    "Word",
]

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
class Stepped:
    """What one epoch did to one bucket of an operator.

    `issued` is what the operator now knows that it will not need, for those upstream: over the schema of its first
    input. `wished` is what it would like to come first, with the input that is to bring it. `doomed` are groups whose
    value is bound to match what somebody does not want, as patterns over the output.
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
    wished: tuple[tuple[int, Feedback], ...] = ()
    doomed: tuple[Pattern, ...] = ()


class Stateful(Protocol):
    """A kernel over rows with state."""

    #: Per port the attributes that decide the bucket; empty sends everything to one.
    spread: tuple[tuple[str, ...], ...]
    #: Per port the attributes to bring; None brings all.
    needed: tuple[tuple[str, ...] | None, ...]

    def step(self, fresh: Sequence[pa.Table | None], held: Sequence[Sequence[Held]], orders: Orders) -> Stepped:
        """Take in the rows that arrived (in order of arrival), then carry out the orders."""
        ...


@dataclass(frozen=True)
class Laziness:
    """When runs are rewritten. What is dead is never seen again, so this moves work, not results.

    A run is rewritten when more than the fraction `rewrite_above` of it is dead; the runs of a slice of time are
    merged when there are more than `merge_above`.
    """

    rewrite_above: float = 0.5
    merge_above: int = 8


@dataclass(frozen=True)
class Word:
    """What the driver tells the tasks of one operator for an epoch: all of it, on this one wire.

    What tasks have to say goes the other way with their reports: what they saw, found out and answer.
    """

    #: What the operator's behaviour says (`Behaviour.tell`), as plain JSON.
    said: Any = None
    #: What to take first.
    preferred: tuple[Pattern, ...] = ()
    #: Values by which groups may be doomed.
    sweep: tuple[Pattern, ...] = ()
    laziness: Laziness = field(default_factory=Laziness)


def _nobody() -> Sequence[int]:
    return (0,)


@dataclass(frozen=True)
class Circumstances:
    """What a kernel may know of the epoch and the bucket beside rows and orders."""

    epoch: int = 0
    bucket: int = 0
    #: Whether this is only to see what would come out: queued work is left alone.
    rehearsal: bool = False
    told: Word = field(default_factory=Word)
    #: How many rows of the operator wait in each bucket before the epoch.
    waiting: Callable[[], Sequence[int]] = _nobody
    #: Whether the groups in state are to be looked at too, should some be doomed.
    everywhere: bool = False
    #: How far the operator was closed before the epoch: the last label, in ticks.
    closed: int | None = None
    #: Takes results as soon as there are many.
    emit: Callable[[pa.Table], None] | None = None


@runtime_checkable
class Heeding(Protocol):
    """A kernel that heeds the circumstances."""

    def under(self, circumstances: Circumstances) -> Self:
        """The same kernel for an epoch and a bucket, with nothing noted yet."""
        ...


@runtime_checkable
class Shrinking(Protocol):
    """A kernel that can do without some rows before it has seen the others: they need not travel."""

    def shrink(self, rows: pa.Table) -> pa.Table:
        """Of rows that arrive together, in their order, those that can matter."""
        ...


@runtime_checkable
class Closing(Protocol):
    """A kernel that closes what can get no further result, mostly by one attribute of the output, `closing`:
    "everything up to this value"."""

    closing: str | None
    output_schema: Schema


@runtime_checkable
class Choosing(Protocol):
    """A kernel that need not see a run which the orders cannot touch."""

    def touches(self, low: int | None, high: int | None, orders: Orders) -> bool:
        """Whether the orders may touch a run, judged by the bounds that the manifest tells."""
        ...


@runtime_checkable
class Merging(Protocol):
    """A kernel whose runs others merge: sorted by `closing`, one row for what `grouping` tells apart."""

    closing: str | None
    grouping: tuple[str, ...]

    def merge(self, tables: Sequence[pa.Table]) -> pa.Table:
        """The rows of several runs as those of one, in any order."""
        ...


@runtime_checkable
class Failing(Protocol):
    """A kernel that notes on what its expressions fail, instead of failing itself."""

    @property
    def failed(self) -> Sequence[Failed]: ...

    @property
    def failed_schema(self) -> Schema:
        """Of what these are rows."""
        ...


@runtime_checkable
class Weighing(Protocol):
    """A kernel that can say what is to blame when there is no room."""

    def heaviest(self, fresh: Sequence[pa.Table | None], held: Sequence[Sequence[Held]]) -> tuple[str, int] | None:
        """The key that makes the most results, and how many; None if no single one does."""
        ...
