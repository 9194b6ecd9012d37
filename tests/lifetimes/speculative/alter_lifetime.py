"""AlterLifetime: other lifetimes for the same payloads – windows, hops, inserts – and Deletes.

The new start is a function of the old start, the new length one of the old lifetime. Three things must hold, or CTIs
would lie; each is checked at every event that could break it:

1. the new start never falls when the old one rises;
2. the new length never grows when the old end falls;
3. where a new end comes earlier, it comes no earlier than the new start of something that begins at the old new end.

>>> feed(window(10), events("I(1,∞,5) C(3) R(1,∞,8,5)"))
[I(1,11,5), C(3)]
>>> feed(window(10), events("I(1,∞,5) R(1,∞,8,5) R(1,8,1,5) C(3)"))
[I(1,11,5), R(1,11,1,5), C(3)]
>>> feed(hop(length=10, every=5), events("I(7,8,5) C(14)"))
[I(5,15,5), C(10)]
>>> halved = AlterLifetime(start=lambda vs: vs, length=lambda vs, ve: (ve - vs) / 2)
>>> feed(halved, events("I(4,9,7) C(6) R(4,9,6,7)"))
Traceback (most recent call last):
penstock.errors.UserError: R(4,9,6,7): the new lifetime would end at 5.0, before the new start 6 of what begins at 6. \
Hint: let the length shrink no faster than the end moves
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.errors import UserError
from penstock.reference.lifetimes.event import INFINITY, Cti, Insert, Retract, StreamEvent, Time, events
from speculative.operator import feed

__all__ = ["AlterLifetime", "Deletes", "events", "feed", "from_start_on", "hop", "window"]


class AlterLifetime:
    """Maps each lifetime to [|start(vs)|, |start(vs)| + |length(vs, ve)|); one without length vanishes."""

    def __init__(self, start: Callable[[Time], Time], length: Callable[[Time, Time], Time]) -> None:
        self._start, self._length = start, length
        self.cti: Time = 0

    def on(self, event: StreamEvent) -> list[StreamEvent]:
        if isinstance(event, Cti):
            return self._punctuate(event)
        begin = self._new_start(event.vs)
        end = begin + abs(self._length(event.vs, event.ve))
        if isinstance(event, Insert):
            if begin < self.cti:
                raise _falls(event, begin, self.cti)
            return [Insert(begin, end, event.payload)] if end > begin else []
        return self._retract(event, begin, end)

    def _retract(self, event: Retract, begin: Time, end: Time) -> list[StreamEvent]:
        # With a constant length most retractions change nothing and must not be told; a full one always must.
        new_end = begin if event.full else begin + abs(self._length(event.vs, event.vn))
        if new_end > end:
            raise UserError(
                f"{event}: the new lifetime would grow from {end} to {new_end} as the old one shrinks",
                hint="let the length fall with the end",
            )
        if new_end == end:
            return []
        if new_end < (least := self._new_start(event.vn)):
            raise UserError(
                f"{event}: the new lifetime would end at {new_end}, before the new start {least} of what begins at "
                f"{event.vn}",
                hint="let the length shrink no faster than the end moves",
            )
        return [Retract(begin, end, new_end, event.payload)]

    def _punctuate(self, event: Cti) -> list[StreamEvent]:
        told = self._new_start(event.t)
        if told < self.cti:
            raise _falls(event, told, self.cti)
        if told == self.cti:
            return []
        self.cti = told
        return [Cti(told)]

    def _new_start(self, time: Time) -> Time:
        return INFINITY if time == INFINITY else abs(self._start(time))


def _falls(event: StreamEvent, new: Time, before: Time) -> UserError:
    return UserError(
        f"{event}: the new start {new} is before {before}, that of an earlier time",
        hint="let the new start never fall as the old one rises",
    )


def window(length: Time) -> AlterLifetime:
    """Everything holds for this long from its start."""
    return AlterLifetime(start=lambda vs: vs, length=lambda vs, ve: length)


def hop(*, length: Time, every: Time) -> AlterLifetime:
    """Windows that move on by a step: everything begins with the step in which it falls."""
    return AlterLifetime(start=lambda vs: vs // every * every, length=lambda vs, ve: length)


def from_start_on() -> AlterLifetime:
    """Inserts: that it has begun, for ever."""
    return window(INFINITY)


class Deletes:
    """That it has ended, from its end on for ever. Its start follows the old *end*, so it is no AlterLifetime.

    >>> feed(Deletes(), events("I(1,∞,5) R(1,∞,9,5) R(1,9,4,5) C(4) I(5,6,7)"))
    [I(9,∞,5), R(9,∞,9,5), I(4,∞,5), C(4), I(6,∞,7)]
    """

    def on(self, event: StreamEvent) -> list[StreamEvent]:
        if isinstance(event, Cti):
            return [event]
        ended: list[StreamEvent] = []
        if isinstance(event, Insert):
            return [Insert(event.ve, INFINITY, event.payload)] if event.ve < INFINITY else []
        if event.ve < INFINITY:
            ended.append(Retract(event.ve, INFINITY, event.ve, event.payload))
        if not event.full:
            ended.append(Insert(event.vn, INFINITY, event.payload))
        return ended
