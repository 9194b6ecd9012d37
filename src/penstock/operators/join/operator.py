"""Joins: which events of several streams belong together.

Two events match when their keys are equal, their times lie in the band, and the residual predicate is true. A *band*
is the one form behind every time window of a join: `low ≤ right − left ≤ high`. The right event joins left ones of the
last `high` ticks, the left event joins right ones of the last `−low` ticks, in event time. So results do not depend on
when events arrive.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from penstock.pattern.duration import format_duration
from penstock.pattern.schema import Attribute, Schema
from penstock.plan.operator import Operator
from penstock.plan.spec import Carried

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.plan.spec import Lineage
    from penstock.sql.expression import Expression


JoinKind = Literal["inner", "left", "right", "full", "semi", "anti"]


KINDS: tuple[JoinKind, ...] = ("inner", "left", "right", "full", "semi", "anti")


@dataclass(frozen=True)
class Band:
    """`low ≤ right time − left time ≤ high`, in ticks of the time attributes; None is open."""

    left: str
    right: str
    low: int | None
    high: int | None
    timed: bool = True

    def __str__(self) -> str:
        def shown(ticks: int) -> str:
            return format_duration(ticks) if self.timed else str(ticks)

        parts = []
        if self.low is not None:
            sign = "-" if self.low < 0 else "+"
            parts.append(f"right.{self.right} >= left.{self.left} {sign} {shown(abs(self.low))}")
        if self.high is not None:
            sign = "-" if self.high < 0 else "+"
            parts.append(f"right.{self.right} <= left.{self.left} {sign} {shown(abs(self.high))}")
        return " and ".join(parts)


@dataclass(frozen=True)
class Taken:
    """An attribute of a join's output: from which inputs, first non-null wins, under which names there."""

    name: str
    origins: tuple[tuple[int, str], ...]


#: The inputs of each kind of join whose events come out alone, padded with nulls or as they are, when they have no
#: partner: such results wait until no partner can come any more.
LONELY: Mapping[JoinKind, tuple[int, ...]] = {
    "inner": (),
    "left": (0,),
    "right": (1,),
    "full": (0, 1),
    "semi": (),
    "anti": (0,),
}


#: The inputs that a result may be without, so that what would come from there is null, or is not there at all.
PADDED: Mapping[JoinKind, frozenset[int]] = {
    "inner": frozenset(),
    "left": frozenset({1}),
    "right": frozenset({0}),
    "full": frozenset({0, 1}),
    "semi": frozenset({1}),
    "anti": frozenset({1}),
}


@dataclass(frozen=True, eq=False)
class Joined(Operator):
    """Two inputs, joined on equal keys: what `Join` and `RowsJoin` have in common.

    `keys` pairs attributes of left and right. With `null_safe`, null equals null (as intersect and difference want);
    otherwise an event with a null key has no partner. An `impatient` join asks for partners of what waits.
    `residual` is a predicate over the attributes of `pair`: all of the left, then all of the right under unique names.
    """

    how: JoinKind = field(kw_only=True)
    keys: tuple[tuple[str, str], ...] = field(kw_only=True)
    columns: tuple[Taken, ...] = field(kw_only=True)
    residual: Expression | None = None
    pair: tuple[tuple[int, str, str], ...] = ()
    null_safe: bool = False
    estimate: str = ""
    impatient: bool = False

    @property
    def side_names(self) -> tuple[str, ...]:
        """What people call its inputs."""
        return ("left", "right")

    @property
    def detail(self) -> str:
        return "; ".join([self.meaning, *([self.estimate] if self.estimate else []), *self.manners])

    @property
    def meaning(self) -> str:
        """What is joined, without what it is expected to cost."""
        on = " and ".join(a if a == b else f"{a} = {b}" for a, b in self.keys)
        residual = "" if self.residual is None else self.residual.text
        return ", ".join(part for part in (f"{self.how} on {on}", self.nearness, residual) if part)

    @property
    def nearness(self) -> str:
        """Which events with its key an event joins; empty if all."""
        return ""

    @property
    def manners(self) -> tuple[str, ...]:
        """How it talks to its inputs; that decides no result."""
        return ("impatient",) if self.impatient else ()


@dataclass(frozen=True, eq=False)
class Join(Joined):
    """Two inputs, joined on equal keys, within a band of time.

    A `thrifty` join tells an input what finds no partner any more.
    """

    band: Band | None = None
    thrifty: bool = False

    @property
    def nearness(self) -> str:
        return "" if self.band is None else str(self.band)

    @property
    def manners(self) -> tuple[str, ...]:
        return (*(["thrifty"] if self.thrifty else []), *super().manners)


def lineage_of(columns: Sequence[Taken], padded: frozenset[int] = frozenset()) -> Lineage:
    """What the columns of a join carry, of whose inputs those `padded` may be missing in a result."""
    return {c.name: Carried(c.origins, padded=padded) for c in columns}


def join_definition(operator: Joined) -> str:
    """What decides the results of a join of two inputs."""
    nulls = "; nulls are alike" if operator.null_safe else ""
    return f"{operator.meaning}; {origins_in_words(operator.columns, operator.side_names)}{nulls}"


def origins_in_words(columns: Sequence[Taken], inputs: Sequence[str]) -> str:
    """Where the attributes of a join come from, the first that is not null: `trip ← left.trip, right.trip`."""
    return "; ".join(f"{c.name} ← {', '.join(f'{inputs[k]}.{name}' for k, name in c.origins)}" for c in columns)


def pair_schema(join: Joined) -> Schema:
    """The attributes of a pair of events, under the names a residual predicate knows them by."""
    return Schema(tuple(Attribute(n, join.inputs[side].schema.type_of(a)) for side, a, n in join.pair))
