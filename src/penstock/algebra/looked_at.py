"""Which attributes of each operator's output anybody looks at.

What nobody looks at is not computed, so it cannot fail either. That must not depend on what an optimizer happens to
find out, so it is decided here, from the plan alone.
"""

from __future__ import annotations

from penstock.algebra.join import Join, MultiJoin
from penstock.algebra.operator import Aggregate, Bucket, Operator, Project, Select, Union
from penstock.algebra.plan import Plan
from penstock.algebra.table import TableJoin


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
        case Join(rows=None):
            read = {pair[port] for pair in operator.keys}
            read |= {a for column in operator.columns for side, a in column.origins if side == port}
            if operator.band is not None:
                read.add((operator.band.left, operator.band.right)[port])
            if operator.residual is not None:
                read |= {a for side, a, n in operator.pair if side == port and n in operator.residual.columns}
            return read
        case MultiJoin():
            read = {*operator.keys[port], *(a for c in operator.columns for side, a in c.origins if side == port)}
            time = operator.times[port]
            return read if time is None else read | {time}
        case Union() if type(operator) is Union:
            return set(wanted)
        case _:
            return set(operator.inputs[port].schema.names)
