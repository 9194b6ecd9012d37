"""What aggregates over sessions offer: sessions leave when time is past their ends, or their key is over."""

from __future__ import annotations

from dataclasses import replace

from penstock.contract.bounding import least, times, why
from penstock.contract.flow import Flow, Verdict
from penstock.contract.rates import Rates, soonest
from penstock.contract.size import Bound
from penstock.operators.aggregate.contract import (
    flow_of_groups,
    groups_of,
    growing_with_events,
    judge_leaving,
    on_attributes,
)
from penstock.operators.session_aggregate.operator import SessionAggregate
from penstock.operators.window.contract import clock_ticks
from penstock.plan.spec import Measurements


def judge_sessions(operator: SessionAggregate, below: Flow) -> Verdict:
    """In: {[[K:c, …]]} with a non-empty part K of the end and the keys tagged, whatever c; Out: the same.

    Where a session need never end, what grows with its events grows without end.
    """
    keys = operator.keys
    closing = below.described(keys)
    verdict = judge_leaving("sessions", keys, below, closing, flow_of_groups(operator, below, closing))
    if operator.corrected:
        verdict = replace(verdict, output="at once")
    if not (growing := growing_with_events(operator)):
        return verdict
    needs = (*verdict.needs, "a window whose length is given")
    return replace(verdict, state="unbounded", why=(*verdict.why, *growing), needs=needs, useful=on_attributes(keys))


def bound_sessions(operator: SessionAggregate, below: Rates, measured: Measurements) -> tuple[Bound, Rates]:
    """Of each key the sessions that time is not past: ends are a gap apart, and an event is a gap before each."""
    groups = groups_of(operator, below)
    behind = replace(groups.behind, rate=None)
    if operator.corrected:
        behind = replace(behind, unique=frozenset())
    window = operator.window
    term = soonest(below.on(operator.keys))
    if term is None or term.ticks is None:
        return Bound(None, None, None, None, lacks=() if term is None else (term.lacks,)), behind
    gap = window.gap * clock_ticks(window)
    many = term.ticks // gap + 2
    by_keys = times(groups.together, many)
    reason = why(groups.many, f"{many} sessions")
    delay = 0 if operator.corrected else max(0, term.ticks - gap)
    by_rate = below.held(term.ticks, measured.epoch)
    return least(below, term, by_rate, by_keys, reason, groups.missing, groups.width, delay), behind
