"""Which attributes can only take every so many values, since they are labels of windows: read off the plan."""

from __future__ import annotations

from math import gcd

from penstock.operators.aggregate import operator as aggregate_operator
from penstock.operators.distinct import operator as distinct_operator
from penstock.operators.instrument import operator as instrument_operator
from penstock.operators.join.operator import Joined
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
from penstock.plan import operator as plan_operator
from penstock.plan.operator import Operator
from penstock.plan.window import LandmarkWindow, TimeWindow


def grid_of(node: Operator, attribute: str) -> tuple[int, int]:
    """(step, first): the values of an attribute are `first` plus multiples of `step`; step 1 where nothing is known.

    >>> from penstock.builder.stream import Stream
    >>> from penstock.pattern.schema import Schema
    >>> s = Stream(source_operator.Source((), Schema.parse("ts int", "ts"), name="s"))
    >>> grid_of(s.window(10, origin=3).agg(n="count(*)").operator, "window_start")
    (10, 3)
    """
    match node:
        case source_operator.Source():
            return 1, 0
        case window_operator.Bucket(window=TimeWindow() as window) if attribute == window.label:
            return window.slide, window.origin
        case window_operator.Bucket(window=LandmarkWindow() as growing) if attribute == growing.label:
            return growing.every, growing.origin
        case project_operator.Project():
            origins = [(0, old) for old, names in node.renames.items() if attribute in names]
        case map_operator.Map():
            origins = [(0, attribute)] if attribute in node.keeps else []
        case aggregate_operator.Aggregate():
            origins = [(0, attribute)] if attribute in node.keys else []
        case Joined() | MultiJoin():
            origins = next(list(c.origins) for c in node.columns if c.name == attribute)
        case (
            select_operator.Select()
            | window_operator.Bucket()
            | union_operator.Union()
            | pace_operator.Pace()
            | instrument_operator.Instrument()
            | distinct_operator.Distinct()
            | order_by_operator.OrderBy()
            | limit_operator.Limit()
            | top_operator.Top()
            | sink_operator.Sink()
            | TableJoin()
        ):
            origins = [(i, attribute) for i, below in enumerate(node.inputs) if attribute in below.schema]
        case _:
            raise plan_operator.unknown(node, "which of its attributes are labels of windows")
    known = [grid_of(node.inputs[i], name) for i, name in origins]
    if not known:
        return 1, 0
    first = known[0][1]
    return gcd(*(step for step, _ in known), *(first - other for _, other in known)), first
