"""How paces change on the way through operators that keep nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from penstock.contract.bounding import passing_rates, renamed
from penstock.contract.flow import Tags
from penstock.contract.rates import DAY, Pace, Term
from penstock.operators.instrument.operator import Instrument
from penstock.operators.lookup.operator import TableJoin
from penstock.operators.map.contract import mapped_rates
from penstock.operators.map.operator import Map
from penstock.operators.pace.contract import paced
from penstock.operators.pace.operator import Pace as Pacing
from penstock.operators.project.operator import Project
from penstock.operators.select.operator import Select
from penstock.operators.sink.operator import Sink
from penstock.operators.union.contract import united
from penstock.operators.union.operator import Union
from penstock.operators.window.operator import Bucket
from penstock.plan.domain import domains_behind
from penstock.plan.operator import Operator, unknown
from penstock.plan.window import LandmarkWindow, TimeWindow, Window


def pace_behind(operator: Operator, below: Sequence[Pace]) -> Pace:
    """Filters are taken to let everything pass, a function may make any number of rows."""
    pace = below[0]
    finite = domains_behind(operator, [p.finite for p in below])
    match operator:
        case Project():
            return renamed(pace, operator, operator.renames)
        case Map():
            return mapped_rates(operator, pace)
        case Union():
            return united(operator, below)
        case Pacing():
            return paced(operator, below)
        case Bucket() if isinstance(operator.window, TimeWindow):
            return _bucket(operator, operator.window, pace)
        case Bucket():
            window = operator.window
            every = window.every * (DAY if window.unit == "day" else 1) if isinstance(window, LandmarkWindow) else 0
            terms = _labelled(pace, window, every) if every else pace.terms
            return replace(pace, schema=operator.schema, terms=terms, finite=finite, unique=frozenset())
        case Select() | TableJoin() | Instrument() | Sink():
            return passing_rates(operator, pace)
        case _:
            raise unknown(operator, "when and how often its events come")


def _bucket(operator: Bucket, window: TimeWindow, pace: Pace) -> Pace:
    """Each event once for each of its windows; a window is over when time is, up to its end."""
    fan = math.ceil(window.size / window.slide)
    step = DAY if window.unit == "day" else 1
    return replace(
        pace,
        schema=operator.schema,
        rate=None if pace.rate is None else pace.rate.times(fan),
        terms=_labelled(pace, window, window.size * step),
        finite=domains_behind(operator, [pace.finite]),
        unique=frozenset(u | {window.label} for u in pace.unique),
        fan=pace.fan * fan,
    )


def _labelled(pace: Pace, window: Window, ticks: int) -> dict[Tags, Term]:
    """The terms, and those of labels: that much after time itself."""
    terms = dict(pace.terms)
    for tags, term in pace.terms.items():
        rest: Tags = frozenset((n, c) for n, c in tags if (n, c) != (window.on, "+"))
        if len(rest) < len(tags):
            terms[rest | {(window.label, "+")}] = term.later(ticks)
    return terms
