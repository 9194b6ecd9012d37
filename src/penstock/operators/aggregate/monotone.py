"""Which aggregates only ever go one way as events come in.

A count only grows. So a group whose count matches `> 40` now will match when it is complete, whatever comes: it is
*doomed* under `not [*, > 40]`. That takes an aggregate that goes one way, and a restriction that cannot be left in that
direction. Null may only be where there is no value yet: restrictions never match it. NaN is greater than every number,
so the maximum of floating numbers can leave a range with an upper end at the last moment, and their sum any range: both
count as going either way. Their minimum goes down.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import pyarrow as pa
from sqlglot import exp

from penstock.pattern.gap import BEFORE_ALL, BEHIND_ALL
from penstock.pattern.restriction import Restriction
from penstock.plan.operator import Operator
from penstock.plan.spec import spec_of
from penstock.plan.upwards import upwards
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


def is_count(aggregation: Aggregation) -> bool:
    """Whether it counts, and does nothing else: it is never negative.

    >>> from penstock.pattern.schema import Schema
    >>> schema = Schema.parse("v int")
    >>> [is_count(Aggregation.parse("n", text, schema)) for text in ("count_if(v > 3)", "count(*) - 5")]
    [True, False]
    """
    call = _only_call(aggregation.text)
    return call is not None and call.name.lower() in ("count", "count_if")


@lru_cache(maxsize=1_024)  # Asked again with every feedback on the value.
def _only_call(text: str) -> exp.Anonymous | None:
    """The aggregate call that is all of an expression. FILTER leaves out events, whatever else comes."""
    tree: object = parse(text)
    while isinstance(tree, exp.Paren | exp.Filter | exp.IgnoreNulls):
        tree = tree.this
    return tree if isinstance(tree, exp.Anonymous) else None


def is_never_negative(operator: Operator, name: str) -> bool:
    """Whether no event of an operator has a value below zero there: a source refuses it, or it is a count.

    >>> import penstock as ps
    >>> s = ps.stream("s", "cars int, v int").bounds("cars", low=0).distinct()
    >>> is_never_negative(s.operator, "cars"), is_never_negative(s.operator, "v")
    (True, False)
    """
    return name in upwards(operator, _never_negative)


def _never_negative(operator: Operator, below: Sequence[frozenset[str]]) -> frozenset[str]:
    spec = spec_of(operator)
    carried = (n for n, c in spec.lineage(operator).items() if all(o in below[side] for side, o in c.origins))
    return frozenset((*carried, *(n for n, fact in spec.facts(operator).items() if fact.never_negative)))
