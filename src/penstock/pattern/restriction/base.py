"""What every restriction can be asked, and `*`, which restricts nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, final

import pyarrow as pa

from penstock.pattern.gap import BEFORE_ALL, BEHIND_ALL, Cut, encloses


class Restriction(ABC):
    """Which values of one attribute match. `type` makes comparisons exact for types with a next value."""

    is_range: ClassVar[bool] = False

    @property
    def named(self) -> tuple[Any, ...]:
        """The values that a value or a list names; a range and `*` name none."""
        return ()

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

        >>> from penstock.pattern.restriction import at_most, less
        >>> less(3).contains(at_most(2)), less(3).contains(at_most(2), pa.int32()), at_most(2).contains(less(3))
        (True, True, False)
        >>> at_most(2).contains(less(3), pa.int32())
        True
        """
        if other is ANY:
            return False
        return self.holds_range(other, t) if other.is_range else self.holds(other.named)

    def holds(self, values: tuple[Any, ...]) -> bool:
        """Whether all of some sorted values match."""
        return all(map(self.matches, values))

    def holds_range(self, other: Restriction, t: pa.DataType | None) -> bool:
        """Whether all values of a range match."""
        return encloses(self.extent(t), other.extent(t))

    def among(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Those of some sorted values that match."""
        return tuple(filter(self.matches, values))

    def within(self, other: Restriction) -> Restriction:
        """What another restriction, which is not `*`, matches of this one."""
        raise NotImplementedError

    def intersect(self, other: Restriction) -> Restriction:
        """What both match.

        >>> from penstock.pattern.restriction import at_least, less, one_of
        >>> print(at_least(3).intersect(less(7)), one_of([1, 3, 9]).intersect(at_least(3)))
        [3, 7) {3, 9}
        """
        if self is ANY or self == other:
            return other
        if other is ANY:
            return self
        return self.within(other)

    def is_empty(self, t: pa.DataType | None = None) -> bool:
        """Whether nothing can match.

        >>> from penstock.pattern.restriction import between
        >>> between(3, 4, False, False).is_empty(), between(3, 4, False, False).is_empty(pa.int32())
        (False, True)
        """
        return not self.extent(t)

    def __str__(self) -> str:
        return self.text()


@final
@dataclass(frozen=True, slots=True)
class Anything(Restriction):
    """`*`: every value, and null. There is one instance, `ANY`."""

    def contains(self, other: Restriction, t: pa.DataType | None = None) -> bool:
        return True

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
