"""What kind of stream it is: valid, ordered, perfect, closed.

>>> from penstock.reference.lifetimes.event import events
>>> stream = events("I(1,10,5) R(1,10,4,5) C(5)")
>>> is_valid(stream), is_ordered(stream), is_perfect(stream), is_closed(stream), closed_up_to(stream)
(True, True, False, True, 5)
>>> is_ordered(events("I(4,9,1) I(2,3,1)")), closed_up_to(events("I(4,9,1)"))
(False, None)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from penstock.reference.lifetimes.event import Cti, InvalidStreamError, Retract, SourceEvent, StreamEvent, Time
from penstock.reference.lifetimes.history import fold


def is_valid(stream: Iterable[SourceEvent]) -> bool:
    """No CTI is broken, each retraction comes after what it takes back, and each chain only gets shorter."""
    try:
        fold(stream)
    except InvalidStreamError:
        return False
    return True


def is_ordered(stream: Iterable[StreamEvent]) -> bool:
    """Sync times never fall."""
    return all(a.sync <= b.sync for a, b in pairwise(stream))


def is_perfect(stream: Sequence[StreamEvent]) -> bool:
    """Ordered, and nothing is taken back."""
    return is_ordered(stream) and not any(isinstance(e, Retract) for e in stream)


def closed_up_to(stream: Iterable[StreamEvent]) -> Time | None:
    """The greatest CTI, if there is one."""
    return max((e.t for e in stream if isinstance(e, Cti)), default=None)


def closed_at(stream: Iterable[StreamEvent], t: Time) -> bool:
    known = closed_up_to(stream)
    return known is not None and known >= t


def is_closed(stream: Sequence[StreamEvent]) -> bool:
    """The last event is a CTI beyond the sync times of all inserts and retractions."""
    if not stream or not isinstance(stream[-1], Cti):
        return False
    return all(isinstance(e, Cti) or e.sync < stream[-1].t for e in stream)
