"""What a stream says in the end: its canonical history table, as a bag of (start, end, payload).

Two streams are logically equivalent when their tables are equal. A table is a `Counter`, so bags add and subtract.

>>> in_the_end = fold(events("I(1,∞,P1) C(1) R(1,∞,10,P1) R(1,10,5,P1) I(4,9,P2) C(10)"))
>>> sorted(in_the_end)
[(1, 5, 'P1'), (4, 9, 'P2')]

Inside tasks the same is said by rows with a weight (decision record 8), and the net of many changes is a sum.

>>> net(changes(events("I(1,8,P1) R(1,8,5,P1)")))
[WeightedChange(payload='P1', valid_from=1, valid_to=5, weight=1)]
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from penstock.reference.lifetimes.event import (
    Cti,
    ExternalCti,
    Insert,
    InvalidStreamError,
    Payload,
    Retract,
    SourceEvent,
    StreamEvent,
    Time,
    events,
)

#: How often each (start, end, payload) holds.
Table = Counter[tuple[Time, Time, Payload]]

__all__ = ["Converter", "Table", "WeightedChange", "changes", "coalesce", "events", "fold", "from_changes", "net"]


class Converter:
    """The bitemporal converter, one event at a time. It refuses what no valid stream has.

    >>> converter = Converter()
    >>> for event in events("I(1,8,5) C(4)"):
    ...     converter.on(event)
    >>> converter.on(Retract(1, 8, 3, 5))
    Traceback (most recent call last):
    penstock.reference.lifetimes.event.InvalidStreamError: event 3, R(1,8,3,5): its sync time 3 is before the CTI 4. \
Hint: send the stream through Finalize
    """

    def __init__(self) -> None:
        self.table: Table = Counter()
        self.cti: Time = 0
        self.seen = 0

    def on(self, event: SourceEvent) -> None:
        self.seen += 1
        if isinstance(event, ExternalCti):
            return  # A promise about the stream, no part of its content.
        if event.sync < self.cti:
            raise self._invalid(event, f"its sync time {event.sync} is before the CTI {self.cti}")
        if isinstance(event, Cti):
            self.cti = event.t
        elif isinstance(event, Insert):
            if not 0 <= event.vs < event.ve:
                raise self._invalid(event, "the lifetime ends before it begins")
            self.table[event.vs, event.ve, event.payload] += 1
        else:
            self._shorten(event)

    def _shorten(self, event: Retract) -> None:
        if not event.vs <= event.vn < event.ve:
            raise self._invalid(event, f"the new end must be from {event.vs} to before {event.ve}")
        old = (event.vs, event.ve, event.payload)
        if not self.table[old]:
            raise self._invalid(event, "there is nothing that it takes back")
        self.table[old] -= 1
        if not self.table[old]:
            del self.table[old]
        if not event.full:
            self.table[event.vs, event.vn, event.payload] += 1

    def _invalid(self, event: StreamEvent, why: str) -> InvalidStreamError:
        return InvalidStreamError(f"event {self.seen}, {event}: {why}", hint="send the stream through Finalize")


def fold(stream: Iterable[SourceEvent]) -> Table:
    """The canonical history table of a valid stream; an invalid one is an error."""
    converter = Converter()
    for event in stream:
        converter.on(event)
    return converter.table


class WeightedChange(NamedTuple):
    """So many more (or less) of this payload with this lifetime."""

    payload: Payload
    valid_from: Time
    valid_to: Time
    weight: int


def changes(stream: Iterable[SourceEvent]) -> list[WeightedChange]:
    """Each insert and retraction as the weights that it moves.

    >>> changes(events("R(1,8,5,P1) R(2,6,2,P2)"))  # doctest: +ELLIPSIS
    [WeightedChange(payload='P1', valid_from=1, valid_to=8, weight=-1), WeightedChange(... valid_to=5, weight=1), \
WeightedChange(payload='P2', valid_from=2, valid_to=6, weight=-1)]
    """
    found: list[WeightedChange] = []
    for event in stream:
        if isinstance(event, Insert):
            found.append(WeightedChange(event.payload, event.vs, event.ve, 1))
        elif isinstance(event, Retract):
            found.append(WeightedChange(event.payload, event.vs, event.ve, -1))
            if not event.full:
                found.append(WeightedChange(event.payload, event.vs, event.vn, 1))
    return found


def net(changed: Iterable[WeightedChange]) -> list[WeightedChange]:
    """The sum of the weights by payload and lifetime, without zeros, in order of lifetimes."""
    weights: Counter[tuple[Time, Time, Payload]] = Counter()
    for change in changed:
        weights[change.valid_from, change.valid_to, change.payload] += change.weight
    found = [WeightedChange(payload, vs, ve, n) for (vs, ve, payload), n in weights.items() if n]
    return sorted(found, key=lambda c: (c.valid_from, c.valid_to, repr(c.payload)))


def from_changes(changed: Iterable[WeightedChange]) -> list[StreamEvent]:
    """Events that move these weights, the fewest possible, in order of their sync times.

    A loss and a gain of one payload with one start are one retraction. A lifetime cannot grow: that is a full
    retraction and an insert.

    >>> from_changes(changes(events("R(1,8,5,P1)")))
    [R(1,8,5,P1)]
    >>> from_changes([WeightedChange("P1", 1, 5, -1), WeightedChange("P1", 1, 8, 1)])
    [R(1,5,1,P1), I(1,8,P1)]
    """
    lost: defaultdict[tuple[Time, Payload], list[Time]] = defaultdict(list)
    gained: defaultdict[tuple[Time, Payload], list[Time]] = defaultdict(list)
    for payload, vs, ve, weight in net(changed):
        (gained if weight > 0 else lost)[vs, payload] += [ve] * abs(weight)
    found: list[StreamEvent] = []
    for vs, payload in {**lost, **gained}:
        losses = sorted(lost[vs, payload], reverse=True)
        for ve in sorted(gained[vs, payload], reverse=True):
            # The longest gain that fits takes the longest loss: so as many as can be are paired.
            if losses and losses[0] > ve:
                found.append(Retract(vs, losses.pop(0), ve, payload))
            else:
                found.append(Insert(vs, ve, payload))
        found += [Retract(vs, ve, vs, payload) for ve in losses]
    return sorted(found, key=lambda e: (e.sync, isinstance(e, Insert)))


def coalesce(table: Table) -> Table:
    """The one form of all tables with the same content at every moment: the longest lifetimes that there can be.

    >>> sorted(coalesce(fold(events("I(1,3,5) I(3,9,5) I(2,4,5)"))))
    [(1, 9, 5), (2, 4, 5)]
    """
    steps: defaultdict[Payload, Counter[Time]] = defaultdict(Counter)
    for (vs, ve, payload), n in table.items():
        steps[payload][vs] += n
        steps[payload][ve] -= n
    joined: Table = Counter()
    for payload, by_time in steps.items():
        begun: list[Time] = []
        for time in sorted(by_time):
            begun += [time] * by_time[time]
            # The last to begin is the first to end, so that lifetimes lie within each other.
            for _ in range(-by_time[time]):
                joined[begun.pop(), time, payload] += 1
    return joined
