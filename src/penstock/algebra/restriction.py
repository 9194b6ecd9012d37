"""Restrictions: which values of one attribute a pattern speaks of.

A restriction is `*`, one value, a list of values, or a range. Null (and NaN, which is no number) is matched by `*`
alone, in every evaluation: Python, Arrow and SQL.

Containment, intersection and emptiness compare *cuts*, the gaps between neighbouring values: `< 5` ends at the cut
before 5, `<= 5` at the cut behind it. Where the type has a next value (integers, dates, timestamps, decimals), the cut
behind a value is the cut before the next one. So `> 3` and `>= 4` are the same for an integer, and (3, 4) is empty,
while restrictions keep the text their author wrote.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any, final

import pyarrow as pa
import pyarrow.compute as pc

from penstock.algebra.types import (
    TIMESTAMP,
    coerce_value,
    integer_range,
    sql_literal,
    value_from_json,
    value_text,
    value_to_json,
)
from penstock.errors import UserError

#: (rank, value, side): rank -1 lies before and 1 behind everything; side 0 lies before the value and 1 behind it.
Cut = tuple[int, Any, int]
_BEFORE_ALL: Cut = (-1, None, 0)
_BEHIND_ALL: Cut = (1, None, 0)
_WIDE = Context(prec=80)


def _plain_cut(value: Any, side: int) -> Cut:
    return (0, value, side)


class Restriction(ABC):
    """Which values of one attribute match. `type` makes comparisons exact for types with a next value."""

    @abstractmethod
    def matches(self, value: Any) -> bool:
        """Whether a single value matches; None is null."""

    @abstractmethod
    def mask(self, array: pa.Array | pa.ChunkedArray) -> pa.BooleanArray:
        """Which values of an Arrow array match; never null."""

    @abstractmethod
    def to_sql(self, column: str, t: pa.DataType) -> str:
        """A DuckDB predicate over the SQL text of a column; never null."""

    @abstractmethod
    def coerced(self, t: pa.DataType) -> Restriction:
        """The same restriction with its values in the canonical form of a type, or a UserError."""

    @abstractmethod
    def to_json(self) -> Any:
        """A JSON value; `restriction_from_json`, given the type, reads it back."""

    @abstractmethod
    def extent(self, t: pa.DataType | None = None) -> list[tuple[Cut, Cut]]:
        """The non-null values that match, as sorted cuts with gaps between them."""

    @abstractmethod
    def text(self) -> str:
        """The restriction as written in a pattern."""

    def contains(self, other: Restriction, t: pa.DataType | None = None) -> bool:
        """Whether everything that `other` matches is matched by this one.

        >>> less(3).contains(at_most(2)), less(3).contains(at_most(2), pa.int32()), at_most(2).contains(less(3))
        (True, True, False)
        >>> at_most(2).contains(less(3), pa.int32())
        True
        """
        if self is ANY or other is ANY:
            return self is ANY
        return encloses(self.extent(t), other.extent(t))

    def intersect(self, other: Restriction) -> Restriction:
        """What both match.

        >>> print(at_least(3).intersect(less(7)), one_of([1, 3, 9]).intersect(at_least(3)))
        [3, 7) {3, 9}
        """
        if self is ANY or self == other:
            return other
        if other is ANY:
            return self
        if isinstance(self, Range) and isinstance(other, Range):
            low, high = max(self, other, key=Range.low_cut), min(self, other, key=Range.high_cut)
            return between(low.low, high.high, low.low_closed, high.high_closed)
        listed, wider = (other, self) if isinstance(self, Range) else (self, other)
        return one_of(v for v in values_of(listed) if wider.matches(v))

    def is_empty(self, t: pa.DataType | None = None) -> bool:
        """Whether nothing can match.

        >>> between(3, 4, False, False).is_empty(), between(3, 4, False, False).is_empty(pa.int32())
        (False, True)
        """
        return self is not ANY and not self.extent(t)

    def __str__(self) -> str:
        return self.text()


@final
@dataclass(frozen=True, slots=True)
class Anything(Restriction):
    """`*`: every value, and null. There is one instance, `ANY`."""

    def matches(self, value: Any) -> bool:
        return True

    def mask(self, array: pa.Array | pa.ChunkedArray) -> pa.BooleanArray:
        return pa.repeat(True, len(array))

    def to_sql(self, column: str, t: pa.DataType) -> str:
        return "TRUE"

    def coerced(self, t: pa.DataType) -> Restriction:
        return ANY

    def to_json(self) -> Any:
        return "*"

    def extent(self, t: pa.DataType | None = None) -> list[tuple[Cut, Cut]]:
        return [(_BEFORE_ALL, _BEHIND_ALL)]

    def text(self) -> str:
        return "*"

    def __reduce__(self) -> str:
        return "ANY"  # Unpickling must not make a second instance.


ANY: Restriction = Anything()


@final
@dataclass(frozen=True, slots=True)
class Equal(Restriction):
    """One value."""

    value: Any

    def __post_init__(self) -> None:
        _check(self.value)

    def matches(self, value: Any) -> bool:
        return value is not None and bool(value == self.value)

    def mask(self, array: pa.Array | pa.ChunkedArray) -> pa.BooleanArray:
        return _flat(pc.equal(array, pa.scalar(self.value, array.type)))

    def to_sql(self, column: str, t: pa.DataType) -> str:
        return f"({column} IS NOT NULL AND {column} = {sql_literal(self.value, t)})"

    def coerced(self, t: pa.DataType) -> Restriction:
        return Equal(coerce_value(self.value, t))

    def to_json(self) -> Any:
        return {"equal": value_to_json(self.value)}

    def extent(self, t: pa.DataType | None = None) -> list[tuple[Cut, Cut]]:
        cut = _cutter(t)
        return _merged([(cut(self.value, 0), cut(self.value, 1))])

    def text(self) -> str:
        return value_text(self.value)


@final
@dataclass(frozen=True, slots=True)
class OneOf(Restriction):
    """A list of values, sorted and without duplicates. Without values it is empty: nothing matches."""

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        for value in self.values:
            _check(value)
        object.__setattr__(self, "values", tuple(sorted(set(self.values))))

    def matches(self, value: Any) -> bool:
        return value is not None and value in self.values

    def mask(self, array: pa.Array | pa.ChunkedArray) -> pa.BooleanArray:
        if pa.types.is_floating(array.type):
            # is_in hashes bits, so -0.0 would not be 0.0; adding 0.0 makes both the same.
            array = pc.add(array, pa.scalar(0.0, array.type))
            return _flat(pc.is_in(array, pa.array([v + 0.0 for v in self.values], array.type)))
        return _flat(pc.is_in(array, pa.array(self.values, array.type)))

    def to_sql(self, column: str, t: pa.DataType) -> str:
        if not self.values:
            return "FALSE"
        listed = ", ".join(sql_literal(v, t) for v in self.values)
        return f"({column} IS NOT NULL AND {column} IN ({listed}))"

    def coerced(self, t: pa.DataType) -> Restriction:
        return one_of(coerce_value(v, t) for v in self.values)

    def to_json(self) -> Any:
        return {"one_of": [value_to_json(v) for v in self.values]}

    def extent(self, t: pa.DataType | None = None) -> list[tuple[Cut, Cut]]:
        cut = _cutter(t)
        return _merged([(cut(v, 0), cut(v, 1)) for v in self.values])

    def text(self) -> str:
        return "{" + ", ".join(map(value_text, self.values)) + "}"


@final
@dataclass(frozen=True, slots=True)
class Range(Restriction):
    """The values between two ends; None leaves an end open. `Range(None, None)` is every value but null."""

    low: Any
    high: Any
    low_closed: bool = False
    high_closed: bool = False

    def __post_init__(self) -> None:
        for end, closed in ((self.low, "low_closed"), (self.high, "high_closed")):
            if end is None:
                object.__setattr__(self, closed, False)
            else:
                _check(end)

    def low_cut(self, cut: Callable[[Any, int], Cut] = _plain_cut) -> Cut:
        return _BEFORE_ALL if self.low is None else cut(self.low, 0 if self.low_closed else 1)

    def high_cut(self, cut: Callable[[Any, int], Cut] = _plain_cut) -> Cut:
        return _BEHIND_ALL if self.high is None else cut(self.high, 1 if self.high_closed else 0)

    def matches(self, value: Any) -> bool:
        # `value == value` is false for NaN alone.
        return (
            value is not None
            and bool(value == value)
            and (self.low is None or (value >= self.low if self.low_closed else value > self.low))
            and (self.high is None or (value <= self.high if self.high_closed else value < self.high))
        )

    def mask(self, array: pa.Array | pa.ChunkedArray) -> pa.BooleanArray:
        result = pc.equal(array, array)  # Null for null, false for NaN.
        if self.low is not None:
            low = pa.scalar(self.low, array.type)
            result = pc.and_(result, (pc.greater_equal if self.low_closed else pc.greater)(array, low))
        if self.high is not None:
            high = pa.scalar(self.high, array.type)
            result = pc.and_(result, (pc.less_equal if self.high_closed else pc.less)(array, high))
        return _flat(result)

    def to_sql(self, column: str, t: pa.DataType) -> str:
        parts = [f"{column} IS NOT NULL"]
        if self.low is not None:
            parts.append(f"{column} {'>=' if self.low_closed else '>'} {sql_literal(self.low, t)}")
        if self.high is not None:
            parts.append(f"{column} {'<=' if self.high_closed else '<'} {sql_literal(self.high, t)}")
        elif pa.types.is_floating(t):
            parts.append(f"NOT isnan({column})")  # DuckDB sorts NaN above every number.
        return f"({' AND '.join(parts)})"

    def coerced(self, t: pa.DataType) -> Restriction:
        low = None if self.low is None else coerce_value(self.low, t)
        high = None if self.high is None else coerce_value(self.high, t)
        return between(low, high, self.low_closed, self.high_closed)

    def to_json(self) -> Any:
        return {
            "low": value_to_json(self.low),
            "high": value_to_json(self.high),
            "closed": [self.low_closed, self.high_closed],
        }

    def extent(self, t: pa.DataType | None = None) -> list[tuple[Cut, Cut]]:
        cut = _cutter(t)
        return _merged([(self.low_cut(cut), self.high_cut(cut))])

    def text(self) -> str:
        low, high = value_text(self.low), value_text(self.high)
        if self.low is None and self.high is not None:
            return f"{'<=' if self.high_closed else '<'} {high}"
        if self.high is None and self.low is not None:
            return f"{'>=' if self.low_closed else '>'} {low}"
        return f"{'[' if self.low_closed else '('}{low}, {high}{']' if self.high_closed else ')'}"


#: Nothing matches.
NOTHING: Restriction = OneOf(())


def equal(value: Any) -> Restriction:
    """Exactly one value."""
    return Equal(value)


def one_of(values: Iterable[Any]) -> Restriction:
    """Any of the values listed.

    >>> print(one_of([3, 1, 3]), one_of([7]), one_of([]))
    {1, 3} 7 {}
    """
    listed = OneOf(tuple(values))
    return Equal(listed.values[0]) if len(listed.values) == 1 else listed


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


def normal(restriction: Restriction) -> Restriction:
    """The simplest form: a list of one value is that value, a range of one value too, a crossed range is nothing."""
    if isinstance(restriction, OneOf):
        return one_of(restriction.values)
    if isinstance(restriction, Range):
        return between(restriction.low, restriction.high, restriction.low_closed, restriction.high_closed)
    return restriction


def values_of(restriction: Restriction) -> tuple[Any, ...]:
    """The values that a value or a list names."""
    if isinstance(restriction, Equal):
        return (restriction.value,)
    return restriction.values if isinstance(restriction, OneOf) else ()


def union(restrictions: Iterable[Restriction], t: pa.DataType | None = None) -> list[Restriction]:
    """The fewest restrictions that together match what the given ones match.

    Ranges that overlap or touch become one; single values that nothing touches become one list.

    >>> print(*union([less(3), between(3, 7), equal(9), equal(12)]))
    < 7 {9, 12}
    >>> print(*union([equal(1), equal(2), between(3, 7)], pa.int32()))
    [1, 7)
    """
    given = list(restrictions)
    if any(r is ANY for r in given):
        return [ANY]
    ranges = [r for r in given if isinstance(r, Range)]
    ranges += [Range(v, v, True, True) for v in {v for r in given for v in values_of(r)}]
    cut = _cutter(t)
    ordered = sorted((r.low_cut(cut), r.high_cut(cut), i) for i, r in enumerate(ranges))
    merged: list[tuple[Cut, Range]] = []
    for low, high, i in ordered:
        if not low < high:
            continue
        if not merged or merged[-1][0] < low:
            merged.append((high, ranges[i]))
        elif merged[-1][0] < high:
            first = merged[-1][1]
            merged[-1] = (high, Range(first.low, ranges[i].high, first.low_closed, ranges[i].high_closed))
    simple = [normal(r) for _, r in merged]
    points = [r.value for r in simple if isinstance(r, Equal)]
    return [r for r in simple if isinstance(r, Range)] + ([one_of(points)] if points else [])


def encloses(outer: list[tuple[Cut, Cut]], inner: list[tuple[Cut, Cut]]) -> bool:
    """Whether each interval of `inner` lies inside one of `outer`; both sorted, with gaps."""
    position = 0
    for low, high in inner:
        while position < len(outer) and outer[position][1] < high:
            position += 1
        if position == len(outer) or outer[position][0] > low:
            return False
    return True


def restriction_from_json(stored: Any, t: pa.DataType) -> Restriction:
    """The restriction that `to_json` stored.

    >>> print(restriction_from_json(at_most(Decimal("1.50")).to_json(), pa.decimal128(5, 2)))
    <= 1.50
    """
    if stored == "*":
        return ANY
    if isinstance(stored, Mapping):
        if "equal" in stored:
            return Equal(value_from_json(stored["equal"], t))
        if "one_of" in stored:
            return one_of(value_from_json(v, t) for v in stored["one_of"])
        low, high = value_from_json(stored["low"], t), value_from_json(stored["high"], t)
        return between(low, high, *stored["closed"])
    raise ValueError(f"not a restriction: {stored!r}")


def _check(value: Any) -> None:
    if value is None:
        raise UserError("a restriction cannot name null", hint="null is matched by * alone")
    if isinstance(value, float) and math.isnan(value):
        raise UserError("a restriction cannot name NaN", hint="NaN is matched by * alone")


def _flat(mask: pa.Array | pa.ChunkedArray) -> pa.BooleanArray:
    filled = pc.fill_null(mask, False)
    return filled.combine_chunks() if isinstance(filled, pa.ChunkedArray) else filled


def _cutter(t: pa.DataType | None) -> Callable[[Any, int], Cut]:
    """The cut before (0) or behind (1) a value of a type; given a next value, always the cut before some value.

    Made once per list of values: asking Arrow for the kind of a type costs more than the cut itself.
    """
    if t is None:
        return _plain_cut
    if t == TIMESTAMP or pa.types.is_date(t):
        step = timedelta(microseconds=1) if t == TIMESTAMP else timedelta(days=1)
        last = datetime.max if t == TIMESTAMP else date.max
        return lambda value, side: _BEHIND_ALL if side and value >= last else (0, value + step if side else value, 0)
    if pa.types.is_decimal(t):
        unit = Decimal(1).scaleb(-t.scale, _WIDE)
        top = Decimal(10**t.precision - 1).scaleb(-t.scale, _WIDE)
        return lambda value, side: _clipped(_WIDE.add(value, unit if side else 0), top.copy_negate(), top)
    if pa.types.is_integer(t) or t == pa.bool_():
        low, high = (0, 1) if t == pa.bool_() else integer_range(t)
        return lambda value, side: _clipped(value + side, low, high)
    return _plain_cut


def _clipped(value: Any, low: Any, high: Any) -> Cut:
    return _BEFORE_ALL if value <= low else _BEHIND_ALL if value > high else (0, value, 0)


def _merged(intervals: list[tuple[Cut, Cut]]) -> list[tuple[Cut, Cut]]:
    """Without empty intervals; neighbours that touch joined. The intervals come sorted by their low cuts."""
    merged: list[tuple[Cut, Cut]] = []
    for low, high in intervals:
        if low < high:
            if merged and merged[-1][1] >= low:
                merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
            else:
                merged.append((low, high))
    return merged
