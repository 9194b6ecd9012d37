"""Grids: the attributes of which only every so many values can occur, as the labels of windows.

Behind `window(10)` a label is 0, 10, 20, …: nothing lies between 10 and 20, so `<= 10` says as much as `< 20`. An
attribute that carries labels on (a key of an aggregate, a renamed or joined attribute) lies on the same grid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd

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


@dataclass(frozen=True)
class Grid:
    """The ticks `phase`, `phase + step`, `phase + 2 step`, … and as many before."""

    step: int
    phase: int = 0

    def __or__(self, other: Grid) -> Grid:
        """The finest grid that is needed for both.

        >>> Grid(10, 3) | Grid(20, 8)
        Grid(step=5, phase=3)
        """
        step = gcd(self.step, other.step, self.phase - other.phase)
        return Grid(step, self.phase % step)


Grids = Mapping[str, Grid]


def grids(operator: Operator) -> dict[str, Grid]:
    """The output attributes of an operator that lie on a grid; null may be among their values.

    >>> from penstock.builder.stream import Stream
    >>> from penstock.pattern.schema import Schema
    >>> s = Stream(Source((), Schema.parse("ts int", "ts"), name="s"))
    >>> grids(s.window(10, slide=5, origin=2).agg(n="count(*)").rename(window_start="w").operator)
    {'w': Grid(step=5, phase=2)}
    """
    known: dict[int, dict[str, Grid]] = {}
    # Iterative and once per operator, since plans may be deep and operators shared.
    stack = [operator]
    while stack:
        top = stack[-1]
        if missing := [i for i in top.inputs if id(i) not in known]:
            stack.extend(missing)
            continue
        known[id(top)] = _behind(top, [known[id(i)] for i in top.inputs])
        stack.pop()
    return known[id(operator)]


def _behind(operator: Operator, below: Sequence[Grids]) -> dict[str, Grid]:
    match operator:
        case Source():
            return {}
        case Bucket(window=TimeWindow() | LandmarkWindow() as window):
            step = window.slide if isinstance(window, TimeWindow) else window.every
            return {**below[0], window.label: Grid(step, window.origin % step)}
        case Project():
            return {n: below[0][old] for old, names in operator.renames.items() if old in below[0] for n in names}
        case Map():
            return {n: below[0][n] for n in operator.keeps if n in below[0]}
        case Aggregate():
            return {n: below[0][n] for n in operator.keys if n in below[0]}
        case Union() | Pace():
            return {n: _both(b[n] for b in below) for n in below[0] if all(n in b for b in below)}
        case Joined() | MultiJoin():
            return {
                c.name: _both(below[side][n] for side, n in c.origins)
                for c in operator.columns
                if all(n in below[side] for side, n in c.origins)
            }
        case Select() | TableJoin() | Bucket() | Distinct() | OrderBy() | Limit() | Top() | Instrument() | Sink():
            return {n: grid for n, grid in below[0].items() if n in operator.schema}
        case _:
            raise unknown(operator, "which of its attributes are labels of windows")


def _both(grids: Iterable[Grid]) -> Grid:
    first, *rest = grids
    for grid in rest:
        first |= grid
    return first
