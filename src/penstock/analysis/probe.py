"""Feedback that may come, with values made up: from operators of a plan, and from whoever reads its results.

What becomes of a feedback depends on which attributes it restricts and in which direction, hardly on the values. So one
example for each stands for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.contract.flow import Flow, Verdict
from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.distinct.operator import Distinct
from penstock.operators.instrument.operator import Instrument
from penstock.operators.instrument.punctuation import said
from penstock.operators.join.feedback import issues_join
from penstock.operators.join.operator import Join
from penstock.operators.limit.operator import Limit
from penstock.operators.lookup.operator import TableJoin
from penstock.operators.map.operator import Map
from penstock.operators.multijoin.operator import MultiJoin
from penstock.operators.order_by.operator import OrderBy
from penstock.operators.pace.operator import Pace
from penstock.operators.project.operator import Project
from penstock.operators.rows_join.feedback import issues_rows_join
from penstock.operators.rows_join.operator import RowsJoin
from penstock.operators.select.operator import Select
from penstock.operators.sink.operator import Sink
from penstock.operators.source.operator import Source
from penstock.operators.top.operator import Top
from penstock.operators.union.operator import Union
from penstock.operators.window.operator import Bucket
from penstock.pattern.example import example, unwanted
from penstock.pattern.feedback import Feedback, Intent
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import at_least, at_most, equal, greater, less
from penstock.plan.operator import unknown
from penstock.plan.plan import Node, Plan

#: Steps of examples through operators that a check takes at most: about a second.
MOST = 4000


@dataclass(frozen=True)
class Issue:
    """A feedback that an operator tells to what one of its inputs brings.

    `widening`: each contains the one before, so only the last is kept.
    """

    node: str
    port: int
    feedback: Feedback
    widening: bool = False


def issues(plan: Plan, verdicts: Mapping[str, Verdict]) -> Iterator[Issue]:
    """What the operators of a plan may tell upstream, one example for each kind."""
    for node in plan.nodes:
        if node.operator.switches.propagate:
            yield from _issues(node, [verdicts[i].behind for i in node.inputs])


def _issues(node: Node, below: Sequence[Flow]) -> Iterator[Issue]:
    operator = node.operator
    match operator:
        case Pace():
            for port, input in enumerate(operator.inputs):
                yield Issue(node.id, port, unwanted(input.schema, {operator.on: less}), widening=True)
        case Limit():
            yield Issue(node.id, 0, unwanted(operator.inputs[0].schema, {}), widening=True)
        case Top() if not operator.order:
            pass
        case Top():
            # Worse than the last of a group that is full, by the first attribute of the order.
            first, down = operator.order[0]
            worse = {**dict.fromkeys(operator.per, equal), first: less if down else greater}
            yield Issue(node.id, 0, unwanted(operator.inputs[0].schema, worse), widening=not operator.per)
        case Instrument():
            yield Issue(node.id, 0, said(operator, operator.every or 1), widening=isinstance(operator.says, str))
        case Join():
            yield from (Issue(node.id, t.port, t.feedback, t.widening) for t in issues_join(operator, below))
        case RowsJoin():
            yield from (Issue(node.id, t.port, t.feedback, t.widening) for t in issues_rows_join(operator))
        case Source() | Select() | Project() | Map() | TableJoin() | Union() | Bucket() | Sink():
            pass
        case Aggregate() | Distinct() | OrderBy() | MultiJoin():
            pass
        case _:
            raise unknown(operator, "what it tells upstream")


def probes(plan: Plan, root: str) -> Iterator[tuple[str, Feedback]]:
    """What a consumer may say of one attribute of the results, and which attribute that is; nothing if it were much."""
    schema, directions = plan[root].operator.schema, (at_most, equal, at_least)
    if len(schema) * len(directions) * len(plan.nodes) > MOST:
        return
    for attribute in schema:
        value = example(attribute.type)
        for how in directions:
            yield attribute.name, Feedback(Intent.ASSUMED, Pattern.by_name(schema, {attribute.name: how(value)}))
