"""Which operators give out an event in the epoch in which it comes, and which may keep it for a later one."""

from __future__ import annotations

from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.distinct.operator import Distinct
from penstock.operators.impute.operator import Impute
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


def passes_at_once(operator: Operator) -> bool:
    """Whether an event that comes to the operator leaves it in the same epoch, or never.

    >>> from penstock.pattern.schema import Schema
    >>> source = Source((), Schema.parse("a int"))
    >>> passes_at_once(source), passes_at_once(Distinct((source,), source.schema))
    (True, False)
    """
    match operator:
        case Impute():  # It is a map, but one with a queue.
            return False
        case (
            Source() | Select() | Project() | Map() | TableJoin() | Union() | Pace() | Instrument() | Bucket() | Sink()
        ):
            return True
        case Aggregate() | Distinct() | OrderBy() | Limit() | Top() | Joined() | MultiJoin():
            return False
        case _:
            raise unknown(operator, "whether events pass it at once")


def comes_as_read(operator: Operator) -> bool:
    """Whether the events that leave an operator in an epoch were read in it.

    An operator that keeps events may give many at once, and a function may make whatever events it likes.
    """
    # Once per operator, since plans may be deep and operators shared.
    stack, seen = [operator], {id(operator)}
    while stack:
        top = stack.pop()
        if isinstance(top, Map) or not passes_at_once(top):
            return False
        stack += [i for i in top.inputs if id(i) not in seen]
        seen.update(map(id, top.inputs))
    return True


def finds_several(operator: Operator) -> bool:
    """Whether somewhere below, an event may find several rows of a table: one with versions gives one at most."""
    stack, seen = [operator], {id(operator)}
    while stack:
        top = stack.pop()
        if isinstance(top, TableJoin) and top.as_of is None:
            return True
        stack += [i for i in top.inputs if id(i) not in seen]
        seen.update(map(id, top.inputs))
    return False
