"""The step of an operator, until every room has its spec: then it is `spec_of(operator).step(operator, node_id)`."""

from __future__ import annotations

from importlib import import_module

from penstock.kernels.step import Step
from penstock.plan.operator import Operator, unknown

#: TEMPORARY. The room of each kind of operator.
ROOMS = {
    "Source": "source",
    "Sink": "sink",
    "Select": "select",
    "Project": "project",
    "Map": "map",
    "TableJoin": "lookup",
    "Union": "union",
    "Pace": "pace",
    "Instrument": "instrument",
    "Bucket": "window",
    "Aggregate": "aggregate",
    "CountAggregate": "count_aggregate",
    "LandmarkAggregate": "landmark_aggregate",
    "Distinct": "distinct",
    "OrderBy": "order_by",
    "Limit": "limit",
    "Top": "top",
    "Impute": "impute",
    "Join": "join",
    "RowsJoin": "rows_join",
    "MultiJoin": "multijoin",
}


def step_of(operator: Operator, node_id: str) -> Step:
    """What tasks do with the events of an operator."""
    room = ROOMS.get(type(operator).__name__)
    if room is None:
        raise unknown(operator, "what a task does to its events")
    step: Step = import_module(f"penstock.operators.{room}.step").step_of(operator, node_id)
    return step
