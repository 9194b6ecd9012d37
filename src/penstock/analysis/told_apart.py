"""By which attributes the results of a query are told apart: of one that is corrected, before and after share them."""

from __future__ import annotations

from penstock.contract.rates import Rates
from penstock.plan.operator import Operator
from penstock.plan.plan import Plan
from penstock.plan.spec import Measurements, spec_of
from penstock.plan.weight import WEIGHT


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
