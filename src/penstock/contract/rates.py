"""How fast one edge of a plan goes: how many events come, and how long after an event punctuation speaks of it.

All of it is in event time. The *clock* of a query is the newest event time that any of its streams has reached; of an
event, its *moment* is the event time for which its stream's rate is told. Two numbers decide about every state: how
many events have their moments in a stretch of time (`Arrivals`), and how long after its moment, by the clock, an event
is matched by a punctuation of some template (`Term`).

Streams are taken to go abreast: none is behind the clock by more than its declared `lag`, or else by a few of its own
events. That holds for streams that are read as they come, not while one of them is caught up on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from penstock.contract.flow import Tags
from penstock.contract.template import Template
from penstock.operators.source.operator import Source
from penstock.pattern.restriction import values_of
from penstock.pattern.schema import Schema
from penstock.plan.domain import Domains, domains_behind
from penstock.plan.promise import Adaptive, After, Declared, Disorder, Every, Expected, Once, WhenAll, WithinRows

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
class Term:
    """How long after its moment an event is spoken of; None if nobody told, and then what to declare, or why not.

    `own` marks a term that counts for events of this stream alone: `Once` ends a key with its event, but does not tell
    when that event comes to those that wait for it in another stream.
    """

    ticks: int | None
    lacks: str = ""
    own: bool = False

    def later(self, ticks: int) -> Term:
        return self if self.ticks is None else Term(self.ticks + ticks, own=self.own)


@dataclass(frozen=True)
class Pace:
    """What is known of one edge.

    `moment` are the attributes that hold an event's moment; no event arrives earlier than `after` ticks behind it.
    `values` is how many different values of an attribute occur together, `unique` are sets of attributes of which no
    two events are alike. From one event of a source come `fan` here at most.
    """

    schema: Schema
    clock: Clock | None = None
    rate: Arrivals | None = None
    lacks: str = ""
    terms: Mapping[Tags, Term] = field(default_factory=dict)
    moment: frozenset[str] = frozenset()
    values: Mapping[str, int] = field(default_factory=dict)
    finite: Domains = field(default_factory=dict)
    unique: frozenset[frozenset[str]] = frozenset()
    after: int = 0
    sources: frozenset[str] = frozenset()
    fan: float = 1.0

    def on(self, attributes: Iterable[str], *, across: bool = False) -> dict[Tags, Term]:
        """The terms of templates that tag some attributes alone, others only if they have finite domains.

        With `across`, those that tell something to events of other streams.
        """
        names = set(attributes)
        found: dict[Tags, Term] = {}
        for tags, term in self.terms.items():
            inside = frozenset((n, c) for n, c in tags if n in names)
            if inside and all(n in self.finite for n, _ in tags - inside):
                if across and term.own:
                    key = ", ".join(sorted(n for n, _ in tags))
                    term = Term(None, f"{self._called}.expect(lifetime={{'{key}': …}})")
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


def soonest(terms: Mapping[Tags, Term]) -> Term | None:
    """Of several templates the first to speak; if of none it is known when, one that says what to declare."""
    told = [t for t in terms.values() if t.ticks is not None]
    if told:
        return min(told, key=lambda t: t.ticks or 0)
    return next(iter(terms.values()), None)


def step_of(t: pa.DataType) -> int:
    """Ticks of the clock in a tick of an attribute: a date counts days."""
    return DAY if pa.types.is_date(t) else 1


def pace_of(source: Source, alone: bool, measured: float | None = None) -> Pace:
    """What a source's expectations and promises tell. Alone in its query, it sets the clock and cannot be behind.

    `measured` is a rate in events a tick, which counts for more than a declared one.

    >>> from penstock.builder.stream import Stream
    >>> rides = Stream(Source((), Schema.parse("ts timestamp, trip int", "ts"), name="rides")).disorder("5 s")
    >>> pace = pace_of(rides.expect(rate=100, lifetime={"trip": "1 h"}).operator, alone=True)
    >>> pace.held(60_000_000), [t.ticks for t in pace.terms.values()]
    (6310, [5000000])
    """
    schema = source.schema
    expected = next((p for p in source.promises if isinstance(p, Expected)), Expected())
    attribute = expected.attribute or (schema.times[0] if len(schema.times) == 1 else None)
    t = None if attribute is None else schema.type_of(attribute)
    step = 1 if t is None else step_of(t)
    rate = measured if measured is not None else None if expected.rate is None else expected.rate / step
    finite = domains_behind(source, ())
    return Pace(
        schema,
        None if t is None else "unit" if pa.types.is_integer(t) else "us",
        None if rate is None else Arrivals.at(rate, step),
        f"{source.name}.expect(rate=…)" if rate is None else "",
        _terms(source, expected, attribute, step, rate, alone),
        frozenset() if attribute is None else frozenset({attribute}),
        dict(expected.keys),
        finite,
        frozenset(frozenset({p.key}) for p in source.promises if isinstance(p, Once)),
        sources=frozenset({source.name}) if source.name else frozenset(),
    )


def _terms(
    source: Source, expected: Expected, attribute: str | None, step: int, rate: float | None, alone: bool
) -> dict[Tags, Term]:
    found: dict[Tags, Term] = {}
    lives = {k: t * step for k, t in expected.lifetimes}
    behind = expected.lag * step if expected.lag is not None else 0
    if expected.lag is None and not alone and rate:
        behind = math.ceil(BEHIND / rate)
    periods = {p.attribute: p.period - 1 for p in source.promises if isinstance(p, Every)}

    def up_to(name: str, slack: int | None, lacks: str) -> None:
        if name != attribute:
            slack, lacks = None, _timeless(name, source, attribute)
        ticks = None if slack is None else slack + periods.get(name, 0) * step + behind
        _add(found, frozenset({(name, "+")}), Term(ticks, lacks if ticks is None else ""))

    said = f"{source.name}.expect(lag=…)"
    for promise in source.promises:
        match promise:
            case Disorder():
                up_to(promise.attribute, promise.slack * step, "")
            case Adaptive():
                up_to(promise.attribute, promise.at_most * step, "")
            case WithinRows():
                places = None if not rate else math.ceil((promise.rows + 1) / rate)
                up_to(promise.attribute, places, f"{source.name}.expect(rate=…)")
            case WhenAll():
                up_to(promise.past, None if expected.lag is None else promise.slack * step, said)
            case After() | Once():
                own = isinstance(promise, Once) and promise.key not in lives
                ticks = 0 if own else lives.get(promise.key)
                lacks = "" if ticks is not None else _lifetime(source, promise.key)
                _add(found, frozenset({(promise.key, "#")}), Term(ticks, lacks, own))
            case Declared():
                for template in promise.templates:
                    term = _declared(source, template, attribute, lives, expected.lag, behind)
                    _add(found, frozenset(Template.of(source.schema, dict(template)).tagged.items()), term)
            case _:
                pass
    return found


def _declared(
    source: Source,
    template: Sequence[tuple[str, str]],
    attribute: str | None,
    lives: Mapping[str, int],
    lag: int | None,
    behind: int,
) -> Term:
    """When punctuation of a declared template comes: time by the lag, also where it is told for each key; keys by their
    lifetime."""
    rising = [n for n, c in template if c == "+"]
    if attribute in rising and len(rising) == 1:
        return Term(None, f"{source.name}.expect(lag=…)") if lag is None else Term(behind)
    if rising:
        return Term(None, _timeless(rising[0], source, attribute))
    missing = next((n for n, _ in template if n not in lives), None)
    return Term(None, _lifetime(source, missing)) if missing is not None else Term(max(lives[n] for n, _ in template))


def _timeless(name: str, source: Source, attribute: str | None) -> str:
    """Of one of several times the rate may be declared; any other attribute goes as it likes."""
    if attribute is None and name in source.schema.times:
        return f"{source.name}.expect(rate=…, on='{name}')"
    return Untold(f"how `{name}` of {source.name} goes with time cannot be told")


def _lifetime(source: Source, key: str) -> str:
    return f"{source.name}.expect(lifetime={{'{key}': …}})"


def _add(found: dict[Tags, Term], tags: Tags, term: Term) -> None:
    """Of two terms of one template, the sooner holds."""
    best = soonest({frozenset({("", "+")}): found[tags], tags: term}) if tags in found else term
    found[tags] = term if best is None else best
