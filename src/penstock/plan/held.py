"""What an operator holds state for, as plain data: it goes with a checkpoint, so that its state can be explained."""

from __future__ import annotations

from typing import Any

from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.distinct.operator import Distinct
from penstock.operators.impute.operator import Impute
from penstock.operators.instrument.operator import Instrument
from penstock.operators.join.meeting import held_by
from penstock.operators.join.operator import Join
from penstock.operators.limit.operator import Limit
from penstock.operators.lookup.operator import TableJoin
from penstock.operators.map.operator import Map
from penstock.operators.multijoin.operator import MultiJoin
from penstock.operators.order_by.operator import OrderBy
from penstock.operators.pace.operator import Pace
from penstock.operators.project.operator import Project
from penstock.operators.rows_join.operator import RowsJoin
from penstock.operators.select.operator import Select
from penstock.operators.sink.operator import Sink
from penstock.operators.source.operator import Source
from penstock.operators.top.operator import Top
from penstock.operators.union.operator import Union
from penstock.operators.window.operator import Bucket
from penstock.plan.operator import Operator, unknown


def held_for(operator: Operator) -> dict[str, Any] | None:
    """What decides when state is released; None for an operator without state.

    >>> from penstock.pattern.schema import Schema
    >>> held_for(Distinct((), Schema.parse("a int")))
    {'kind': 'distinct'}
    """
    match operator:
        case Join() | MultiJoin():
            return held_by(operator)
        case RowsJoin():
            keys = [[a for a, _ in operator.keys], [b for _, b in operator.keys]]
            return {"kind": "join", "keys": keys, "times": list(operator.times), "reach": {}}
        case Aggregate() | Top():
            below = operator.inputs[0]
            grouping = operator.keys if isinstance(operator, Aggregate) else operator.per
            found: dict[str, Any] = {"kind": operator.kind, "keys": list(grouping)}
            if isinstance(below, Bucket):
                window = below.window
                found |= {"label": window.label, "on": window.on, "size": getattr(window, "size", None)}
            return found
        case OrderBy():
            return {"kind": "order", "by": [n for n, _ in operator.by]}
        case Distinct() | Impute() | Limit():
            return {"kind": operator.kind}
        case (
            Source() | Select() | Project() | Map() | TableJoin() | Union() | Pace() | Instrument() | Bucket() | Sink()
        ):
            return None
        case _:
            raise unknown(operator, "what it holds state for")
