"""Which attributes of each operator's output anybody looks at.

What nobody looks at is not computed, so it cannot fail either. That must not depend on what an optimizer happens to
find out, so it is decided here, from the plan alone.
"""

from __future__ import annotations

from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.distinct.operator import Distinct
from penstock.operators.instrument.operator import Instrument
from penstock.operators.join.meeting import used_by
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
from penstock.operators.top.operator import Top
from penstock.operators.union.operator import Union
from penstock.operators.window.operator import Bucket
from penstock.plan.operator import Operator, unknown
from penstock.plan.plan import Plan
from penstock.sql.carried import carried


def looked_at(plan: Plan) -> dict[str, frozenset[str]]:
    """By operator, the attributes of its output that matter to some consumer.

    >>> import penstock as ps
    >>> s = ps.stream("s", "a int, b string").select("a", c="cast(b as int)", d="a + 1").where("c > 3").select("a")
    >>> sorted(looked_at(s.plan)["project-1"])
    ['a', 'c']
    """
    found: dict[str, frozenset[str]] = {}
    for node in reversed(plan.nodes):
        consumers = plan.consumers(node.id)
        wanted: set[str] = set() if consumers else set(node.operator.schema.names)
        for consumer in consumers:
            for port, name in enumerate(consumer.inputs):
                if name == node.id:
                    wanted |= _reads(consumer.operator, port, found[consumer.id])
        found[node.id] = frozenset(wanted & set(node.operator.schema.names))
    return found


def computed(plan: Plan) -> dict[str, tuple[str, ...]]:
    """By operator, the attributes of its output that have a value: all but those that nobody looks at.

    What is only passed on has one although nobody looks at it.

    >>> import penstock as ps
    >>> s = ps.stream("s", "a int, b string").select("a", "b", c="cast(b as int)").where("a > 3").select("a")
    >>> computed(s.plan)["select-1"]
    ('a', 'b')
    """
    wanted = looked_at(plan)
    found: dict[str, tuple[str, ...]] = {}
    for node in plan.nodes:
        names = node.operator.schema.names
        below = [set(found[i]) for i in node.inputs]
        match node.operator:
            case Project(columns=columns):
                made = {name for name, e in columns if name in wanted[node.id] or carried(e) in below[0]}
                names = tuple(n for n in names if n in made)
            case Select() | Instrument() | Bucket() | Union():
                lost = {n for i, had in zip(node.inputs, below) for n in set(plan[i].operator.schema.names) - had}
                names = tuple(n for n in names if n not in lost)
        found[node.id] = names
    return found


def _reads(operator: Operator, port: int, wanted: frozenset[str]) -> set[str]:
    """What an operator reads of an input so that what is wanted of its output can be computed."""
    match operator:
        case Select():
            return {*operator.predicate.columns, *wanted}
        case Project():
            return {c for name, e in operator.columns if name in wanted for c in e.columns}
        case Bucket():
            return {*wanted, *([operator.window.on] if operator.window.on is not None else [])}
        case TableJoin():
            return set(operator.reads)
        case Aggregate():
            return {*operator.keys, *(c for a in operator.aggregations for c in a.columns)}
        case Join() | MultiJoin():
            return used_by(operator, port)
        case Union():
            return set(wanted)
        case Map() | Pace() | Instrument() | Distinct() | OrderBy() | Limit() | Top() | RowsJoin() | Sink():
            return set(operator.inputs[port].schema.names)
        case _:
            raise unknown(operator, "which attributes it looks at")
