"""Snapshot operators – sum, count, rank, … of all that holds at a moment – at three levels of latency.

The engine answers each event at the cost of what it changes: n events with m answers take O(n log n + m) steps.

- **POS**, the previous output synopsis: the endpoints of the input so far with the state that holds from each to the
  next. All but the last are told. The last is the open snapshot. Its time is τ, the output watermark.
- **ECQ**, the endpoint compensation queue: the tuples that end after τ. They are what the open snapshot holds.

The levels differ in what they say of the future:

- `PerfectnessPreserving` tells a snapshot when its end is sure to be one. On perfect input it takes nothing back.
- `OrderPreserving` also tells the open snapshot, up to ∞, and shortens it. On ordered input it stays ordered.
- `MinimumLatency` tells all that follows from the input so far: every endpoint is in POS at once, ECQ stays empty.

>>> stream = events("I(1,10,5) I(4,8,3) R(4,8,5,3) C(6) C(∞)")
>>> [level(STATES["sum"]).on(stream[0]) for level in LEVELS.values()]
[[], [I(1,∞,5)], [I(1,10,5)]]
>>> feed(PerfectnessPreserving(STATES["sum"]), stream)
[I(1,4,5), I(4,5,8), I(5,6,5), C(6), I(6,10,5), C(∞)]

Policies. `cti="strict"`: the table is the definition's, bit for bit; a CTI stays behind where a snapshot is open. `cti=
"chop"` (default): every CTI passes as it is. For that a snapshot across it is told in two pieces, so the table is the
definition's after `coalesce`. `empty="zero"`: gaps, from time 0 on, give a result too, that of an empty state; with
`chop` a gap after the last endpoint does, too, as far as it was final before all ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.reference.lifetimes.event import INFINITY, Cti, Insert, Payload, Retract, StreamEvent, Time, events
from speculative.operator import feed
from speculative.ordered import Ordered
from speculative.state import STATES, State

__all__ = ["LEVELS", "STATES", "MinimumLatency", "OrderPreserving", "PerfectnessPreserving", "events", "feed"]

Emptiness = Literal["skip", "zero"]
CtiPolicy = Literal["strict", "chop"]


@dataclass
class Boundary:
    """An endpoint in POS.

    `endpoints` counts the ends of lifetimes that lie here (and marks that must stay), not the tuples that hold from
    here on: an endpoint after which nothing holds is one all the same.
    """

    state: State
    holding: int = 0
    endpoints: int = 1


class PerfectnessPreserving:
    """Tells a snapshot once an event or CTI at or after its end has come."""

    def __init__(self, state: Callable[[], State], *, cti: CtiPolicy = "chop", empty: Emptiness = "skip") -> None:
        self.chop, self.zero = cti == "chop", empty == "zero"
        self.pos: Ordered[Boundary] = Ordered()
        self.pos.add(0 if self.zero else -INFINITY, Boundary(state()))
        self.ecq: Ordered[tuple[Time, Payload]] = Ordered()
        self.cti_in: Time = 0
        self.cti_out: Time = 0
        self._said: list[StreamEvent] = []
        self._steps = 0

    @property
    def tau(self) -> Time:
        """The output watermark. It falls only when a retraction removes the last endpoint."""
        return self.pos.last()

    @property
    def steps(self) -> int:
        """Elements looked at so far, and rows said."""
        return self._steps + self.pos.steps + self.ecq.steps

    @property
    def idle(self) -> bool:
        """Whether nothing holds any more that a later event could change."""
        return len(self.pos) == 1 and not self.ecq

    def synopsis(self) -> tuple[tuple[Time, tuple[Payload, ...]], ...]:
        """POS, as results."""
        return tuple((time, tuple(self._payloads(i))) for i, (time, _) in enumerate(self.pos))

    def on(self, event: StreamEvent) -> list[StreamEvent]:
        self._said = []
        if isinstance(event, Insert):
            self._insert(event)
        elif isinstance(event, Retract):
            self._retract(event)
        else:
            self._punctuate(event.t)
        return self._said

    def _insert(self, e: Insert) -> None:
        tau, open_told = self.tau, self._open_end() is not None
        until = e.vs if e.vs <= tau else self._next_end(e.vs)
        for i in self._search(e.vs, e.ve):
            self._take_back(i, until)
        self._place(e, tau)
        for i in self._search(e.vs, e.ve):
            boundary = self.pos.items[i]
            boundary.state.add(e.payload)
            boundary.holding += 1
        if e.vs > tau:
            self._tell_from(tau, already=open_told)
        else:
            for i in self._search_to(e.vs, e.ve):
                self._tell(i)

    def _place(self, e: Insert, tau: Time) -> None:
        """Make its endpoints boundaries, those that are due."""
        self._move(e.vs)
        self._touch(e.vs)
        if e.ve <= tau:
            self._touch(e.ve)
        else:
            self.ecq.add(e.ve, (e.vs, e.payload))

    def _retract(self, e: Retract) -> None:
        tau = self.tau
        if e.vn <= tau:
            for i in self._search_to(e.vn, e.ve):
                self._take_back(i, e.vn)
        if e.full:
            self._join_before(e.vs)
        if e.ve > tau:
            self.ecq.remove(e.ve, (e.vs, e.payload))
        else:
            self._leave(e.ve)
        if e.vn > tau:
            self.ecq.add(e.vn, (e.vs, e.payload))
        elif not e.full:
            self._touch(e.vn)
        # From `vn` and not from the boundary before it: that may be an open snapshot, where the tuple still holds.
        for i in range(self.pos.before(e.vn) + 1, self.pos.before(e.ve) + 1):
            self._steps += 1
            boundary = self.pos.items[i]
            boundary.state.remove(e.payload)
            boundary.holding -= 1
        if e.full:
            self._leave(e.vs)
        if e.vn <= tau:
            for i in self._search(e.vn, e.ve):
                self._tell(i)

    def _join_before(self, vs: Time) -> None:
        """Prepare that the boundary of a start goes away: the snapshot before it will reach further."""
        i = self.pos.before_or_at(vs)
        boundary = self.pos.items[i]
        if boundary.endpoints > 1:
            return
        if self.chop and self.pos.times[i - 1] < self.cti_in and self._payloads(i - 1):
            boundary.endpoints += 1  # What is final is not taken back: the boundary outlives its tuple.
        else:
            self._take_back(i - 1, self.pos.times[i - 1])

    def _punctuate(self, t: Time) -> None:
        tau, open_told = self.tau, self._open_end() is not None
        until = self._next_end(t)
        if until < INFINITY and self.ecq and self.ecq.head() <= t:
            self._take_back(len(self.pos) - 1, until)
        self._move(t)
        if self.chop and self.tau < t < INFINITY and self._open_end() is None and self._payloads(len(self.pos) - 1):
            self._touch(t)
        self._tell_from(tau, already=open_told)
        while len(self.pos) > 1 and self.pos.times[1] < t:
            self._steps += 1
            self.pos.pop()
        self.cti_in = t
        # Strict: what is open, or may yet be joined to what comes, begins with the first boundary.
        told = t if self.chop or t == INFINITY or not self._payloads(0) else self.pos.head()
        if told > self.cti_out:
            self.cti_out = told
            self._said.append(Cti(told))

    def _move(self, until: Time) -> None:
        """Make boundaries of the ends that are due."""
        while self.ecq and self.ecq.head() <= until:
            end = self.ecq.head()
            _, payload = self.ecq.pop()
            boundary = self._touch(end)
            boundary.state.remove(payload)
            boundary.holding -= 1

    def _touch(self, time: Time) -> Boundary:
        """One more endpoint at this time."""
        i = self.pos.before_or_at(time)
        boundary = self.pos.items[i]
        if self.pos.times[i] == time:
            boundary.endpoints += 1
            return boundary
        fresh = Boundary(boundary.state.copy(), boundary.holding)
        self.pos.add(time, fresh)
        return fresh

    def _leave(self, time: Time) -> None:
        """One endpoint less at this time."""
        i = self.pos.before_or_at(time)
        self.pos.items[i].endpoints -= 1
        if not self.pos.items[i].endpoints:
            self.pos.pop(i)

    def _search(self, vs: Time, ve: Time) -> range:
        """The snapshots that overlap with [vs, ve)."""
        return self._counted(range(self.pos.before_or_at(vs), self.pos.before(ve) + 1))

    def _search_to(self, vs: Time, ve: Time) -> range:
        """And the one that begins at `ve`, if it does so only because of this tuple."""
        first, last = self.pos.before_or_at(vs), self.pos.before_or_at(ve)
        shared = self.pos.times[last] == ve and self.pos.items[last].endpoints > 1
        return self._counted(range(first, last if shared else last + 1))

    def _counted(self, found: range) -> range:
        self._steps += len(found)
        return found

    def _payloads(self, i: int) -> Sequence[Payload]:
        boundary = self.pos.items[i]
        return boundary.state.payloads() if boundary.holding or self.zero else []

    def _rows(self, i: int) -> Iterator[Insert]:
        """What is told of a snapshot."""
        end = self.pos.times[i + 1] if i + 1 < len(self.pos) else self._open_end()
        if end is not None:
            for payload in self._payloads(i):
                self._steps += 1
                yield Insert(self.pos.times[i], end, payload)

    def _open_end(self) -> Time | None:
        """Up to where the open snapshot is told, if it is."""
        return None

    def _next_end(self, at_most: Time) -> Time:
        """Where the open snapshot ends when the next boundary is at this time."""
        return min(at_most, self.ecq.head()) if self.ecq else at_most

    def _tell(self, i: int) -> None:
        self._said += self._rows(i)

    def _tell_from(self, tau: Time, *, already: bool) -> None:
        """All snapshots since the open one of before, which may be told already (and is only shorter now)."""
        for i in self._counted(range(self.pos.before_or_at(tau) + already, len(self.pos))):
            self._tell(i)

    def _take_back(self, i: int, until: Time) -> None:
        for row in self._rows(i):
            self._said.append(Retract(row.vs, row.ve, max(until, row.vs), row.payload))


class OrderPreserving(PerfectnessPreserving):
    """Tells the open snapshot, too, as if it never ended."""

    def _open_end(self) -> Time | None:
        return INFINITY if self.ecq else None


class MinimumLatency(PerfectnessPreserving):
    """Tells at once all that the input so far comes to, ends in the future included."""

    def _place(self, e: Insert, tau: Time) -> None:
        self._touch(e.vs)
        self._touch(e.ve)


#: By the names in which levels are written.
LEVELS: dict[str, type[PerfectnessPreserving]] = {
    "PP": PerfectnessPreserving,
    "OP": OrderPreserving,
    "ML": MinimumLatency,
}
