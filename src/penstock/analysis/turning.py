"""Turning the dial of a query that runs, or of one that goes on from a checkpoint: what may be changed, and to what.

Between two points at which the plan has the same operators, only numbers change: how late events may come, and for how
long they are held back. See docs/decisions/0013.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.errors import UserError
from penstock.operators.source.consistency import extents, holding_back, order_of
from penstock.operators.source.operator import Source
from penstock.plan.consistency import Consistency, Setting
from penstock.plan.operator import Operator
from penstock.plan.plan import Plan
from penstock.plan.weight import is_weighted


def setting_of(plan: Plan) -> Setting:
    """Where the dial of each source stands in a plan.

    >>> import penstock as ps
    >>> cars = ps.stream("cars", "ts int, lane int", time="ts").disorder(5)
    >>> setting_of(cars.plan), setting_of(cars.group_by("lane").agg(n="count(*)").at(ps.Consistency.middle()).plan)
    ({'source:cars': (5, 0)}, {'source:cars': (5, 0)})
    """
    found: Setting = {}
    for node in plan.sources:
        source = node.operator
        if isinstance(source, Source) and (order := order_of(source)) is not None:
            block = extents(source, source.dial)[1] if source.dial is not None else 0
            found[node.id] = order.slack, block
    return found


def turned(plan: Plan, consistency: Consistency) -> Setting:
    """Where it would stand at another point; an error if the plan would need other operators there."""
    corrects = any(is_weighted(n.operator) for n in plan.nodes)
    if corrects and not consistency.speculates:
        raise UserError(
            f"{consistency!r}: the run has told results that it may take back, so it cannot wait from now on",
            hint="ps.Consistency.middle(remember=…), which may remember little; ps.Consistency.strong() for a query "
            "that is started with a new checkpoint",
        )
    if consistency.speculates and not corrects:
        if not all(getattr(getattr(n.operator, "target", None), "takes", "") == "final" for n in plan.sinks):
            raise UserError(
                f"{consistency!r}: the run waits until results are final, and its rows have no place for corrections",
                hint="ps.Consistency.strong(remember=…) changes how long it waits; a query that corrects is started as "
                "one, with consistency= and a new checkpoint",
            )
        consistency = consistency.waiting()
    held = _held_back(plan.describe())
    found: Setting = {}
    for node in plan.sources:
        assert isinstance(node.operator, Source)
        found[node.id] = extents(node.operator, consistency)
        if found[node.id][1] and node.id not in held:
            raise UserError(
                f"{consistency!r}: '{node.operator.name}' was started without block=, so nothing is there that holds "
                "its events back",
                hint="stop the run and start it with this consistency and the same checkpoint",
            )
    return found


def as_held_back(plan: Plan, known: Mapping[str, Mapping[str, Any]]) -> Plan:
    """The plan, holding events back where its checkpoint may have some that were: at block=0 they leave at once.

    `known` is the plan as the checkpoint has it.
    """
    held = _held_back(plan.describe())
    missing = {i for i in _held_back(known) if i not in held}
    if not missing:
        return plan
    made: dict[int, Operator] = {}
    for node in plan.nodes:
        operator = node.operator
        if operator.inputs:
            operator = replace(operator, inputs=tuple(made[id(i)] for i in operator.inputs))
        elif node.id in missing and isinstance(operator, Source) and order_of(operator) is not None:
            operator = holding_back(operator, 0)
        made[id(node.operator)] = operator
    fed = {i for n in plan.nodes for i in n.inputs}
    return Plan.of(*(made[id(n.operator)] for n in plan.nodes if n.id not in fed))


def _held_back(described: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """The sources behind which events are held back."""
    return {i for d in described.values() if d["kind"] == "align" for i in d["inputs"]}
