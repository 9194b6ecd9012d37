"""Grids: the attributes of which only every so many values can occur, as the labels of windows.

Behind `window(10)` a label is 0, 10, 20, …: nothing lies between 10 and 20, so `<= 10` says as much as `< 20`. An
attribute that carries labels on (a key of an aggregate, a renamed or joined attribute) lies on the same grid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd
from operator import or_

from penstock.plan.operator import Operator
from penstock.plan.spec import spec_of
from penstock.plan.upwards import upwards


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

    >>> import penstock as ps
    >>> s = ps.stream("s", "ts int", time="ts")
    >>> grids(s.window(10, slide=5, origin=2).agg(n="count(*)").rename(window_start="w").operator)
    {'w': Grid(step=5, phase=2)}
    """
    return upwards(operator, _behind)


def _behind(operator: Operator, below: Sequence[Grids]) -> dict[str, Grid]:
    spec = spec_of(operator)
    carried = {
        name: reduce(or_, (below[side][n] for side, n in c.origins))
        for name, c in spec.lineage(operator).items()
        if all(n in below[side] for side, n in c.origins)
    }
    return carried | {name: fact.grid for name, fact in spec.facts(operator).items() if fact.grid is not None}
