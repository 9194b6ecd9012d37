"""Feedback that may come, with values made up: from operators of a plan, and from whoever reads its results.

What becomes of a feedback depends on which attributes it restricts and in which direction, hardly on the values. So one
example for each stands for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from penstock.contract.flow import Verdict
from penstock.pattern.example import example
from penstock.pattern.feedback import Feedback, Intent
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import at_least, at_most, equal
from penstock.plan.plan import Plan
from penstock.plan.spec import spec_of

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
            for told in spec_of(node.operator).issues(node.operator, [verdicts[i].behind for i in node.inputs]):
                yield Issue(node.id, told.port, told.feedback, told.widening)


def probes(plan: Plan, root: str) -> Iterator[tuple[str, Feedback]]:
    """What a consumer may say of one attribute of the results, and which attribute that is; nothing if it were much."""
    schema, directions = plan[root].operator.schema, (at_most, equal, at_least)
    if len(schema) * len(directions) * len(plan.nodes) > MOST:
        return
    for attribute in schema:
        value = example(attribute.type)
        for how in directions:
            yield attribute.name, Feedback(Intent.ASSUMED, Pattern.by_name(schema, {attribute.name: how(value)}))
