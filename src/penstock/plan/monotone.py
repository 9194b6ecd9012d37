"""Which attributes are never below zero, so that their sums only ever grow."""

from __future__ import annotations

import pyarrow as pa

from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.distinct.operator import Distinct
from penstock.operators.instrument.operator import Instrument
from penstock.operators.join.operator import Join
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
from penstock.plan.promise import Bounds


def is_never_negative(operator: Operator, name: str) -> bool:
    """Whether no event of an operator has a value below zero there: a source refuses it, or it is a count.

    >>> from penstock.pattern.schema import Schema
    >>> source = Source((), Schema.parse("cars int, v int"), promises=(Bounds("cars", 0),))
    >>> is_never_negative(Distinct((source,), source.schema), "cars"), is_never_negative(source, "v")
    (True, False)
    """
    match operator:
        case Source():
            bounds = [p.low for p in operator.promises if isinstance(p, Bounds) and p.attribute == name]
            number = not (pa.types.is_timestamp(t := operator.schema.type_of(name)) or pa.types.is_date(t))
            return number and any(low is not None and low >= 0 for low in bounds)
        case Select() | TableJoin() | Bucket() | Distinct() | OrderBy() | Limit() | Top() | Instrument() | Sink():
            below = operator.inputs[0]
            return name in below.schema and is_never_negative(below, name)
        case Project():
            old = [old for old, names in operator.renames.items() if name in names]
            return bool(old) and is_never_negative(operator.inputs[0], old[0])
        case Map():
            return name in operator.keeps and is_never_negative(operator.inputs[0], name)
        case Union() | Pace():
            return all(is_never_negative(i, name) for i in operator.inputs)
        case Join() | MultiJoin():
            (column,) = (c for c in operator.columns if c.name == name)
            return all(is_never_negative(operator.inputs[side], origin) for side, origin in column.origins)
        case Aggregate():
            if name in operator.keys:
                return is_never_negative(operator.inputs[0], name)
            (made,) = (a for a in operator.aggregations if a.name == name)
            from penstock.operators.aggregate.monotone import is_count

            return is_count(made)
        case _:
            raise unknown(operator, "whether an attribute is ever negative")
