"""Turning the dial: a plan that waits becomes one that tells results at once and corrects them."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.contract.rates import Rates
from penstock.plan.consistency import Consistency
from penstock.plan.operator import Operator
from penstock.plan.plan import Plan
from penstock.plan.spec import Measurements, spec_of
from penstock.plan.weight import WEIGHT


def speculate(roots: Sequence[Operator], consistency: Consistency) -> tuple[Operator, ...]:
    """The same queries at a point of the dial, as operators that share what they shared before.

    Every operator says what it becomes there, above all where its inputs may take rows back.
    """
    made: dict[int, Operator] = {}
    for node in Plan.of(*roots):
        inputs = [made[id(i)] for i in node.operator.inputs]
        made[id(node.operator)] = spec_of(node.operator).revised(node.operator, inputs, consistency)
    return tuple(made[id(r)] for r in roots)


def told_apart_by(root: Operator) -> tuple[str, ...] | None:
    """The fewest attributes of which no two results that hold have the same values; None if that is not known.

    Without attributes there is only one result at a time.

    >>> import penstock as ps
    >>> cars = ps.stream("cars", "ts timestamp, segment int", time="ts").disorder("10 s")
    >>> counted = cars.window("1 min").group_by("segment").agg(n="count(*)")
    >>> told_apart_by(counted.rename(segment="road").operator), told_apart_by(cars.operator)
    (('window_start', 'road'), None)
    """
    paces: dict[str, Rates] = {}
    plan = Plan.of(root)
    for node in plan.nodes:
        below = [paces[i] for i in node.inputs]
        _, paces[node.id] = spec_of(node.operator).bound(node.operator, below, Measurements())
    unique = paces[plan.nodes[-1].id].unique
    sets = (tuple(n for n in root.schema.names if n in u and n != WEIGHT) for u in unique)
    return min(sets, key=lambda names: (len(names), names), default=None)
