"""How many events come on an edge in all, where a limit below says so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from penstock.algebra.operator import (
    Aggregate,
    Bucket,
    Distinct,
    Instrument,
    Limit,
    Operator,
    OrderBy,
    Pace,
    Project,
    Select,
    Top,
    Union,
)
from penstock.algebra.window import LandmarkWindow, TimeWindow
from penstock.contracts.size import Bound


def total_behind(operator: Operator, below: Sequence[int | None]) -> int | None:
    """At most so many events; None if there is no telling.

    >>> from penstock.algebra.builder import Stream
    >>> from penstock.algebra.operator import Source
    >>> from penstock.algebra.schema import Schema
    >>> numbers = Stream(Source((), Schema.parse("t int", "t"), name="n"))
    >>> total_behind(numbers.limit(9).operator, [None]), total_behind(numbers.window(60, slide=20).operator, [9])
    (9, 27)
    """
    known = [b for b in below if b is not None]
    if isinstance(operator, Limit):
        return min(operator.count, *known, operator.count)
    if not below or len(known) < len(below):
        return None
    match operator:
        case Union() | Pace():
            return sum(known)
        case Bucket(window=TimeWindow() as window):
            return known[0] * math.ceil(window.size / window.slide)
        case Aggregate() if not _goes_on(operator):
            return known[0]
        case Select() | Project() | Distinct() | OrderBy() | Top() | Instrument():
            return known[0]
        case _:  # A join or a function may make more of them.
            return None


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
