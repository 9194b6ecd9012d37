"""Turning the dial: a plan that waits becomes one that tells results at once and corrects them."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.plan.consistency import Consistency
from penstock.plan.operator import Operator
from penstock.plan.plan import Plan
from penstock.plan.spec import spec_of


def speculate(roots: Sequence[Operator], consistency: Consistency) -> tuple[Operator, ...]:
    """The same queries at a point of the dial, as operators that share what they shared before.

    Every operator says what it becomes there, above all where its inputs may take rows back.
    """
    made: dict[int, Operator] = {}
    for node in Plan.of(*roots):
        inputs = [made[id(i)] for i in node.operator.inputs]
        made[id(node.operator)] = spec_of(node.operator).revised(node.operator, inputs, consistency)
    return tuple(made[id(r)] for r in roots)
