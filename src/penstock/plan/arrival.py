"""Where the order in which events arrive decides something, so that no wish may change it."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.plan.operator import Operator
from penstock.plan.plan import Plan
from penstock.plan.promise import Bounds, Declared, Domain, EndOfSource, Expected, Promise
from penstock.plan.spec import traits_of


def in_any_order(promises: Sequence[Promise]) -> bool:
    """Whether files may be read in another order than that of their arrival.

    Where a promise speaks of order, what is late is judged by what came before: reading ahead would make late events
    of those left behind.

    >>> from penstock.plan.promise import Disorder
    >>> in_any_order([EndOfSource()]), in_any_order([Disorder("ts", 5)])
    (True, False)
    """
    return all(isinstance(p, Bounds | Domain | Declared | Expected | EndOfSource) for p in promises)


def heeds_order(operator: Operator) -> bool:
    """Whether another order of the same events gives other results."""
    return traits_of(operator).heeds_order


def order_matters(plan: Plan, node_id: str) -> str:
    """Why the events of an operator must stay in their order; empty if they need not."""
    operator = plan[node_id].operator
    if not in_any_order(getattr(operator, "promises", ())):
        return "what it promises depends on the order of files"
    seen, waiting = {node_id}, [node_id]
    while waiting:
        for consumer in plan.consumers(waiting.pop()):
            if heeds_order(consumer.operator):
                return f"the results of {consumer.id} depend on the order"
            if consumer.id not in seen:
                seen.add(consumer.id)
                waiting.append(consumer.id)
    return ""
