"""Joins: which events of several streams belong together.

Two events match when their keys are equal, their times lie in the band, and the residual predicate is true. A *band*
is the one form behind every time window of a join: `low ≤ right − left ≤ high`. The right event joins left ones of the
last `high` ticks, the left event joins right ones of the last `−low` ticks, in event time. So results do not depend on
when events arrive.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from penstock.pattern.duration import format_duration
from penstock.plan.operator import Operator

if TYPE_CHECKING:
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


@dataclass(frozen=True, eq=False)
class Join(Operator):
    """Two inputs, joined on equal keys, within a band of time or the last rows of each key.

    `keys` pairs attributes of left and right. With `null_safe`, null equals null (as intersect and difference want);
    otherwise an event with a null key has no partner. With `rows` (n, m), in order of time and per key, a left event
    joins the last m right events before it and a right event the last n left ones; None is no limit.
    A `thrifty` join tells an input what finds no partner any more; an `impatient` one asks for partners of what waits.
    `residual` is a predicate over the attributes of `pair`: all of the left, then all of the right under unique names.
    """

    how: JoinKind = field(kw_only=True)
    keys: tuple[tuple[str, str], ...] = field(kw_only=True)
    columns: tuple[Taken, ...] = field(kw_only=True)
    band: Band | None = None
    rows: tuple[int | None, int | None] | None = None
    times: tuple[str, str] | None = None
    residual: Expression | None = None
    pair: tuple[tuple[int, str, str], ...] = ()
    null_safe: bool = False
    estimate: str = ""
    thrifty: bool = False
    impatient: bool = False

    @property
    def detail(self) -> str:
        tells = [*(["thrifty"] if self.thrifty else []), *(["impatient"] if self.impatient else [])]
        return "; ".join([self.meaning, *([self.estimate] if self.estimate else []), *tells])

    @property
    def meaning(self) -> str:
        """What is joined, without what it is expected to cost."""
        on = " and ".join(a if a == b else f"{a} = {b}" for a, b in self.keys)
        parts = [f"{self.how} on {on}"]
        if self.band is not None:
            parts.append(str(self.band))
        if self.rows is not None:
            left, right = self.rows
            parts.append(f"last {left or 'all'} left and {right or 'all'} right rows of each key")
        if self.residual is not None:
            parts.append(self.residual.text)
        return ", ".join(parts)
