"""One value, and lists of values.

Lists may be long (every key that ended in an epoch), so nothing here goes through them one by one more than once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import islice
from operator import lt
from typing import Any, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.pattern.gap import Cut, cutter, encloses, merged
from penstock.pattern.restriction.base import Restriction
from penstock.pattern.restriction.canonical import CLASSES, PLAIN_IN_JSON, check_namable, ticks_of, without_nulls
from penstock.pattern.types import coerce_value, integer_range, sql_literal, value_text, value_to_json


@final
@dataclass(frozen=True, slots=True)
class Equal(Restriction):
    """One value."""

    value: Any

    def __post_init__(self) -> None:
        check_namable(self.value)

    def matches(self, value: Any) -> bool:
        return value is not None and bool(value == self.value)

    @property
    def named(self) -> tuple[Any, ...]:
        return (self.value,)

    def within(self, other: Restriction) -> Restriction:
        return self if other.holds((self.value,)) else NOTHING

    def mask(self, array: pa.Array | pa.ChunkedArray) -> pa.BooleanArray:
        return without_nulls(pc.equal(array, pa.scalar(self.value, array.type)))

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
                check_namable(value)
        if not all(map(lt, self.values, islice(self.values, 1, None))):
            object.__setattr__(self, "values", tuple(sorted(set(self.values))))

    @property
    def named(self) -> tuple[Any, ...]:
        return self.values

    def is_empty(self, t: pa.DataType | None = None) -> bool:
        return not self.values

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

    def holds_range(self, other: Restriction, t: pa.DataType | None) -> bool:
        """Whether a range names only values of this list: possible where values have neighbours."""
        cut = cutter(t)
        wanted = other.extent(t)
        inside = self.within(other)
        listed = inside.named
        if not wanted or not listed:
            return not wanted
        # Most ranges reach beyond the list, which shows at its ends.
        if cut(listed[0], 0) > wanted[0][0] or cut(listed[-1], 1) < wanted[0][1]:
            return False
        return encloses(inside.extent(t), wanted)

    def within(self, other: Restriction) -> Restriction:
        """Those of the values that another restriction matches."""
        if type(other) is OneOf and len(other.values) < len(self.values):
            return other.within(self)
        kept = other.among(self.values)
        return self if len(kept) == len(self.values) else self.part(kept)

    def among(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(filter(self.known.__contains__, values))

    def part(self, values: tuple[Any, ...]) -> Restriction:
        """Some of the values, in their order."""
        return listed(values, self.__dict__.get("_type"))

    def mask(self, array: pa.Array | pa.ChunkedArray) -> pa.BooleanArray:
        if pa.types.is_floating(array.type):
            # is_in hashes bits, so -0.0 would not be 0.0; adding 0.0 makes both the same.
            array = pc.add(array, pa.scalar(0.0, array.type))
            return without_nulls(pc.is_in(array, pc.add(self.array(array.type), pa.scalar(0.0, array.type))))
        return without_nulls(pc.is_in(array, self.array(array.type)))

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
        kind = CLASSES.get(t)
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
        plain = set(map(type, self.values)) <= PLAIN_IN_JSON
        return {"one_of": list(self.values) if plain else [value_to_json(v) for v in self.values]}

    def extent(self, t: pa.DataType | None = None) -> list[tuple[Cut, Cut]]:
        cut = cutter(t)
        return merged([(cut(v, 0), cut(v, 1)) for v in self.values])

    def text(self) -> str:
        return "{" + ", ".join(map(value_text, self.values)) + "}"


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
