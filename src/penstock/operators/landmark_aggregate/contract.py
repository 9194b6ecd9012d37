"""What aggregates over landmark windows offer: results come as time goes on, and nothing is ever forgotten."""

from __future__ import annotations

from penstock.contract.bounding import sized, times, why
from penstock.contract.flow import Flow, Verdict
from penstock.contract.rates import Rates, soonest
from penstock.contract.size import Bound
from penstock.contract.verdicts import appearing, assumed_of, endless_state, output_of, waiting_for
from penstock.operators.aggregate.contract import flow_of_groups, groups_of, growing_with_events, on_attributes
from penstock.operators.landmark_aggregate.operator import LandmarkAggregate
from penstock.operators.window.contract import clock_ticks
from penstock.plan.spec import Measurements


def judge_landmarks(operator: LandmarkAggregate, below: Flow) -> Verdict:
    """In: {[[label:+]]}, Out: the same.

    Results come as time goes on, but the totals of each key stay for ever: they must be few and not grow.
    Windows end for all keys together: only time closes anything.
    """
    label = operator.window.label
    closing = {t: a for t, a in below.described([label]).items() if t == {(label, "+")}}
    flow = flow_of_groups(operator, below, closing)
    useful = on_attributes([label])
    growing = growing_with_events(operator)
    endless = [k for k in operator.without_label if k not in below.finite]
    said = [f"windows: on {below.any_of(closing)}" if closing else waiting_for("windows", below, [label])]
    needs = () if closing or below.open else below.wanted([label])
    if endless:
        names = " and ".join(f"`{k}`" for k in endless)
        said.insert(0, f"totals of each {names} stay for ever: a landmark window never lets go of a key")
        needs = (*needs, f'declare all values of {names}: ps.Punctuate.values("{endless[0]}", […])')
    if growing:
        said += growing
        needs = (*needs, "a window that ends")
    if endless or growing:
        return Verdict("unbounded", appearing(closing, below), flow, tuple(said), needs, useful=useful)
    if closing:
        return Verdict("bounded", "complete", flow, tuple(said), (), assumed_of(closing), useful)
    state = endless_state(below)
    return Verdict(state, output_of(state), flow, tuple(said), needs, useful=useful)


def bound_landmarks(operator: LandmarkAggregate, below: Rates, measured: Measurements) -> tuple[Bound, Rates]:
    """Of each key its total, and what came in the periods that are not over."""
    window = operator.window
    groups = groups_of(operator, below)
    term = soonest(below.on([window.label]))
    every = window.every * clock_ticks(window)
    late = None if term is None or term.ticks is None else max(0, term.ticks - every)
    periods = 0 if late is None else late // every + 3
    rows = None if late is None else times(groups.together, periods)
    lacks = groups.missing if term is None or term.ticks is not None else (*groups.missing, term.lacks)
    return sized(rows, groups.width, late, lacks, why(groups.many, f"{periods} periods")), groups.behind
