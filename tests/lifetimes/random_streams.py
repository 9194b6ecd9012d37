"""Random valid streams, as small as can be while everything still happens: equal tuples, equal ends, ∞, chains."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

from hypothesis import settings
from hypothesis import strategies as st

from penstock.reference.lifetimes.event import Cti, ExternalCti, Insert, Retract, SourceEvent, StreamEvent, Time

C_INFINITY = Cti(math.inf)
LATEST = 14
#: These examples take milliseconds: more of them than elsewhere, and as many as anywhere in the fuzz profile.
often = settings(max_examples=max(200, settings().max_examples))

#: One number a move and not four: Hypothesis takes its time by the draw.
_MOVE = st.integers(0, 1000 * (LATEST + 1) - 1)
#: Left alone, it draws five moves as a rule: too few for what needs three tuples, a CTI and a retraction.
_MOVES = st.lists(_MOVE, max_size=12) | st.lists(_MOVE, min_size=8, max_size=12)


def _digits(move: int) -> tuple[int, int, int, int]:
    # Shuffled: of large numbers the small ones are drawn most, and all moves would be inserts.
    rest, a = divmod(move * 7919 % (1000 * (LATEST + 1)), LATEST + 1)
    return rest // 100, a, rest // 10 % 10, rest % 10


@st.composite
def streams(draw: st.DrawFn, *, ids: bool = False, closed: bool = True) -> list[StreamEvent]:
    """Half inserts (one in ten without an end), a third retractions (half as early as can be), some CTIs, C(∞)."""
    stream: list[StreamEvent] = []
    live: list[Insert] = []
    cti: Time = 0
    for kind, a, b, c in map(_digits, draw(_MOVES)):
        if kind < 5:
            vs = max(a, cti)
            insert = Insert(vs, math.inf if b == 9 else vs + 1 + b, c % 4 - 1, f"e{len(stream)}" if ids else None)
            stream.append(insert)
            live.append(insert)
        elif kind < 8:
            candidates = [e for e in live if max(e.vs, cti) < e.ve]
            if candidates:
                e = candidates[a % len(candidates)]
                least = max(e.vs, cti)
                vn = least if b < 5 else min(least + b - 4, (LATEST + 10 if e.ve == math.inf else e.ve) - 1)
                vn = max(vn, least)
                stream.append(Retract(e.vs, e.ve, vn, e.payload, e.id))
                live = [x for x in live if x is not e]
                if vn > e.vs:
                    live.append(Insert(e.vs, vn, e.payload, e.id))
        else:
            cti = min(max(a - 6, cti), cti + b)
            stream.append(Cti(cti))
    return [*stream, C_INFINITY] if closed else stream


@st.composite
def perfect_streams(draw: st.DrawFn) -> list[StreamEvent]:
    """Inserts and CTIs in order of their sync times."""
    return sorted((e for e in draw(streams()) if not isinstance(e, Retract)), key=lambda e: e.sync)


@st.composite
def ordered_streams(draw: st.DrawFn) -> list[StreamEvent]:
    """In order of sync times, with one retraction a tuple at most, none of which is full."""
    stream = draw(perfect_streams())
    found: list[StreamEvent] = []
    for event in stream:
        found.append(event)
        if isinstance(event, Insert) and event.ve > event.vs + 1 and draw(st.booleans()):
            end = LATEST + 10 if event.ve == math.inf else int(event.ve)
            vn = draw(st.integers(int(event.vs) + 1, end - 1))
            found.append(Retract(event.vs, event.ve, vn, event.payload))
    return sorted(found, key=lambda e: e.sync)


@st.composite
def disordered(draw: st.DrawFn) -> tuple[list[StreamEvent], list[SourceEvent]]:
    """A valid stream with ids and no CTI, and its events in any order, with external CTIs that count them all."""
    stream = [e for e in draw(streams(ids=True)) if not isinstance(e, Cti)]
    cuts = sorted(draw(st.sets(st.integers(1, LATEST + 8), max_size=4)))
    counted = [ExternalCti(vs, ve, sum(vs <= e.sync < ve for e in stream)) for vs, ve in pairwise([0, *cuts, math.inf])]
    return stream, draw(st.permutations([*stream, *counted]))


def inserts(stream: Iterable[SourceEvent]) -> list[Insert]:
    return [e for e in stream if isinstance(e, Insert)]


def retractions(stream: Iterable[SourceEvent]) -> list[Retract]:
    return [e for e in stream if isinstance(e, Retract)]


def ctis(stream: Iterable[SourceEvent]) -> list[Time]:
    return [e.t for e in stream if isinstance(e, Cti)]
