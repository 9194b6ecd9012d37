"""Which attributes can take only a few, known values: read off the plan, from the sources upwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock.operators.aggregate import operator as aggregate_operator
from penstock.operators.distinct import operator as distinct_operator
from penstock.operators.instrument import operator as instrument_operator
from penstock.operators.join.operator import Joined, Taken
from penstock.operators.limit import operator as limit_operator
from penstock.operators.lookup.operator import TableJoin
from penstock.operators.map import operator as map_operator
from penstock.operators.multijoin.operator import MultiJoin
from penstock.operators.order_by import operator as order_by_operator
from penstock.operators.pace import operator as pace_operator
from penstock.operators.project import operator as project_operator
from penstock.operators.select import operator as select_operator
from penstock.operators.sink import operator as sink_operator
from penstock.operators.source import operator as source_operator
from penstock.operators.top import operator as top_operator
from penstock.operators.union import operator as union_operator
from penstock.operators.window import operator as window_operator
from penstock.pattern.types import coerce_value
from penstock.plan import operator as plan_operator
from penstock.plan.operator import Operator
from penstock.plan.promise import Domain

#: Attribute → every value that it can have; null is never among them.
Domains = Mapping[str, tuple[Any, ...]]

#: Which sides of a join are in every row of its output.
_ALWAYS = {"inner": {0, 1}, "left": {0}, "right": {1}, "full": set[int](), "semi": {0}, "anti": {0}}


def domains(node: Operator, *, but: Iterable[str] = ()) -> dict[str, tuple[Any, ...]]:
    """The attributes of an operator's output whose values are all known, without those named in `but`.

    >>> from penstock.pattern.schema import Schema
    >>> sensor = source_operator.Source((), Schema.parse("id int, v int"), name="s", promises=(Domain("id", (3, 4)),))
    >>> domains(distinct_operator.Distinct((sensor,), sensor.schema))
    {'id': (3, 4)}
    """
    found = _behind(node, [domains(i) for i in node.inputs])
    return {name: values for name, values in found.items() if name not in set(but)}


def _behind(node: Operator, below: Sequence[Domains]) -> dict[str, tuple[Any, ...]]:
    match node:
        case source_operator.Source():
            found: dict[str, tuple[Any, ...]] = {}
            for promise in node.promises:
                if isinstance(promise, Domain):
                    name = promise.attribute
                    values = tuple(coerce_value(v, node.schema.type_of(name)) for v in promise.values)
                    # Declared twice, both hold.
                    found[name] = tuple(v for v in values if v in found.get(name, values))
            return found
        case project_operator.Project():
            return {new: below[0][old] for old, names in node.renames.items() if old in below[0] for new in names}
        case map_operator.Map():
            return {name: below[0][name] for name in node.keeps if name in below[0]}
        case aggregate_operator.Aggregate():
            return {name: below[0][name] for name in node.keys if name in below[0]}
        case union_operator.Union() | pace_operator.Pace():
            shared = [name for name in below[0] if all(name in b for b in below)]
            return {name: tuple(dict.fromkeys(v for b in below for v in b[name])) for name in shared}
        case Joined():
            return _behind_join(node.columns, below, _ALWAYS[node.how])
        case MultiJoin():
            return _behind_join(node.columns, below, set(range(len(below))))
        case (
            select_operator.Select()
            | window_operator.Bucket()
            | instrument_operator.Instrument()
            | distinct_operator.Distinct()
            | order_by_operator.OrderBy()
            | limit_operator.Limit()
            | top_operator.Top()
            | sink_operator.Sink()
            | TableJoin()
        ):
            return {name: values for name, values in below[0].items() if name in node.schema}
        case _:
            raise plan_operator.unknown(node, "which values its attributes can take")


def _behind_join(columns: Sequence[Taken], below: Sequence[Domains], always: set[int]) -> dict[str, tuple[Any, ...]]:
    found: dict[str, tuple[Any, ...]] = {}
    for column in columns:
        values: list[Any] = []
        sides: set[int] = set()
        for side, attribute in column.origins:
            if attribute not in below[side]:
                break
            values += below[side][attribute]
            sides.add(side)
            # Never null from here on: this side is in every row, or one of all the sides is.
            if side in always or len(sides) == len(below):
                found[column.name] = tuple(dict.fromkeys(values))
                break
    return found
