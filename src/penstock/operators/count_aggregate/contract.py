"""What aggregates over windows of a number of events offer: windows leave when full, counts of groups stay."""

from __future__ import annotations

import math

from penstock.contract.bounding import sized, times, why
from penstock.contract.flow import Flow, Verdict
from penstock.contract.rates import Rates
from penstock.contract.size import Bound
from penstock.operators.aggregate.contract import flow_of_groups, groups_of, judge_leaving, on_attributes
from penstock.operators.count_aggregate.operator import CountAggregate
from penstock.plan.spec import Measurements


def judge_counts(operator: CountAggregate, below: Flow) -> Verdict:
    """In: {[[K:c, …]]} with a non-empty part K of the keys but the label tagged, whatever c; Out: the same.

    Results need no punctuation, but what has been counted of a group has to end, unless there are few groups.
    """
    keys = operator.without_label
    closing = below.described(keys)
    flow = flow_of_groups(operator, below, closing)
    if not all(k in below.finite for k in keys):
        return judge_leaving("counts of a group", keys, below, closing, flow)
    said = "each window leaves when it is full; " + ("one count" if not keys else "a count for each declared value")
    return Verdict("constant", "at once", flow, (f"{said} stays",), useful=on_attributes(keys))


def bound_counts(operator: CountAggregate, below: Rates, measured: Measurements) -> tuple[Bound, Rates]:
    """Of each key the windows that are not full."""
    groups = groups_of(operator, below)
    parts = math.ceil(operator.window.size / operator.window.slide) + 1
    rows = times(groups.together, parts)
    return sized(rows, groups.width, 0, groups.missing, why(groups.many, f"{parts} rows")), groups.behind
