"""The schemes of sources: which templates their promises add up to."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.contract.flow import Aside, AttributeOrigin, Flow, promised_by
from penstock.contract.template import Scheme, Template
from penstock.operators.source.operator import Source
from penstock.plan.domain import domains_behind
from penstock.plan.promise import (
    Adaptive,
    After,
    Bounds,
    Counted,
    Declared,
    Disorder,
    EndOfSource,
    Every,
    InBand,
    Once,
    WhenAll,
    WithinRows,
)


@dataclass(frozen=True)
class Unknown:
    """Punctuation comes in band, and nobody declared which: `known` is what is sure all the same."""

    known: Scheme = field(default_factory=Scheme)

    def __str__(self) -> str:
        return f"{self.known} and what the data says" if len(self.known) else "what the data says"


def scheme_of(source: Source) -> Scheme | Unknown:
    """The scheme that a source's promises add up to.

    What it knows of an order gives `+`, what it knows of keys gives `#`. Bounds are said once, at the start, and the
    end of a bounded run once, at the end: neither releases anything while the stream goes on.

    >>> from penstock.plan.policy import Punctuate
    >>> from penstock.builder.stream import StreamBuilder
    >>> from penstock.pattern.schema import Schema
    >>> trips = StreamBuilder(Source((), Schema.parse("ts timestamp, trip int", "ts"), name="trips"))
    >>> print(scheme_of(trips.disorder("5 s").punctuate(Punctuate.after("trip", "10 min")).operator))
    {[[ts:+, trip:-]], [[ts:-, trip:#]]}
    >>> print(scheme_of(trips.punctuated().operator), "|", scheme_of(trips.punctuated().scheme(trip="value").operator))
    what the data says | {[[ts:-, trip:#]]}
    """
    found: list[dict[str, str]] = []
    for promise in source.promises:
        match promise:
            case Disorder() | Adaptive() | WithinRows() | Every():
                found.append({promise.attribute: "+"})
            case WhenAll():
                found.append({promise.past: "+"})
            case Counted():
                found.append({promise.attribute: "+"})
            case After() | Once():
                found.append({promise.key: "#"})
            case Declared():
                found += [dict(t) for t in promise.templates]
            case _:  # Bounds, domains, the end, what is measured: nothing that is released on.
                pass
    scheme = Scheme.of(*(Template.of(source.schema, t) for t in found))
    in_band = any(isinstance(p, InBand) for p in source.promises)
    return Unknown(scheme) if in_band and not any(isinstance(p, Declared) for p in source.promises) else scheme


def flow_of(source: Source) -> Flow:
    """What is known behind a source."""
    known = scheme_of(source)
    return Flow(
        source.schema,
        (source.name,) if source.name else (),
        promised_by(known.known if isinstance(known, Unknown) else known),
        isinstance(known, Unknown),
        any(isinstance(p, EndOfSource) for p in source.promises),
        {n: (AttributeOrigin(source.name, n),) for n in source.schema.names},
        domains_behind(source, ()),
        asides=frozenset(
            Aside((p.attribute,), "{} outside its bounds") for p in source.promises if isinstance(p, Bounds)
        ),
    )
