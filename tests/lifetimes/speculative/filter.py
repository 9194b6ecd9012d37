"""Select: what a predicate keeps. A retraction carries its payload, so nothing has to be remembered.

An external CTI does not survive a filter, since its count is of the unfiltered stream: `Finalize` comes before.

>>> feed(Filter(lambda payload: payload > 3), events("I(1,5,2) I(1,9,7) R(1,5,3,2) R(1,9,4,7) C(4)"))
[I(1,9,7), R(1,9,4,7), C(4)]
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.reference.lifetimes.event import Cti, Payload, StreamEvent, events
from speculative.operator import feed

__all__ = ["Filter", "events", "feed"]


class Filter:
    def __init__(self, keep: Callable[[Payload], bool]) -> None:
        self.keep = keep

    def on(self, event: StreamEvent) -> list[StreamEvent]:
        return [event] if isinstance(event, Cti) or self.keep(event.payload) else []
