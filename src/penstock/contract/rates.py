"""How fast one edge of a plan goes: how many events come, and how long after an event punctuation speaks of it.

All of it is in event time. The *clock* of a query is the newest event time that any of its streams has reached; of an
event, its *moment* is the event time for which its stream's rate is told. Two numbers decide about every state: how
many events have their moments in a stretch of time (`Arrivals`), and how long after its moment, by the clock, an event
is matched by a punctuation of some template (`Delay`).

Streams are taken to go abreast: none is behind the clock by more than its declared `lag`, or else by a few of its own
events. That holds for streams that are read as they come, not while one of them is caught up on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from penstock.contract.flow import Tags
from penstock.pattern.restriction import values_of
from penstock.pattern.schema import Schema
from penstock.plan.domain import Domains

#: Ticks of event time: microseconds for timestamps and dates, units for integers. They cannot be compared.
Clock = Literal["us", "unit"]
DAY = 86_400_000_000
#: Events that come at random cluster: so many standard deviations are allowed for, which about one in 30,000 exceeds.
_SPREAD = 4
#: A stream that tells no lag is taken to be at most so many of its own events behind the others.
BEHIND = 4


@dataclass(frozen=True)
class Arrivals:
    """At most how many events have their moments in T ticks: `burst + rate · T + spread · √T`.

    Of an even stream these are `rate · T`, or one more. For one that comes at random at that rate, the root allows for
    clusters. `step` is how far apart moments are at least: both ends of a stretch belong to it.

    >>> Arrivals.at(2).within(50), Arrivals.at(0.001).within(60_000_000)  # 102 + 1 + 40, 60,000 + 1 + 979
    (143, 60980)
    """

    rate: float
    burst: float = 1.0
    spread: float = 0.0
    step: int = 1

    @classmethod
    def at(cls, rate: float, step: int = 1) -> Arrivals:
        """Of a stream that brings so many events a tick."""
        return cls(rate, 1.0, _SPREAD * math.sqrt(rate), step)

    def within(self, ticks: int) -> int:
        stretch = max(0, ticks) + self.step
        return math.floor(self.burst + self.rate * stretch + self.spread * math.sqrt(stretch))

    def __add__(self, other: Arrivals) -> Arrivals:
        step = max(self.step, other.step)
        return Arrivals(self.rate + other.rate, self.burst + other.burst, self.spread + other.spread, step)

    def times(self, factor: float) -> Arrivals:
        """Each event that many times."""
        return Arrivals(self.rate * factor, self.burst * factor, self.spread * factor, self.step)


class Untold(str):
    """Why something is not known, where no declaration would tell it. Any other text is what to declare."""

    __slots__ = ()


@dataclass(frozen=True)
class Delay:
    """How long after its moment an event is spoken of; None if nobody told, and then what to declare, or why not.

    `own` marks a term that counts for events of this stream alone: `Once` ends a key with its event, but does not tell
    when that event comes to those that wait for it in another stream.
    """

    ticks: int | None
    lacks: str = ""
    own: bool = False

    def later(self, ticks: int) -> Delay:
        return self if self.ticks is None else Delay(self.ticks + ticks, own=self.own)


@dataclass(frozen=True)
class Rates:
    """What is known of one edge.

    `moment` are the attributes that hold an event's moment; no event arrives earlier than `after` ticks behind it.
    `values` is how many different values of an attribute occur together, `unique` are sets of attributes of which no
    two events are alike. From one event of a source come `fan` here at most.
    """

    schema: Schema
    clock: Clock | None = None
    rate: Arrivals | None = None
    lacks: str = ""
    terms: Mapping[Tags, Delay] = field(default_factory=dict)
    moment: frozenset[str] = frozenset()
    values: Mapping[str, int] = field(default_factory=dict)
    finite: Domains = field(default_factory=dict)
    unique: frozenset[frozenset[str]] = frozenset()
    after: int = 0
    sources: frozenset[str] = frozenset()
    fan: float = 1.0

    def on(self, attributes: Iterable[str], *, across: bool = False) -> dict[Tags, Delay]:
        """The terms of templates that tag some attributes alone, others only if they have finite domains.

        With `across`, those that tell something to events of other streams.
        """
        names = set(attributes)
        found: dict[Tags, Delay] = {}
        for tags, term in self.terms.items():
            inside = frozenset((n, c) for n, c in tags if n in names)
            if inside and all(n in self.finite for n, _ in tags - inside):
                if across and term.own:
                    key = ", ".join(sorted(n for n, _ in tags))
                    term = Delay(None, f"{self._called}.expect(lifetime={{'{key}': …}})")
                known = found.get(inside)
                if known is None or known.ticks is None or (term.ticks is not None and term.ticks < known.ticks):
                    found[inside] = term
        return found

    def together(self, attributes: Iterable[str]) -> int | None:
        """How many combinations of values occur together; None if that is not known of one of them."""
        found = 1
        for name in dict.fromkeys(attributes):
            known = [n for n in (self.values.get(name), self._domain(name)) if n is not None]
            if not known:
                return None
            found *= min(known)
        return found

    def held(self, ticks: int, epoch: int | None = None) -> int | None:
        """How many events are there whose moments are no more than `ticks` past, with those of an epoch under way."""
        if self.rate is None:
            return None
        arriving = 0 if epoch is None else math.ceil(epoch * max(1, len(self.sources)) * self.fan)
        return self.rate.within(ticks - self.after) + arriving

    def _domain(self, name: str) -> int | None:
        return len(values_of(self.finite[name])) if name in self.finite else None

    @property
    def _called(self) -> str:
        return next(iter(sorted(self.sources)), "stream")


def soonest(terms: Mapping[Tags, Delay]) -> Delay | None:
    """Of several templates the first to speak; if of none it is known when, one that says what to declare."""
    told = [t for t in terms.values() if t.ticks is not None]
    if told:
        return min(told, key=lambda t: t.ticks or 0)
    return next(iter(terms.values()), None)


def step_of(t: pa.DataType) -> int:
    """Ticks of the clock in a tick of an attribute: a date counts days."""
    return DAY if pa.types.is_date(t) else 1
