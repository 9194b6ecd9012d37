"""A snapshot operator for each group: payloads go to the engine of their key, results come back with it.

>>> totals = GroupApply(lambda: PerfectnessPreserving(STATES["sum"]), key=lambda p: p[0], value=lambda p: p[1])
>>> feed(totals, events("I(1,5,(a,2)) I(2,4,(b,7)) I(3,9,(a,1)) C(5)"))
[I(1,3,(a,2)), I(3,5,(a,3)), I(2,4,(b,7)), C(5)]
>>> totals.groups
['a']
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from penstock.errors import UserError
from penstock.reference.lifetimes.event import Cti, Insert, Payload, Retract, StreamEvent, Time, events
from speculative.operator import feed
from speculative.snapshot import PerfectnessPreserving
from speculative.state import STATES

__all__ = ["STATES", "GroupApply", "events", "feed"]


class GroupApply:
    def __init__(
        self,
        engine: Callable[[], PerfectnessPreserving],
        *,
        key: Callable[[Payload], Hashable],
        value: Callable[[Payload], Payload],
    ) -> None:
        if engine().zero:
            raise UserError(
                "a group has no result before its first tuple: it would begin before CTIs that have passed",
                hint='say empty="skip"',
            )
        self._new, self._key, self._value = engine, key, value
        self._engines: dict[Hashable, PerfectnessPreserving] = {}
        self.cti: Time = 0

    @property
    def groups(self) -> list[Hashable]:
        """Those in which something may still change."""
        return list(self._engines)

    def on(self, event: StreamEvent) -> list[StreamEvent]:
        if isinstance(event, Cti):
            return self._punctuate(event)
        key, value = self._key(event.payload), self._value(event.payload)
        if key not in self._engines:
            self._engines[key] = self._new()
        if isinstance(event, Insert):
            inner: StreamEvent = Insert(event.vs, event.ve, value)
        else:
            inner = Retract(event.vs, event.ve, event.vn, value)
        return [self._outer(said, key) for said in self._engines[key].on(inner) if not isinstance(said, Cti)]

    def _punctuate(self, event: Cti) -> list[StreamEvent]:
        said: list[StreamEvent] = []
        least = event.t
        for key, engine in list(self._engines.items()):
            said += [self._outer(s, key) for s in engine.on(event) if not isinstance(s, Cti)]
            least = min(least, engine.cti_out)
            if engine.idle:
                del self._engines[key]
        if least > self.cti:
            self.cti = least
            said.append(Cti(least))
        return said

    def _outer(self, said: Insert | Retract, key: Hashable) -> StreamEvent:
        if isinstance(said, Insert):
            return Insert(said.vs, said.ve, (key, said.payload))
        return Retract(said.vs, said.ve, said.vn, (key, said.payload))
