"""What `pace` offers, and when and how often its events come."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from penstock.contract import rates
from penstock.contract.flow import Flow, Tags, Verdict, least, none_null
from penstock.contract.rates import BEHIND, Delay, Untold, soonest, step_of
from penstock.operators.pace.operator import Pace
from penstock.operators.source.operator import Source
from penstock.operators.union.contract import judge_union, united
from penstock.plan.operator import Operator
from penstock.plan.promise import Expected
from penstock.plan.upwards import comes_as_read


def judge_pace(operator: Pace, below: Sequence[Flow]) -> Verdict:
    """In = {T_i}, Out = {T_1 ∧ … ∧ T_m} as of a union, and {[[on:+]]} whatever arrives: it drops what is late."""
    union = judge_union(operator, below)
    own: Tags = frozenset({(operator.on, "+")})
    timed = none_null((flow, operator.on) for flow in below)
    told = [] if timed is None else [(own, timed)]
    flow = replace(union.behind, promised=least([*told, *union.behind.promised.items()]))
    return Verdict("constant", "at once", flow, (f"remembers how far `{operator.on}` has got",))


def paced(operator: Pace, below: Sequence[rates.Rates]) -> rates.Rates:
    """As a union; and what is more than the bound behind the latest of any input is over by its own account.

    How far the latest can be behind the clock is as of the input that is least behind.
    """
    union = united(operator, below)
    own: Tags = frozenset({(operator.on, "+")})
    term = Delay(None, Untold(f"how `{operator.on}` of what is paced goes with time cannot be told"))
    if union.clock is not None and operator.on in union.moment and all(map(comes_as_read, operator.inputs)):
        known_rates = [(i, p.rate.rate) for i, p in zip(operator.inputs, below, strict=True) if p.rate is not None]
        behind = [max(math.ceil(BEHIND / rate), *_lags(i), 0) for i, rate in known_rates if rate]
        if behind:
            step = step_of(operator.schema.type_of(operator.on))
            term = Delay(operator.bound * step + min(behind))
        else:
            term = Delay(None, union.lacks)
    known = union.terms.get(own)
    best = term if known is None else soonest({own: known, frozenset(): term})
    return replace(union, terms={**union.terms, own: term if best is None else best})


def _lags(operator: Operator) -> list[int]:
    """How far the sources below may be behind the clock, as far as they say so."""
    if isinstance(operator, Source):
        told = [p for p in operator.promises if isinstance(p, Expected) and p.lag is not None]
        return [p.lag * step_of(operator.schema.type_of(p.attribute)) for p in told if p.lag and p.attribute]
    return [lag for below in operator.inputs for lag in _lags(below)]
