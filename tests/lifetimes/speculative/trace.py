"""What an engine holds and says, event by event, as lines to read.

>>> for line in lines(PerfectnessPreserving(STATES["sum"]), events("I(1,10,5) I(4,8,3) C(6)")):
...     print(line)
I(1,10,5) → nothing (τ 1; POS −∞ nothing, 1: 5; ECQ 10: 5)
I(4,8,3) → I(1,4,5) (τ 4; POS −∞ nothing, 1: 5, 4: 8; ECQ 8: 3, 10: 5)
C(6) → I(4,6,8), C(6) (τ 6; POS 4: 8, 6: 8; ECQ 8: 3, 10: 5)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from penstock.reference.lifetimes.event import INFINITY, Payload, StreamEvent, Time, events
from speculative.snapshot import PerfectnessPreserving
from speculative.state import STATES

__all__ = ["STATES", "Heard", "events", "lines", "trace"]


@dataclass(frozen=True)
class Heard:
    """One event, what was said to it, and what was held after it."""

    event: StreamEvent
    said: tuple[StreamEvent, ...]
    tau: Time
    #: Each boundary with the results from there to the next one; none where nothing holds.
    pos: tuple[tuple[Time, tuple[Payload, ...]], ...]
    #: The tuples that end after τ, by end.
    ecq: tuple[tuple[Time, Payload], ...]

    def __str__(self) -> str:
        said = ", ".join(map(str, self.said)) or "nothing"
        pos = ", ".join(
            f"{_time(time)}: {' '.join(map(str, payloads))}" if payloads else f"{_time(time)} nothing"
            for time, payloads in self.pos
        )
        ecq = ", ".join(f"{_time(end)}: {payload}" for end, payload in self.ecq) or "empty"
        return f"{self.event} → {said} (τ {_time(self.tau)}; POS {pos}; ECQ {ecq})"


def trace(engine: PerfectnessPreserving, stream: Iterable[StreamEvent]) -> Iterator[Heard]:
    for event in stream:
        said = tuple(engine.on(event))
        yield Heard(event, said, engine.tau, engine.synopsis(), tuple((end, p) for end, (_, p) in engine.ecq))


def lines(engine: PerfectnessPreserving, stream: Iterable[StreamEvent]) -> Iterator[str]:
    yield from map(str, trace(engine, stream))


def _time(time: Time) -> str:
    return {INFINITY: "∞", -INFINITY: "−∞"}.get(time, str(time))
