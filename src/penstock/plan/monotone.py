"""Which aggregates only ever go one way as events come in.

A count only grows. So a group whose count matches `> 40` now will match when it is complete, whatever comes: it is
*doomed* under `not [*, > 40]`. That takes an aggregate that goes one way, and a restriction that cannot be left in that
direction. Null may only be where there is no value yet: restrictions never match it. NaN is greater than every number,
so the maximum of floating numbers can leave a range with an upper end at the last moment, and their sum any range: both
count as going either way. Their minimum goes down.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import pyarrow as pa
from sqlglot import exp

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
from penstock.operators.source.declared import refuses_negative
from penstock.operators.source.operator import Source
from penstock.operators.top.operator import Top
from penstock.operators.union.operator import Union
from penstock.operators.window.operator import Bucket
from penstock.pattern.gap import BEFORE_ALL, BEHIND_ALL
from penstock.pattern.restriction import Restriction
from penstock.plan.operator import Operator, unknown
from penstock.sql.aggregation import Aggregation
from penstock.sql.parse import parse

Direction = Literal["up", "down"]


def stays_matched(restriction: Restriction, t: pa.DataType, direction: Direction | None) -> bool:
    """Whether a value that matches goes on matching while it moves in one direction.

    >>> from penstock.pattern.restriction import at_least, between, equal
    >>> [stays_matched(r, pa.int64(), "up") for r in (at_least(3), between(3, 9), equal(3))]
    [True, False, False]
    >>> stays_matched(equal(True), pa.bool_(), "up")
    True
    """
    extent = restriction.extent(t)
    if len(extent) != 1 or direction is None:
        return False
    low, high = extent[0]
    return high == BEHIND_ALL if direction == "up" else low == BEFORE_ALL


def direction_of(aggregation: Aggregation, below: Operator) -> Direction | None:
    """Where an aggregate over the events of an operator moves; None if it may move either way."""
    call = _only_call(aggregation.text)
    match call and (call.name.lower(), *call.expressions):
        case ("count" | "count_if", *_):
            return "up"
        case ("max", _) if not pa.types.is_floating(aggregation.type):
            return "up"
        case ("bool_or" | "some" | "any", _):
            return "up"
        case ("min" | "bool_and" | "every", _):
            return "down"
        case ("sum", exp.Column() as column) if not pa.types.is_floating(aggregation.type):
            name = below.schema.resolve(column.name)
            return "up" if name is not None and is_never_negative(below, name) else None
        case _:
            return None


@lru_cache(maxsize=1_024)  # Asked again with every feedback on the value.
def _only_call(text: str) -> exp.Anonymous | None:
    """The aggregate call that is all of an expression. FILTER leaves out events, whatever else comes."""
    tree: object = parse(text)
    while isinstance(tree, exp.Paren | exp.Filter | exp.IgnoreNulls):
        tree = tree.this
    return tree if isinstance(tree, exp.Anonymous) else None


def is_never_negative(operator: Operator, name: str) -> bool:
    """Whether no event of an operator has a value below zero there: a source refuses it, or it is a count.

    >>> from penstock.pattern.schema import Schema
    >>> from penstock.plan.promise import Bounds
    >>> source = Source((), Schema.parse("cars int, v int"), promises=(Bounds("cars", 0),))
    >>> is_never_negative(Distinct((source,), source.schema), "cars"), is_never_negative(source, "v")
    (True, False)
    """
    match operator:
        case Source():
            return refuses_negative(operator, name)
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
            call = _only_call(made.text)
            return call is not None and call.name.lower() in ("count", "count_if")
        case _:
            raise unknown(operator, "whether an attribute is ever negative")
