"""Which attributes can only take every so many values, since they are labels of windows: read off the plan."""

from __future__ import annotations

from math import gcd

from penstock.plan.operator import Operator
from penstock.plan.spec import spec_of


def grid_of(node: Operator, attribute: str) -> tuple[int, int]:
    """(step, first): the values of an attribute are `first` plus multiples of `step`; step 1 where nothing is known.

    >>> import penstock as ps
    >>> s = ps.stream("s", "ts int", time="ts")
    >>> grid_of(s.window(10, origin=3).agg(n="count(*)").operator, "window_start")
    (10, 3)
    """
    spec = spec_of(node)
    fact = spec.facts(node).get(attribute)
    if fact is not None and fact.grid is not None:
        return fact.grid.step, fact.grid.phase
    carried = spec.lineage(node).get(attribute)
    if carried is None:
        return 1, 0
    known = [grid_of(node.inputs[i], name) for i, name in carried.origins]
    first = known[0][1]
    return gcd(*(step for step, _ in known), *(first - other for _, other in known)), first
