"""Doubles cut into two whole numbers each, in units that suit the largest of them, so that a table of sums can be kept.

The bins of `exact_sum` have the same units for all streams. These have as many bits below the largest number as the
number of events leaves room for, so that hardly ever anything is left over, and 64 bits hold any sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.operators.aggregate import exact_sum

Doubles = npt.NDArray[np.float64]
Wholes = npt.NDArray[np.int64]

#: Bits of a sum of whole numbers, and of one that is a double exactly; bits of a number that is rounded to a whole one.
_SUM, _DOUBLE, _WHOLE = 61, 53, 51
#: Two bins of so many bits leave something over of one normal number in billions.
_ENOUGH = 44
#: Sums that are packed together, so that what is computed of them stays in the cache.
_BLOCK = 1 << 14
#: Below this the units would not be doubles any more.
_LEAST = -900
#: Groups whose rest is put together one by one; with more of them there is a better way.
_FEW = 1_000


@dataclass(frozen=True)
class Bins:
    """`width` bits below 2 ** `top`, and as many below these.

    >>> bins = Bins.for_numbers(np.array([0.75, -2.0]), most=2)
    >>> upper, lower, at, left = bins.of(np.array([0.75, -2.0]))
    >>> [column[0].as_py() for column in bins.packed(upper[:1] + upper[1:], lower[:1] + lower[1:], [])]
    [-1.25, 0.0, None]
    """

    top: int
    width: int

    @classmethod
    def for_numbers(cls, numbers: Doubles, most: int) -> Self | None:
        """Bins for the sums of at most so many of these numbers each; None if some number is too large."""
        largest = max(float(numbers.max(initial=0.0)), -float(numbers.min(initial=0.0)))
        if not np.isfinite(largest):
            return None
        top = int(np.frexp(largest)[1])
        bits = most.bit_length()
        narrow = min(_WHOLE, _DOUBLE - bits)
        width = narrow if narrow >= max(_ENOUGH, top) else min(_WHOLE, _SUM - bits)
        # Only then is a number times the unit exact, however small it is.
        return cls(top, width) if _LEAST < top <= width else None

    def of(self, numbers: Doubles) -> tuple[Wholes, Wholes, Wholes, Doubles]:
        """Both bins of each number; where something is left over, and what."""
        scaled = numbers * 2.0 ** (self.width - self.top)
        upper = np.rint(scaled)
        scaled -= upper
        scaled *= 2.0**self.width
        lower = np.rint(scaled)
        scaled -= lower
        at = np.flatnonzero(scaled)
        left = scaled[at] * 2.0 ** (self.top - 2 * self.width)
        return upper.astype(np.int64), lower.astype(np.int64), at, left

    def packed(
        self, upper: Wholes, lower: Wholes, odd: Sequence[tuple[Wholes, Doubles]]
    ) -> tuple[pa.Array, pa.Array, pa.Array] | None:
        """Sums of bins as state has them; `odd` are sums, by position, and what was left over. None: too much was."""
        units = 2.0 ** (self.top - self.width), 2.0 ** (self.top - 2 * self.width)
        owners, numbers = [at for at, _ in odd], [left for _, left in odd]
        if _are_doubles(upper) and _are_doubles(lower):
            nearest, low = np.empty(len(upper)), np.empty(len(upper))
            for first in range(0, len(upper), _BLOCK):
                some = slice(first, first + _BLOCK)
                nearest[some], low[some] = exact_sum.two_sum(
                    *(bins[some].astype(np.float64) * unit for bins, unit in zip((upper, lower), units))
                )
        else:
            nearest, low, third = exact_sum.as_doubles(upper, lower, units)
            owners.append(np.flatnonzero(third))
            numbers.append(third[owners[-1]])
        nearest += 0.0  # Makes -0.0 the same as 0.0.
        return self._with_rest(nearest, low, owners, numbers)

    def _with_rest(
        self, nearest: Doubles, low: Doubles, of: Sequence[Wholes], left: Sequence[Doubles]
    ) -> tuple[pa.Array, pa.Array, pa.Array] | None:
        """Sums with what else belongs to some of them."""
        owners, numbers = np.concatenate([np.zeros(0, np.int64), *of]), np.concatenate([np.zeros(0), *left])
        if not len(owners):
            return pa.array(nearest), pa.array(low), pa.nulls(len(nearest), exact_sum.REST)
        if len(owners) > _FEW + len(nearest) // 64:
            return None
        order = np.argsort(owners, kind="stable")
        groups, starts = np.unique(owners[order], return_index=True)
        rest: list[list[float] | None] = [None] * len(nearest)
        for group, some in zip(groups.tolist(), np.split(numbers[order], starts[1:])):
            parts = [*exact_sum.shortened([float(nearest[group]), float(low[group]), *some.tolist()]), 0.0, 0.0]
            nearest[group], low[group], rest[group] = parts[0], parts[1], [p for p in parts[2:] if p] or None
        return pa.array(nearest), pa.array(low), pa.array(rest, exact_sum.REST)


def _are_doubles(whole: Wholes) -> bool:
    return max(int(whole.max(initial=0)), -int(whole.min(initial=0))) <= 1 << _DOUBLE
