"""Equijoin: each two tuples of equal keys, for as long as both hold.

Each side keeps its tuples by key until the CTI of the other side has reached their end: from then on nothing of the
other side can overlap with them. What comes is joined with what the other side keeps, and so is a retraction.

>>> join = Equijoin(*(2 * [lambda payload: payload]))
>>> for side, event in enumerate_sides("S1 I(2,6,A) S2 I(3,5,A) S2 C(3) S1 C(1) S1 R(2,6,4,A)"):
...     print(join.on(event, side))
[]
[I(3,5,(A,A))]
[]
[C(1)]
[R(3,5,4,(A,A))]
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator

from penstock.reference.lifetimes.event import Cti, Insert, Payload, Retract, StreamEvent, Time, events
from speculative.interval_index import IntervalIndex
from speculative.ordered import Ordered

#: None, alone or in a tuple, is equal to nothing.
Key = Callable[[Payload], Hashable]


class _MetBy:
    """What one input has said, as far as the other may still meet it."""

    def __init__(self, key: Key) -> None:
        self.key = key
        self.by_key: defaultdict[Hashable, IntervalIndex] = defaultdict(IntervalIndex)
        self.by_end: Ordered[tuple[Time, Payload]] = Ordered()
        self.cti: Time = 0
        self._steps_of_dropped = 0

    @property
    def steps(self) -> int:
        return self._steps_of_dropped + self.by_end.steps + sum(bucket.steps for bucket in self.by_key.values())

    def add(self, vs: Time, ve: Time, payload: Payload) -> None:
        self.by_key[self.key(payload)].add(vs, ve, payload)
        self.by_end.add(ve, (vs, payload))

    def remove(self, vs: Time, ve: Time, payload: Payload) -> None:
        if self.by_end.remove(ve, (vs, payload)):
            self._leave_bucket(vs, ve, payload)

    def forget(self, t: Time) -> None:
        """What ends by then."""
        while self.by_end and self.by_end.head() <= t:
            ve = self.by_end.head()
            vs, payload = self.by_end.pop()
            self._leave_bucket(vs, ve, payload)

    def _leave_bucket(self, vs: Time, ve: Time, payload: Payload) -> None:
        key = self.key(payload)
        bucket = self.by_key[key]
        bucket.remove(vs, ve, payload)
        if not len(bucket):
            self._steps_of_dropped += bucket.steps
            del self.by_key[key]


class Equijoin:
    """`matches` is what must hold of two payloads beside the equality of their keys.

    Payloads of the output are pairs (of the first input, of the second), whichever comes last.
    """

    def __init__(
        self, left: Key, right: Key, matches: Callable[[Payload, Payload], bool] = lambda left, right: True
    ) -> None:
        self.sides = (_MetBy(left), _MetBy(right))
        self.matches = matches
        self.cti: Time = 0
        self.said = 0

    @property
    def steps(self) -> int:
        """Elements looked at so far, and rows said."""
        return self.said + sum(side.steps for side in self.sides)

    @property
    def kept(self) -> tuple[list[tuple[Time, Time, Payload]], ...]:
        """What each side remembers, by end."""
        return tuple([(vs, ve, payload) for ve, (vs, payload) in side.by_end] for side in self.sides)

    def on(self, event: StreamEvent, side: int) -> list[StreamEvent]:
        mine, other = self.sides[side], self.sides[1 - side]
        if isinstance(event, Cti):
            mine.cti = event.t
            other.forget(event.t)
            if (least := min(mine.cti, other.cti)) <= self.cti:
                return []
            self.cti = least
            return [Cti(least)]
        key = mine.key(event.payload)
        if key is None or (isinstance(key, tuple) and None in key):
            return []
        said = list(self._met(event, key, side))
        self.said += len(said)
        if isinstance(event, Insert):
            end = event.ve
        else:
            mine.remove(event.vs, event.ve, event.payload)
            end = event.vn
        # Nothing of the other side can meet what ends by its CTI, and a tuple taken back altogether meets nothing.
        if end > max(other.cti, event.vs):
            mine.add(event.vs, end, event.payload)
        return said

    def _met(self, event: Insert | Retract, key: Hashable, side: int) -> Iterator[StreamEvent]:
        bucket = self.sides[1 - side].by_key.get(key)
        for vs, ve, payload in bucket.overlapping(event.vs, event.ve) if bucket is not None else ():
            pair = (payload, event.payload) if side else (event.payload, payload)
            begin, end = max(event.vs, vs), min(event.ve, ve)
            if not self.matches(*pair):
                continue
            if isinstance(event, Insert):
                yield Insert(begin, end, pair)
            elif event.vn < end:
                yield Retract(begin, end, max(event.vn, begin), pair)


def enumerate_sides(text: str) -> Iterator[tuple[int, StreamEvent]]:
    """Events of two inputs, each after the name of its own: `S1 I(1,2,A) S2 C(1)`."""
    for number, said in re.findall(r"S([12])((?:(?!S[12]).)*)", text):
        for event in events(said):
            yield int(number) - 1, event
