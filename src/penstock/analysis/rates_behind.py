"""How paces change on the way through operators that keep nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from penstock.contract.bounding import passing_rates, renamed
from penstock.contract.flow import Tags
from penstock.contract.rates import BEHIND, Pace, Term, Untold, soonest, step_of
from penstock.operators.instrument.operator import Instrument
from penstock.operators.lookup.operator import TableJoin
from penstock.operators.map.contract import mapped_rates
from penstock.operators.map.operator import Map
from penstock.operators.pace.operator import Pace as Pacing
from penstock.operators.project.operator import Project
from penstock.operators.select.operator import Select
from penstock.operators.sink.operator import Sink
from penstock.operators.source.operator import Source
from penstock.operators.union.operator import Union
from penstock.operators.window.contract import labelled_rates
from penstock.operators.window.operator import Bucket
from penstock.plan.at_once import comes_as_read
from penstock.plan.domain import domains_behind
from penstock.plan.operator import Operator, unknown
from penstock.plan.promise import Expected


def pace_behind(operator: Operator, below: Sequence[Pace]) -> Pace:
    """Filters are taken to let everything pass, a function may make any number of rows."""
    pace = below[0]
    match operator:
        case Project():
            return renamed(pace, operator, operator.renames)
        case Map():
            return mapped_rates(operator, pace)
        case Union():
            return _union(operator, below)
        case Pacing():
            return _paced(operator, below)
        case Bucket():
            return labelled_rates(operator, pace)
        case Select() | TableJoin() | Instrument() | Sink():
            return passing_rates(operator, pace)
        case _:
            raise unknown(operator, "when and how often its events come")


def _union(operator: Union | Pacing, below: Sequence[Pace]) -> Pace:
    """Events of all inputs; what all inputs have spoken of, so the latest of their terms."""
    clocks = {p.clock for p in below}
    terms: dict[Tags, Term] = {}
    across = [p.on(p.schema.names, across=True) for p in below]
    for tags in set.intersection(*(set(t) for t in across)):
        found = [t[tags] for t in across]
        unknown = next((t for t in found if t.ticks is None), None)
        terms[tags] = unknown or max(found, key=lambda t: t.ticks or 0)
    rates = [p.rate for p in below]
    known = [r for r in rates if r is not None]
    same = len(clocks) == 1
    counted = set.intersection(*(set(p.values) for p in below))
    return Pace(
        operator.schema,
        clocks.pop() if same else None,
        sum(known[1:], known[0]) if same and len(known) == len(rates) else None,
        next((p.lacks for p in below if p.lacks), ""),
        terms,
        frozenset.intersection(*(p.moment for p in below)),
        {n: sum(p.values[n] for p in below) for n in counted},
        domains_behind(operator, [p.finite for p in below]),
        after=min(p.after for p in below),
        sources=(sources := frozenset[str]().union(*(p.sources for p in below))),
        # A source that comes in by two ways brings each event twice.
        fan=max((sum(p.fan for p in below if s in p.sources) for s in sources), default=max(p.fan for p in below)),
    )


def _paced(operator: Pacing, below: Sequence[Pace]) -> Pace:
    """As a union; and what is more than the bound behind the latest of any input is over by its own account.

    How far the latest can be behind the clock is as of the input that is least behind.
    """
    union = _union(operator, below)
    own: Tags = frozenset({(operator.on, "+")})
    term = Term(None, Untold(f"how `{operator.on}` of what is paced goes with time cannot be told"))
    if union.clock is not None and operator.on in union.moment and all(map(comes_as_read, operator.inputs)):
        rates = [(i, p.rate.rate) for i, p in zip(operator.inputs, below, strict=True) if p.rate is not None]
        behind = [max(math.ceil(BEHIND / rate), *_lags(i), 0) for i, rate in rates if rate]
        if behind:
            step = step_of(operator.schema.type_of(operator.on))
            term = Term(operator.bound * step + min(behind))
        else:
            term = Term(None, union.lacks)
    known = union.terms.get(own)
    best = term if known is None else soonest({own: known, frozenset(): term})
    return replace(union, terms={**union.terms, own: term if best is None else best})


def _lags(operator: Operator) -> list[int]:
    """How far the sources below may be behind the clock, as far as they say so."""
    if isinstance(operator, Source):
        told = [p for p in operator.promises if isinstance(p, Expected) and p.lag is not None]
        return [p.lag * step_of(operator.schema.type_of(p.attribute)) for p in told if p.lag and p.attribute]
    return [lag for below in operator.inputs for lag in _lags(below)]
