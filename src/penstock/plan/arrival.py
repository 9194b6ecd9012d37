"""Where the order in which events arrive decides something, so that no wish may change it."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.distinct.operator import Distinct
from penstock.operators.instrument.operator import Instrument
from penstock.operators.join.operator import Joined
from penstock.operators.limit.operator import Limit
from penstock.operators.lookup.operator import TableJoin
from penstock.operators.map.operator import Map
from penstock.operators.multijoin.operator import MultiJoin
from penstock.operators.order_by.operator import OrderBy
from penstock.operators.pace.operator import Pace
from penstock.operators.project.operator import Project
from penstock.operators.select.operator import Select
from penstock.operators.sink.operator import Sink
from penstock.operators.source.operator import Source
from penstock.operators.top.operator import Top
from penstock.operators.union.operator import Union
from penstock.operators.window.operator import Bucket
from penstock.plan.operator import Operator, unknown
from penstock.plan.plan import Plan
from penstock.plan.promise import Bounds, Declared, Domain, EndOfSource, Expected, Promise
from penstock.plan.window import CountWindow


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
    match operator:
        case Limit() | Pace():
            return True
        case Bucket():
            return isinstance(operator.window, CountWindow)
        case OrderBy():
            return operator.slack is not None
        case Source() | Select() | Project() | Map() | TableJoin() | Union() | Instrument() | Sink():
            return False
        case Aggregate() | Distinct() | Top() | Joined() | MultiJoin():
            return False
        case _:
            raise unknown(operator, "whether it heeds the order of events")


def order_matters(plan: Plan, node_id: str) -> str:
    """Why the events of an operator must stay in their order; empty if they need not."""
    operator = plan[node_id].operator
    if isinstance(operator, Source) and not in_any_order(operator.promises):
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
