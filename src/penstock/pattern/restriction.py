"""Restrictions: which values of one attribute a pattern speaks of.

A restriction is `*`, one value, a list of values, or a range. Null is matched by `*` alone, in every evaluation:
Python, Arrow and SQL. NaN is greater than every number, as in aggregates and in Spark: `> 3` matches it, `< 3` does
not. It cannot be named.

Containment and emptiness compare *cuts*, the gaps between neighbouring values, so that `> 3` and `>= 4` are the same
for an integer, and (3, 4) is empty, while restrictions keep the text their author wrote. Lists of values may be long
(every key that ended in an epoch), so nothing here goes through them one by one more than once.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property, reduce
from itertools import islice
from operator import lt
from typing import Any, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import UserError
from penstock.pattern.gap import BEFORE_ALL, BEHIND_ALL, Cut, Cutter, cutter, encloses, merged, plain_cut
from penstock.pattern.types import (
    TIMESTAMP,
    coerce_value,
    integer_range,
    sql_literal,
    value_from_json,
    value_text,
    value_to_json,
)

#: The class of the canonical values of a type, where being of that class is (nearly) all there is to check.
_CLASSES: dict[pa.DataType, type] = {
    pa.int8(): int,
    pa.int16(): int,
    pa.int32(): int,
    pa.int64(): int,
    pa.float64(): float,
    pa.string(): str,
    pa.binary(): bytes,
    pa.date32(): date,
    TIMESTAMP: datetime,
}
#: The least and the greatest value of types that have them.
EDGES: dict[pa.DataType, tuple[Any, Any]] = {
    **{t: integer_range(t) for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    pa.date32(): (date.min, date.max),
    TIMESTAMP: (datetime.min, datetime.max),
}
#: What JSON holds as it is.
_PLAIN_IN_JSON = {int, str}


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
        if type(other) is not Range:
            return self.holds(values_of(other))
        if type(self) is OneOf:
            return self.holds_range(other, t)
        return encloses(self.extent(t), other.extent(t))

    def holds(self, values: tuple[Any, ...]) -> bool:
        """Whether all of some sorted values match."""
        return all(map(self.matches, values))

    def intersect(self, other: Restriction) -> Restriction:
        """What both match.

        >>> print(at_least(3).intersect(less(7)), one_of([1, 3, 9]).intersect(at_least(3)))
        [3, 7) {3, 9}
        """
        if self is ANY or self == other:
            return other
        if other is ANY:
            return self
        if type(self) is Range and type(other) is Range:
            low, high = max(self, other, key=Range.low_cut), min(self, other, key=Range.high_cut)
            return between(low.low, high.high, low.low_closed, high.high_closed)
        listed, wider = (other, self) if type(self) is Range else (self, other)
        if type(listed) is OneOf:
            return listed.within(wider)
        return listed if wider.holds(values_of(listed)) else NOTHING

    def is_empty(self, t: pa.DataType | None = None) -> bool:
        """Whether nothing can match.

        >>> between(3, 4, False, False).is_empty(), between(3, 4, False, False).is_empty(pa.int32())
        (False, True)
        """
        if type(self) is OneOf:
            return not self.values
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
        return [(BEFORE_ALL, BEHIND_ALL)]

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
        cut = cutter(t)
        return merged([(cut(self.value, 0), cut(self.value, 1))])

    def text(self) -> str:
        return value_text(self.value)


@final
@dataclass(frozen=True, slots=True)
class OneOf(Restriction):
    """A list of values, sorted and without duplicates. Without values it is empty: nothing matches."""

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        kinds = set(map(type, self.values))
        if any(k is type(None) or issubclass(k, float) for k in kinds):
            for value in self.values:
                _check(value)
        if not all(map(lt, self.values, islice(self.values, 1, None))):
            object.__setattr__(self, "values", tuple(sorted(set(self.values))))

    # What is derived from a long list is kept beside it: the base class has no slots, so there is room.

    @cached_property
    def known(self) -> frozenset[Any]:
        return frozenset(self.values)

    @cached_property
    def _hash(self) -> int:
        return hash(self.values)

    @cached_property
    def _arrays(self) -> dict[pa.DataType, pa.Array]:
        return {}

    @cached_property
    def _ticks(self) -> dict[pa.DataType, npt.NDArray[np.int64] | None]:
        return {}

    def __hash__(self) -> int:
        return self._hash

    def array(self, t: pa.DataType) -> pa.Array:
        """The values as an Arrow array."""
        if t not in self._arrays:
            self._arrays[t] = pa.array(self.values, t)
        return self._arrays[t]

    def ticks(self, t: pa.DataType) -> npt.NDArray[np.int64] | None:
        """The values as integers of which neighbours differ by one, for types where that is quick to say."""
        if t not in self._ticks:
            self._ticks[t] = ticks_of(self.values, t)
        return self._ticks[t]

    def matches(self, value: Any) -> bool:
        return value is not None and value in self.known

    def holds(self, values: tuple[Any, ...]) -> bool:
        return len(values) <= len(self.values) and self.known.issuperset(values)

    def holds_range(self, other: Range, t: pa.DataType | None) -> bool:
        """Whether a range names only values of this list: possible where values have neighbours."""
        cut = cutter(t)
        wanted = other.extent(t)
        inside = self.within(other)
        listed = values_of(inside)
        if not wanted or not listed:
            return not wanted
        # Most ranges reach beyond the list, which shows at its ends.
        if cut(listed[0], 0) > wanted[0][0] or cut(listed[-1], 1) < wanted[0][1]:
            return False
        return encloses(inside.extent(t), wanted)

    def within(self, other: Restriction) -> Restriction:
        """Those of the values that another restriction matches."""
        if type(other) is Range:
            start, stop = other.slice(self.values)
            kept = self.values[start:stop]
        elif type(other) is OneOf:
            if len(other.values) < len(self.values):
                return other.within(self)
            kept = tuple(filter(other.known.__contains__, self.values))
        else:
            kept = tuple(filter(other.matches, self.values))
        return self if len(kept) == len(self.values) else self.part(kept)

    def part(self, values: tuple[Any, ...]) -> Restriction:
        """Some of the values, in their order."""
        return listed(values, self.__dict__.get("_type"))

    def mask(self, array: pa.Array | pa.ChunkedArray) -> pa.BooleanArray:
        if pa.types.is_floating(array.type):
            # is_in hashes bits, so -0.0 would not be 0.0; adding 0.0 makes both the same.
            array = pc.add(array, pa.scalar(0.0, array.type))
            return _flat(pc.is_in(array, pc.add(self.array(array.type), pa.scalar(0.0, array.type))))
        return _flat(pc.is_in(array, self.array(array.type)))

    def to_sql(self, column: str, t: pa.DataType) -> str:
        if not self.values:
            return "FALSE"
        listed = ", ".join(sql_literal(v, t) for v in self.values)
        return f"({column} IS NOT NULL AND {column} IN ({listed}))"

    def coerced(self, t: pa.DataType) -> Restriction:
        if self.__dict__.get("_type") == t:
            return self
        made = self if self._is_canonical(t) else one_of(coerce_value(v, t) for v in self.values)
        made.__dict__["_type"] = t
        return made

    def _is_canonical(self, t: pa.DataType) -> bool:
        kind = _CLASSES.get(t)
        if kind is None or not set(map(type, self.values)) <= {kind}:
            return False
        if kind is int and self.values:
            low, high = integer_range(t)
            return bool(low <= self.values[0] and self.values[-1] <= high)
        if kind is str:
            try:
                self.array(t)
            except UnicodeError:
                return False
        return kind is not datetime or all(v.tzinfo is None and not v.fold for v in self.values)

    def to_json(self) -> Any:
        plain = set(map(type, self.values)) <= _PLAIN_IN_JSON
        return {"one_of": list(self.values) if plain else [value_to_json(v) for v in self.values]}

    def extent(self, t: pa.DataType | None = None) -> list[tuple[Cut, Cut]]:
        cut = cutter(t)
        return merged([(cut(v, 0), cut(v, 1)) for v in self.values])

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

    def mask(self, array: pa.Array | pa.ChunkedArray) -> pa.BooleanArray:
        parts = []
        if self.low is not None:
            parts.append((pc.greater_equal if self.low_closed else pc.greater)(array, pa.scalar(self.low, array.type)))
        if self.high is not None:
            parts.append((pc.less_equal if self.high_closed else pc.less)(array, pa.scalar(self.high, array.type)))
        if not parts:
            return _flat(pc.is_valid(array))
        found = reduce(pc.and_, parts)
        if self.high is None and pa.types.is_floating(array.type):
            found = pc.or_(found, pc.is_nan(array))  # Arrow compares NaN with nothing.
        return _flat(found)

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


def listed(
    values: tuple[Any, ...], t: pa.DataType | None = None, ticks: npt.NDArray[np.int64] | None = None
) -> Restriction:
    """Like `one_of`, for values that are sorted, different and, if a type is given, canonical for it."""
    if len(values) == 1:
        return Equal(values[0])
    made = object.__new__(OneOf)
    object.__setattr__(made, "values", values)
    if t is not None:
        made.__dict__["_type"] = t
        if ticks is not None:
            made._ticks[t] = ticks
    return made


def ticks_of(values: Sequence[Any], t: pa.DataType) -> npt.NDArray[np.int64] | None:
    """Values as integers of which neighbours differ by one; None where the type has no neighbours, or wide ones.

    >>> ticks_of([date(1970, 1, 2), date(1970, 1, 3)], pa.date32()).tolist(), ticks_of(["a", "b"], pa.string())
    ([1, 2], None)
    """
    if pa.types.is_integer(t):
        return np.array(values, dtype=np.int64)
    if t == TIMESTAMP or pa.types.is_date(t):
        counted = pa.array(values, t).cast(pa.int64() if t == TIMESTAMP else pa.int32())
        return np.asarray(counted.to_numpy(), dtype=np.int64)
    return None


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
    if type(restriction) is OneOf:
        return Equal(restriction.values[0]) if len(restriction.values) == 1 else restriction
    if type(restriction) is Range:
        return between(restriction.low, restriction.high, restriction.low_closed, restriction.high_closed)
    return restriction


def values_of(restriction: Restriction) -> tuple[Any, ...]:
    """The values that a value or a list names."""
    if type(restriction) is Equal:
        return (restriction.value,)
    return restriction.values if type(restriction) is OneOf else ()


def restriction_from_json(stored: Any, t: pa.DataType) -> Restriction:
    """The restriction that `to_json` stored.

    >>> from decimal import Decimal
    >>> print(restriction_from_json(at_most(Decimal("1.50")).to_json(), pa.decimal128(5, 2)))
    <= 1.50
    """
    if stored == "*":
        return ANY
    if isinstance(stored, Mapping):
        if "equal" in stored:
            return Equal(value_from_json(stored["equal"], t))
        if "one_of" in stored:
            plain = _CLASSES.get(t) in _PLAIN_IN_JSON
            return one_of(stored["one_of"] if plain else (value_from_json(v, t) for v in stored["one_of"]))
        low, high = value_from_json(stored["low"], t), value_from_json(stored["high"], t)
        return between(low, high, *stored["closed"])
    raise ValueError(f"not a restriction: {stored!r}")


def _check(value: Any) -> None:
    if value is None:
        raise UserError("a restriction cannot name null", hint="null is matched by * alone")
    if isinstance(value, float) and math.isnan(value):
        raise UserError("a restriction cannot name NaN", hint="`> inf` matches NaN alone")


def _flat(mask: pa.Array | pa.ChunkedArray) -> pa.BooleanArray:
    filled = pc.fill_null(mask, False)
    return filled.combine_chunks() if isinstance(filled, pa.ChunkedArray) else filled
