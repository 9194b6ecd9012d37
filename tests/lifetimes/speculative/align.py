"""Align: how long to wait before speaking. Events are held back, and retractions meet their inserts meanwhile.

It changes nothing of what a stream says in the end, only how often it says otherwise before. It waits for a CTI or for
`output_time`: whatever begins by that time goes on at once. `never` waits for CTIs alone, `at_once` does not wait,
`behind(b)` lets go of what begins b or more before the latest start.

A CTI lets go, by mode:

- `final`: of what can change no more, in order of starts. With `never` the output is perfect: nothing is taken back.
- `sync`: of all with a sync time before it, in that order. With `never` the output is ordered, and a tuple is taken
  back once at most. A CTI passes as it is.

>>> stream = events("I(5,6,9) I(4,8,2) R(4,8,6,2) C(6) I(6,9,1) C(∞)")
>>> [feed(Aligner(mode, never), stream) for mode in ("final", "sync")]
[[I(4,6,2), I(5,6,9), C(6), I(6,9,1), C(∞)], [I(4,6,2), I(5,6,9), C(6), I(6,9,1), C(∞)]]
>>> feed(Aligner("sync", never), events("I(4,8,2) C(5) R(4,8,7,2) R(4,7,6,2) C(7)"))
[I(4,8,2), C(5), R(4,8,6,2), C(7)]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from penstock.errors import UserError
from penstock.reference.lifetimes.event import INFINITY, Cti, Insert, Retract, SourceEvent, StreamEvent, Time, events
from speculative.operator import feed
from speculative.ordered import Ordered

__all__ = ["Aligner", "Schedule", "at_once", "behind", "events", "feed", "never"]

#: Up to which time, now that this event is here? It must never fall, and depend on nothing but events, so that a second
#: run says the same.
Schedule = Callable[[SourceEvent], Time]


def never(event: SourceEvent) -> Time:
    return -INFINITY


def at_once(event: SourceEvent) -> Time:
    return INFINITY


def behind(lag: Time) -> Schedule:
    """So far behind the latest start of an insert.

    >>> schedule = behind(3)
    >>> [schedule(event) for event in events("I(5,9,1) I(4,9,1) C(6) I(8,9,1)")]
    [2, 2, 2, 5]
    """
    latest = -INFINITY

    def schedule(event: SourceEvent) -> Time:
        nonlocal latest
        if isinstance(event, Insert):
            latest = max(latest, event.vs)
        return latest - lag

    return schedule


class Aligner:
    def __init__(self, mode: Literal["final", "sync"], output_time: Schedule) -> None:
        self.mode, self.output_time = mode, output_time
        self.now: Time = -INFINITY
        self.cti: Time = 0
        self._inserts: Ordered[Insert] = Ordered()  # by start
        self._retractions: Ordered[Retract] = Ordered()  # by start
        self._new_ends: Ordered[Retract] = Ordered()  # the same, by new end

    @property
    def blocked(self) -> int:
        """How many events are held back."""
        return len(self._inserts) + len(self._retractions)

    def on(self, event: StreamEvent) -> list[StreamEvent]:
        if isinstance(event, Insert):
            self._inserts.add(event.vs, event)
            return self._unblock(event)
        if isinstance(event, Retract):
            self._merge(event)
            return self._unblock(event)
        said = self._release_final(event.t) if self.mode == "final" else self._release_due(event.t)
        said += self._unblock(event)
        told = min(event.t, self._inserts.head()) if self._inserts else event.t
        if told > self.cti:
            self.cti = told
            said.append(Cti(told))
        return said

    def _merge(self, r: Retract) -> None:
        """Into what it changes, if that is still here."""
        if self._inserts.remove(r.vs, Insert(r.vs, r.ve, r.payload)):
            if not r.full:
                self._inserts.add(r.vs, Insert(r.vs, r.vn, r.payload, r.id))
            return
        for i in range(self._new_ends.before(r.ve) + 1, self._new_ends.before_or_at(r.ve) + 1):
            held = self._new_ends.items[i]
            if (held.vs, held.payload) == (r.vs, r.payload):
                self._forget(held)
                r = Retract(r.vs, held.ve, r.vn, r.payload, r.id)
                break
        self._retractions.add(r.vs, r)
        self._new_ends.add(r.vn, r)

    def _forget(self, r: Retract) -> None:
        self._retractions.remove(r.vs, r)
        self._new_ends.remove(r.vn, r)

    def _unblock(self, event: StreamEvent) -> list[StreamEvent]:
        """By start and not by sync time: so what is out has its later retractions pass at once."""
        now = self.output_time(event)
        if now < self.now:
            raise UserError(f"{event}: the output time falls from {self.now} to {now}", hint="let it never fall")
        self.now = now
        said: list[StreamEvent] = []
        while (first := min(self._first_insert(), self._first_retraction())) <= now and first < INFINITY:
            if self._first_insert() == first:
                said.append(self._inserts.pop())
            else:
                said.append(retraction := self._retractions.items[0])
                self._forget(retraction)
        return said

    def _first_insert(self) -> Time:
        return self._inserts.head() if self._inserts else INFINITY

    def _first_retraction(self) -> Time:
        return self._retractions.head() if self._retractions else INFINITY

    def _release_final(self, t: Time) -> list[StreamEvent]:
        said: list[StreamEvent] = []
        while self._inserts and self._inserts.items[0].ve <= t:
            said.append(self._inserts.pop())
        return said

    def _release_due(self, t: Time) -> list[StreamEvent]:
        said: list[StreamEvent] = []
        while self._inserts and self._inserts.head() < t:
            said.append(self._inserts.pop())
        while self._new_ends and self._new_ends.head() < t:
            said.append(retraction := self._new_ends.items[0])
            self._forget(retraction)
        return sorted(said, key=lambda e: e.sync)  # Stable: of one time, inserts first.
