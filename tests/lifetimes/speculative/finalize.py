"""Finalize: how long to remember. It makes a valid stream of events in any order, and CTIs of counts or of patience.

No event waits: an insert is told when it comes, a retraction when its insert is there. An external CTI says how many
events there are in a stretch of time. When all of them have come, and all before, a CTI says so.

>>> stream = parse("R(0,10,8,P0) R(0,6,4,P0) R(0,8,6,P0) I(0,10,P0) X(0,8,4) I(1,5,P1)")
>>> feed(Finalize(), stream)
[I(0,4,P0), I(1,5,P1), C(8)]

`finalize_time` says from which time on the past is closed whether or not all has come: with it memory is bounded. What
comes later still is dropped and counted, or, with `late="clip"`, a retraction still ends its tuple at the CTI.

>>> for late in ("drop", "clip"):
...     finalize = Finalize(behind(10), late=late)
...     print(feed(finalize, parse("I(1,30,5) I(14,20,6) R(1,30,2,5)")), finalize.dropped, finalize.clipped)
[I(1,30,5), I(14,20,6), C(4)] 1 0
[I(1,30,5), I(14,20,6), C(4), R(1,30,4,5)] 0 1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.errors import UserError
from penstock.reference.lifetimes.event import (
    INFINITY,
    Cti,
    ExternalCti,
    Insert,
    InvalidStreamError,
    Retract,
    SourceEvent,
    StreamEvent,
    Time,
    parse,
)
from speculative.align import Schedule, behind, never
from speculative.chains import ByChain, ByValue, Chaining
from speculative.operator import feed
from speculative.ordered import Ordered

__all__ = ["Finalize", "behind", "feed", "parse"]


@dataclass
class _Counted:
    """A stretch of time with a known number of events."""

    vs: Time
    ve: Time
    expected: int
    received: int


class Finalize:
    def __init__(
        self,
        finalize_time: Schedule = never,
        *,
        matching: Literal["id", "value"] = "id",
        late: Literal["drop", "clip"] = "drop",
    ) -> None:
        self.finalize_time, self.late = finalize_time, late
        self.chains: Chaining = ByChain() if matching == "id" else ByValue()
        self.cti: Time = 0
        self.now: Time = -INFINITY
        self.dropped = 0
        self.clipped = 0
        self._counted: Ordered[_Counted] = Ordered()  # by start
        self._received: Ordered[None] = Ordered()  # the sync times from the CTI on, for counts that come later
        self._said: list[StreamEvent] = []

    @property
    def size(self) -> int:
        """How much is remembered."""
        return self.chains.size + len(self._counted) + len(self._received)

    def on(self, event: SourceEvent) -> list[StreamEvent]:
        self._said = []
        if isinstance(event, ExternalCti):
            self._expect(event)
        elif isinstance(event, Cti):
            self._close(event.t)
        elif event.sync < self.cti:
            self._late(event)
        else:
            self._check_lifetime(event)
            told = self.chains.insert(event) if isinstance(event, Insert) else self.chains.retract(event, self.cti)
            self._say(told)
            self._receive(event)
        self._settle()
        self._age_out(event)
        return self._said

    def _say(self, told: StreamEvent | None) -> None:
        if told is not None:
            self._said.append(told)

    def _check_lifetime(self, event: Insert | Retract) -> None:
        end = event.ve if isinstance(event, Insert) else event.vn + 1
        if not (0 <= event.vs < end <= event.ve):
            raise InvalidStreamError(f"{event}: the lifetime ends before it begins", hint="repair the source")

    def _late(self, event: Insert | Retract) -> None:
        told = self.chains.clip(event, self.cti) if self.late == "clip" and isinstance(event, Retract) else None
        if told is None:
            self.dropped += 1
        else:
            self.clipped += 1
            self._said.append(told)

    def _receive(self, event: Insert | Retract) -> None:
        """Counted under its own sync time, whatever became of it in its chain."""
        self._received.add(event.sync, None)
        i = self._counted.before_or_at(event.sync)
        if i >= 0 and event.sync < (stretch := self._counted.items[i]).ve:
            stretch.received += 1
            if stretch.received > stretch.expected:
                raise InvalidStreamError(
                    f"{event}: the event number {stretch.received} of [{stretch.vs}, {stretch.ve}), where "
                    f"{stretch.expected} were counted",
                    hint="repair the source",
                )

    def _expect(self, x: ExternalCti) -> None:
        if x.vs < self.cti:
            return  # It was closed without: how many came before is forgotten.
        i = self._counted.before(x.ve)
        if not x.vs < x.ve or (i >= 0 and self._counted.items[i].ve > x.vs):
            raise InvalidStreamError(f"{x}: it overlaps with another one, or is empty", hint="repair the source")
        received = self._received.before(x.ve) - self._received.before(x.vs)
        if received > x.count:
            raise InvalidStreamError(f"{x}: {received} events have come there already", hint="repair the source")
        self._counted.add(x.vs, _Counted(x.vs, x.ve, x.count, received))

    def _settle(self) -> None:
        """Close all stretches that are complete, as far as there is no gap before them."""
        while self._counted and self._counted.head() <= self.cti:
            first = self._counted.items[0]
            if first.received < first.expected:
                break
            self._close(first.ve)

    def _age_out(self, event: SourceEvent) -> None:
        now = self.finalize_time(event)
        if now < self.now:
            raise UserError(f"{event}: the finalize time falls from {self.now} to {now}", hint="let it never fall")
        self.now = now
        i = self._counted.before_or_at(now)
        if i >= 0 and now < self._counted.items[i].ve:
            now = self._counted.items[i].vs  # Never a part of a stretch: it is counted as a whole.
        self._close(now)
        self._settle()

    def _close(self, t: Time) -> None:
        if t <= self.cti:
            return
        self.cti = t
        self.chains.forget(t)
        while self._received and self._received.head() < t:
            self._received.pop()
        while self._counted and self._counted.items[0].ve <= t:
            self._counted.pop()
        self._said.append(Cti(t))
