"""Keys that one side of a join has ended and the other has not yet: as sets of values.

"No more of trip 4711" is the commonest promise of all, and there may be thousands of them an epoch. Kept as patterns,
each would be compared with each. Kept as sets, an epoch costs what is new in it, and a key that both sides have ended
is forgotten at once: it cannot come again from anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from penstock.operators.join.meeting import Meeting
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Equal, OneOf, Range, Restriction, one_of, restriction_from_json

#: Neighbouring whole numbers arrive as a range; one of no more than so many is taken as a list.
LONGEST = 100_000

Values = set[Any]


class EndedKeys:
    """By side and key attribute (its position in the key), the values that only this side has ended."""

    def __init__(self, meeting: Meeting) -> None:
        assert len(meeting.sides) == 2, "with more inputs it takes more than one other side to settle a key"
        self.meeting = meeting
        self.values: list[dict[int, Values]] = [{}, {}]

    def split(self, k: int, patterns: Iterable[Pattern]) -> tuple[dict[int, Values], list[Pattern]]:
        """Promises of a side that list values of one key attribute, and the others."""
        side = self.meeting.sides[k]
        listed: dict[int, Values] = {}
        rest: list[Pattern] = []
        for pattern in patterns:
            names = pattern.restricted
            found = None
            if len(names) == 1 and names[0] in side.keys:
                found = values_in(pattern[names[0]], side.schema.type_of(names[0]))
            if found is None:
                rest.append(pattern)
            else:
                listed.setdefault(side.keys.index(names[0]), set()).update(found)
        return listed, rest

    def pattern(self, k: int, position: int, values: Iterable[Any]) -> Pattern:
        """Values of a key attribute as a promise of a side."""
        side = self.meeting.sides[k]
        return Pattern.by_name(side.schema, {side.keys[position]: one_of(values)})

    def end(self, k: int, position: int, values: Values) -> tuple[Values, Values]:
        """Note that a side has ended values: those that are new, and of these the ones that now both have ended."""
        mine = self.values[k].setdefault(position, set())
        theirs = self.values[1 - k].setdefault(position, set())
        new = values - mine
        both = new & theirs
        theirs -= both
        mine |= new - both
        return new, both

    def settled(self, k: int) -> list[Pattern]:
        """The rows of a side whose keys the other side has ended."""
        other = 1 - k
        found = (self.across(other, position, values) for position, values in self.values[other].items() if values)
        return [p for p in found if p is not None]

    def given(self, k: int) -> list[Pattern]:
        """The keys that a side has ended, as promises."""
        return [self.pattern(k, position, values) for position, values in self.values[k].items() if values]

    def across(self, k: int, position: int, values: Values) -> Pattern | None:
        """The rows of the other side that ended values settle."""
        return self.meeting.translate(self.pattern(k, position, values), k, 1 - k)

    def forget(self, k: int, pattern: Pattern) -> None:
        """Forget the values of a side that the other has ended too, by a promise on that attribute alone."""
        side = self.meeting.sides[k]
        for position, values in self.values[k].items():
            if pattern.restricted == (side.keys[position],):
                restriction = pattern[side.keys[position]]
                values.difference_update([v for v in values if restriction.matches(v)])

    def to_json(self) -> list[list[Any]]:
        return [
            [[position, one_of(values).to_json()] for position, values in sorted(ended.items()) if values]
            for ended in self.values
        ]

    def restore(self, stored: Sequence[Sequence[Any]]) -> None:
        self.values = [self._restored(k, listed) for k, listed in enumerate(stored)]

    def _restored(self, k: int, listed: Sequence[Any]) -> dict[int, Values]:
        side = self.meeting.sides[k]
        found: dict[int, Values] = {}
        for position, record in listed:
            t = side.schema.type_of(side.keys[position])
            found[position] = values_in(restriction_from_json(record, t), t) or set()
        return found


def values_in(restriction: Restriction, t: pa.DataType) -> Values | None:
    """The values of a restriction that lists them, or is a short range of whole numbers; None for others.

    >>> values_in(OneOf((3, 5)), pa.int64()), values_in(Range(7, 9, True, False), pa.int32())
    ({3, 5}, {8, 7})
    """
    if isinstance(restriction, Equal):
        return {restriction.value}
    if isinstance(restriction, OneOf):
        return set(restriction.values)
    if not isinstance(restriction, Range) or restriction.low is None or restriction.high is None:
        return None
    low, high = restriction.low, restriction.high
    if not pa.types.is_integer(t) or high - low > LONGEST:
        return None
    return set(range(low + (not restriction.low_closed), high + restriction.high_closed))
