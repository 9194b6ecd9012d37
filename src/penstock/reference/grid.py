"""Which attributes can only take every so many values, since they are labels of windows: read off the plan."""

from __future__ import annotations

from math import gcd

from penstock.algebra import operator
from penstock.algebra.join import Join, MultiJoin
from penstock.algebra.operator import Operator
from penstock.algebra.table import TableJoin
from penstock.algebra.window import LandmarkWindow, TimeWindow


def grid_of(node: Operator, attribute: str) -> tuple[int, int]:
    """(step, first): the values of an attribute are `first` plus multiples of `step`; step 1 where nothing is known.

    >>> from penstock.algebra.builder import Stream
    >>> from penstock.algebra.schema import Schema
    >>> s = Stream(operator.Source((), Schema.parse("ts int", "ts"), name="s"))
    >>> grid_of(s.window(10, origin=3).agg(n="count(*)").operator, "window_start")
    (10, 3)
    """
    match node:
        case operator.Source():
            return 1, 0
        case operator.Bucket(window=TimeWindow() as window) if attribute == window.label:
            return window.slide, window.origin
        case operator.Bucket(window=LandmarkWindow() as growing) if attribute == growing.label:
            return growing.every, growing.origin
        case operator.Project():
            origins = [(0, old) for old, names in node.renames.items() if attribute in names]
        case operator.Map():
            origins = [(0, attribute)] if attribute in node.keeps else []
        case operator.Aggregate():
            origins = [(0, attribute)] if attribute in node.keys else []
        case Join() | MultiJoin():
            origins = next(list(c.origins) for c in node.columns if c.name == attribute)
        case (
            operator.Select()
            | operator.Bucket()
            | operator.Union()
            | operator.Pace()
            | operator.Instrument()
            | operator.Distinct()
            | operator.OrderBy()
            | operator.Limit()
            | operator.Top()
            | operator.Sink()
            | TableJoin()
        ):
            origins = [(i, attribute) for i, below in enumerate(node.inputs) if attribute in below.schema]
        case _:
            raise operator.unknown(node, "which of its attributes are labels of windows")
    known = [grid_of(node.inputs[i], name) for i, name in origins]
    if not known:
        return 1, 0
    first = known[0][1]
    return gcd(*(step for step, _ in known), *(first - other for _, other in known)), first
