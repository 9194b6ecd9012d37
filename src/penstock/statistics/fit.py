"""Costs per row, from epochs of which only sums were measured.

Operators that are fused into one statement take their time together: cost = fixed + Σ c_i · n_i, with n_i rows at
operator i. Over epochs with different numbers of rows the costs come apart; none of them can be negative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

#: What an epoch before counts against the one behind it.
DECAY = 0.97
#: Steps of the search for the operators that cost anything; each of them adds or removes one.
_STEPS = 8

_Floats = npt.NDArray[np.float64]


def non_negative(gram: _Floats, target: _Floats) -> _Floats:
    """The x ≥ 0 with the least |A x − b|², from AᵀA and Aᵀb (Lawson and Hanson's active sets).

    >>> a = np.array([[1.0, 10], [1, 20], [1, 30]])
    >>> non_negative(a.T @ a, a.T @ np.array([25.0, 45, 65])).round(6).tolist()
    [5.0, 2.0]
    >>> non_negative(a.T @ a, a.T @ np.array([1.0, 20, 39])).round(3).tolist()  # No fixed cost below nothing.
    [0.0, 1.129]
    """
    # Rows are many and epochs few: the same size for all unknowns keeps the solution from drowning in rounding.
    scale = np.sqrt(np.diagonal(gram))
    scale = np.where(scale > 0, scale, 1.0)
    g, t = gram / np.outer(scale, scale), target / scale
    count = len(t)
    x, free = np.zeros(count), np.zeros(count, dtype=bool)
    small = 1e-12 * max(1.0, float(np.abs(t).max(initial=0.0)))
    for _ in range(_STEPS * count):
        slope = np.where(free, -np.inf, t - g @ x)
        best = int(np.argmax(slope)) if count else 0
        if not count or slope[best] <= small:
            break
        free[best] = True
        while free.any():
            tried = np.zeros(count)
            tried[free] = np.linalg.lstsq(g[np.ix_(free, free)], t[free], rcond=1e-10)[0]
            below = free & (tried <= 0)
            if not below.any():
                x = tried
                break
            steps = np.where(below, x / np.where(x - tried == 0, 1.0, x - tried), np.inf)
            x = np.where(free, x + float(steps.min()) * (tried - x), 0.0)
            free &= x > small
            x = np.where(free, x, 0.0)
    return x / scale


@dataclass(frozen=True)
class CostFit:
    """Sums over epochs from which the costs follow: a fixed one, and one per row of each of `names`.

    Older epochs count less, and there are no more numbers than pairs of names, however long the run.

    >>> fit = CostFit()
    >>> for rows, kept in ((100, 10), (200, 120), (400, 50)):
    ...     fit = fit.with_epoch({"where": rows, "map": kept}, 0.5 + 0.001 * rows + 0.02 * kept)
    >>> {name: round(cost, 6) for name, cost in fit.costs.items()}
    {'': 0.5, 'where': 0.001, 'map': 0.02}
    """

    names: tuple[str, ...] = ("",)
    gram: tuple[tuple[float, ...], ...] = ((0.0,),)
    target: tuple[float, ...] = (0.0,)
    epochs: int = 0

    def with_epoch(self, rows: Mapping[str, float], seconds: float, decay: float = DECAY) -> CostFit:
        """The same with one more epoch: rows by operator, and what they cost together."""
        names = (*self.names, *(n for n in rows if n not in self.names))
        seen = (1.0, *(float(rows.get(n, 0.0)) for n in names[1:]))
        more = (0.0,) * (len(names) - len(self.names))
        before = (*((*row, *more) for row in self.gram), *((0.0,) * len(names) for _ in more))
        # After every epoch, for every operator, of a few numbers each: arrays would take ten times as long.
        pairs = zip(before, seen, strict=True)
        gram = tuple(tuple(decay * g + a * b for g, b in zip(row, seen, strict=True)) for row, a in pairs)
        target = tuple(decay * t + a * seconds for t, a in zip((*self.target, *more), seen, strict=True))
        return CostFit(names, gram, target, self.epochs + 1)

    @property
    def costs(self) -> dict[str, float]:
        """Seconds per row by name, and under the empty name those that an epoch costs anyway."""
        found = non_negative(np.array(self.gram), np.array(self.target))
        return dict(zip(self.names, found.tolist(), strict=True))

    def to_json(self) -> list[Any]:
        rounded: Sequence[list[float]] = [[float(f"{v:.9g}") for v in row] for row in (*self.gram, self.target)]
        return [list(self.names), rounded, self.epochs]

    @classmethod
    def from_json(cls, stored: Sequence[Any]) -> CostFit:
        names, rows, epochs = stored
        return cls(tuple(names), tuple(map(tuple, rows[:-1])), tuple(rows[-1]), epochs)
