"""Which lifetimes overlap with this one? – without asking them all.

They are kept by length: one class for lengths 1, one for 2 and 3, one for 4 to 7, …, one for ∞. Within a class whatever
begins too early to reach the question is out, and so is whatever begins too late; what is left in between overlaps, but
for those that begin within one length of the class before it.

>>> index = IntervalIndex()
>>> for vs, ve in [(1, 3), (2, 9), (4, math.inf), (8, 9)]:
...     index.add(vs, ve, (vs, ve))
>>> sorted(p for _, _, p in index.overlapping(3, 8)), len(index)
([(2, 9), (4, inf)], 4)
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from penstock.reference.lifetimes.event import INFINITY, Payload, Time
from speculative.ordered import Ordered


class IntervalIndex:
    def __init__(self) -> None:
        #: The greatest length of a class → its members, by start.
        self._classes: dict[Time, Ordered[tuple[Time, Payload]]] = {}
        self._looked_at = 0

    def __len__(self) -> int:
        return sum(map(len, self._classes.values()))

    def __iter__(self) -> Iterator[tuple[Time, Time, Payload]]:
        return ((vs, ve, payload) for members in self._classes.values() for vs, (ve, payload) in members)

    @property
    def steps(self) -> int:
        return self._looked_at + sum(members.steps for members in self._classes.values())

    def add(self, vs: Time, ve: Time, payload: Payload) -> None:
        self._classes.setdefault(_longest(ve - vs), Ordered()).add(vs, (ve, payload))

    def remove(self, vs: Time, ve: Time, payload: Payload) -> bool:
        """Whether it was there."""
        members = self._classes.get(_longest(ve - vs))
        return members is not None and members.remove(vs, (ve, payload))

    def overlapping(self, vs: Time, ve: Time) -> Iterator[tuple[Time, Time, Payload]]:
        for longest, members in self._classes.items():
            for i in range(members.before_or_at(vs - longest) + 1, members.before(ve) + 1):
                self._looked_at += 1
                end, payload = members.items[i]
                if end > vs:
                    yield members.times[i], end, payload


def _longest(length: Time) -> Time:
    return INFINITY if length == INFINITY else 2 ** math.ceil(math.log2(length + 1)) - 1
