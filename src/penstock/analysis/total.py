"""How many events come on an edge in all, where a limit below says so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from penstock.contract.size import Bound
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
from penstock.plan.window import LandmarkWindow, TimeWindow


def total_behind(operator: Operator, below: Sequence[int | None]) -> int | None:
    """At most so many events; None if there is no telling.

    >>> from penstock.builder.stream import Stream
    >>> from penstock.operators.source.operator import Source
    >>> from penstock.pattern.schema import Schema
    >>> numbers = Stream(Source((), Schema.parse("t int", "t"), name="n"))
    >>> total_behind(numbers.limit(9).operator, [None]), total_behind(numbers.window(60, slide=20).operator, [9])
    (9, 27)
    """
    known = [b for b in below if b is not None]
    whole = bool(below) and len(known) == len(below)
    match operator:
        case Limit():
            return min(operator.count, *known, operator.count)
        case Source() | Map() | Joined() | MultiJoin():  # A join or a function may make more of them.
            return None
        case TableJoin() if operator.as_of is None:  # An event finds all rows with its key.
            return None
        case Union() | Pace():
            return sum(known) if whole else None
        case Bucket(window=TimeWindow() as window):
            return known[0] * math.ceil(window.size / window.slide) if whole else None
        case Bucket():
            return None
        case Aggregate():
            return known[0] if whole and not _goes_on(operator) else None
        case Select() | Project() | TableJoin() | Distinct() | OrderBy() | Top() | Instrument() | Sink():
            return known[0] if whole else None
        case _:
            raise unknown(operator, "how many events it gives at most")


def at_most(bound: Bound, operator: Operator, below: Sequence[int | None]) -> Bound:
    """The bound of an operator that can keep no more rows than come."""
    if not below or None in below or bound.rows == 0 or (isinstance(operator, Aggregate) and _goes_on(operator)):
        return bound
    rows = sum(b for b in below if b is not None)
    if bound.rows is not None and bound.rows <= rows:
        return bound
    return replace(bound, rows=rows, stored=rows, bytes=None, lacks=(), why="a limit is below")


def _goes_on(operator: Aggregate) -> bool:
    """Whether results come without events: a landmark window has one for every key and period."""
    below = operator.inputs[0]
    return isinstance(below, Bucket) and isinstance(below.window, LandmarkWindow)
