"""Ranges: the values between two ends."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, final

import pyarrow as pa
import pyarrow.compute as pc

from penstock.pattern.gap import BEFORE_ALL, BEHIND_ALL, Cut, Cutter, cutter, merged, plain_cut
from penstock.pattern.restriction.base import Restriction
from penstock.pattern.restriction.canonical import EDGES, check_namable, without_nulls
from penstock.pattern.restriction.values import NOTHING, Equal
from penstock.pattern.types import coerce_value, sql_literal, value_text, value_to_json


@final
@dataclass(frozen=True, slots=True)
class Range(Restriction):
    """The values between two ends; None leaves an end open. `Range(None, None)` is every value but null."""

    is_range: ClassVar[bool] = True

    low: Any
    high: Any
    low_closed: bool = False
    high_closed: bool = False

    def __post_init__(self) -> None:
        for end, closed in ((self.low, "low_closed"), (self.high, "high_closed")):
            if end is None:
                object.__setattr__(self, closed, False)
            else:
                check_namable(end)

    def low_cut(self, cut: Cutter = plain_cut) -> Cut:
        return BEFORE_ALL if self.low is None else cut(self.low, 0 if self.low_closed else 1)

    def high_cut(self, cut: Cutter = plain_cut) -> Cut:
        return BEHIND_ALL if self.high is None else cut(self.high, 1 if self.high_closed else 0)

    def matches(self, value: Any) -> bool:
        if value is None or value != value:  # NaN alone is not itself: the greatest there is.
            return value is not None and self.high is None
        return bool(
            (self.low is None or (value >= self.low if self.low_closed else value > self.low))
            and (self.high is None or (value <= self.high if self.high_closed else value < self.high))
        )

    def holds(self, values: tuple[Any, ...]) -> bool:
        return not values or (self.matches(values[0]) and self.matches(values[-1]))

    def slice(self, values: tuple[Any, ...]) -> tuple[int, int]:
        """Where among sorted values those that match begin and end."""
        start, stop = 0, len(values)
        if self.low is not None:
            start = (bisect_left if self.low_closed else bisect_right)(values, self.low)
        if self.high is not None:
            stop = (bisect_right if self.high_closed else bisect_left)(values, self.high)
        return start, max(start, stop)

    def among(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        start, stop = self.slice(values)
        return values[start:stop]

    def within(self, other: Restriction) -> Restriction:
        if type(other) is not Range:
            return other.within(self)
        low, high = max(self, other, key=Range.low_cut), min(self, other, key=Range.high_cut)
        return between(low.low, high.high, low.low_closed, high.high_closed)

    def mask(self, array: pa.Array | pa.ChunkedArray) -> pa.BooleanArray:
        parts = []
        if self.low is not None:
            parts.append((pc.greater_equal if self.low_closed else pc.greater)(array, pa.scalar(self.low, array.type)))
        if self.high is not None:
            parts.append((pc.less_equal if self.high_closed else pc.less)(array, pa.scalar(self.high, array.type)))
        if not parts:
            return without_nulls(pc.is_valid(array))
        found = reduce(pc.and_, parts)
        if self.high is None and pa.types.is_floating(array.type):
            found = pc.or_(found, pc.is_nan(array))  # Arrow compares NaN with nothing.
        return without_nulls(found)

    def to_sql(self, column: str, t: pa.DataType) -> str:
        parts = [f"{column} IS NOT NULL"]
        if self.low is not None:
            parts.append(f"{column} {'>=' if self.low_closed else '>'} {sql_literal(self.low, t)}")
        if self.high is not None:
            parts.append(f"{column} {'<=' if self.high_closed else '<'} {sql_literal(self.high, t)}")
        return f"({' AND '.join(parts)})"  # DuckDB sorts NaN above every number, too.

    def coerced(self, t: pa.DataType) -> Restriction:
        low = None if self.low is None else coerce_value(self.low, t)
        high = None if self.high is None else coerce_value(self.high, t)
        # An end at the edge of the type is no end: `<= 127` of a tinyint is everything.
        if self.low_closed and low == EDGES.get(t, (None, None))[0]:
            low = None
        if self.high_closed and high == EDGES.get(t, (None, None))[1]:
            high = None
        return between(low, high, self.low_closed, self.high_closed)

    def to_json(self) -> Any:
        return {
            "low": value_to_json(self.low),
            "high": value_to_json(self.high),
            "closed": [self.low_closed, self.high_closed],
        }

    def extent(self, t: pa.DataType | None = None) -> list[tuple[Cut, Cut]]:
        cut = cutter(t)
        return merged([(self.low_cut(cut), self.high_cut(cut))])

    def text(self) -> str:
        low, high = value_text(self.low), value_text(self.high)
        if self.low is None and self.high is not None:
            return f"{'<=' if self.high_closed else '<'} {high}"
        if self.high is None and self.low is not None:
            return f"{'>=' if self.low_closed else '>'} {low}"
        return f"{'[' if self.low_closed else '('}{low}, {high}{']' if self.high_closed else ')'}"


def between(low: Any, high: Any, low_closed: bool = True, high_closed: bool = False) -> Restriction:
    """A range, half-open [low, high) unless said otherwise; None leaves an end open.

    >>> print(between(1, 5), between(5, 5, True, True), between(5, 1))
    [1, 5) 5 {}
    """
    made = Range(low, high, low_closed, high_closed)
    if low is not None and high is not None:
        if low == high and low_closed and high_closed:
            return Equal(low)
        if not made.low_cut() < made.high_cut():
            return NOTHING
    return made


def less(value: Any) -> Restriction:
    return Range(None, value)


def at_most(value: Any) -> Restriction:
    return Range(None, value, high_closed=True)


def greater(value: Any) -> Restriction:
    return Range(value, None)


def at_least(value: Any) -> Restriction:
    return Range(value, None, low_closed=True)
