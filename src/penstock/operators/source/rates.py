"""How fast a source goes: what its expectations and promises tell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pyarrow as pa

from penstock.contract.flow import Tags
from penstock.contract.rates import BEHIND, Arrivals, Delay, Rates, Untold, soonest, step_of
from penstock.contract.template import Template
from penstock.operators.source.operator import Source
from penstock.plan.domain import domains_behind
from penstock.plan.promise import (
    Adaptive,
    After,
    Counted,
    Declared,
    Disorder,
    Every,
    Expected,
    Once,
    WhenAll,
    WithinRows,
)


def pace_of(source: Source, alone: bool, measured: float | None = None) -> Rates:
    """What a source's expectations and promises tell. Alone in its query, it sets the clock and cannot be behind.

    `measured` is a rate in events a tick, which counts for more than a declared one.

    >>> from penstock.builder.stream import StreamBuilder
    >>> from penstock.pattern.schema import Schema
    >>> rides = StreamBuilder(Source((), Schema.parse("ts timestamp, trip int", "ts"), name="rides")).disorder("5 s")
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
    return Rates(
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
) -> dict[Tags, Delay]:
    found: dict[Tags, Delay] = {}
    lives = {k: t * step for k, t in expected.lifetimes}
    behind = expected.lag * step if expected.lag is not None else 0
    if expected.lag is None and not alone and rate:
        behind = math.ceil(BEHIND / rate)
    periods = {p.attribute: p.period - 1 for p in source.promises if isinstance(p, Every)}

    def up_to(name: str, slack: int | None, lacks: str) -> None:
        if name != attribute:
            slack, lacks = None, _timeless(name, source, attribute)
        ticks = None if slack is None else slack + periods.get(name, 0) * step + behind
        _add(found, frozenset({(name, "+")}), Delay(ticks, lacks if ticks is None else ""))

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
            case Counted():
                up_to(promise.attribute, None if expected.lag is None else 0, said)
            case After() | Once():
                own = isinstance(promise, Once) and promise.key not in lives
                ticks = 0 if own else lives.get(promise.key)
                lacks = "" if ticks is not None else _lifetime(source, promise.key)
                _add(found, frozenset({(promise.key, "#")}), Delay(ticks, lacks, own))
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
) -> Delay:
    """When punctuation of a declared template comes: time by the lag, also where it is told for each key; keys by their
    lifetime."""
    rising = [n for n, c in template if c == "+"]
    if attribute in rising and len(rising) == 1:
        return Delay(None, f"{source.name}.expect(lag=…)") if lag is None else Delay(behind)
    if rising:
        return Delay(None, _timeless(rising[0], source, attribute))
    missing = next((n for n, _ in template if n not in lives), None)
    return Delay(None, _lifetime(source, missing)) if missing is not None else Delay(max(lives[n] for n, _ in template))


def _timeless(name: str, source: Source, attribute: str | None) -> str:
    """Of one of several times the rate may be declared; any other attribute goes as it likes."""
    if attribute is None and name in source.schema.times:
        return f"{source.name}.expect(rate=…, on='{name}')"
    return Untold(f"how `{name}` of {source.name} goes with time cannot be told")


def _lifetime(source: Source, key: str) -> str:
    return f"{source.name}.expect(lifetime={{'{key}': …}})"


def _add(found: dict[Tags, Delay], tags: Tags, term: Delay) -> None:
    """Of two terms of one template, the sooner holds."""
    best = soonest({frozenset({("", "+")}): found[tags], tags: term}) if tags in found else term
    found[tags] = term if best is None else best
