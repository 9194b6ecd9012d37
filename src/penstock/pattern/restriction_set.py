"""Several restrictions of one attribute taken together: their union, what is left without some, what they contain.

Lists of keys come in every epoch and grow to a hundred thousand values and more. So a short list is merged into a long
one, neighbours are found on arrays, and only the values next to a range's ends are looked at one by one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import compress, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.pattern.gap import Cut, cutter
from penstock.pattern.restriction import ANY, Equal, OneOf, Range, Restriction, listed, normal, ticks_of, values_of

#: Neighbouring values become a range. Keys that end in no order make ranges by the thousand, each of them a pattern of
#: its own: when there are more than so many, the short ones stay in the list.
FEW_RANGES = 16
LONG_RANGE = 64

_Ints = npt.NDArray[np.int64]


def union(restrictions: Iterable[Restriction], t: pa.DataType | None = None) -> list[Restriction]:
    """Few restrictions that together match what the given ones match; values are canonical for the type, if given.

    Ranges that overlap or touch become one; single values that nothing touches become one list.

    >>> from penstock.pattern.restriction import between, equal, less
    >>> print(*union([less(3), between(3, 7), equal(9), equal(12)]))
    < 7 {9, 12}
    >>> print(*union([equal(1), equal(2), between(3, 7)], pa.int32()))
    [1, 7)
    """
    given = list(restrictions)
    if any(r is ANY for r in given):
        return [ANY]
    values, ticks = _gathered(given, t)
    starts, ends = _runs(values, ticks, t)
    ranges, free = _touching([r for r in given if type(r) is Range], values, starts, ends, t)
    long = free & (ends - starts > 1)
    if len(ranges) + np.count_nonzero(long) > FEW_RANGES:
        long &= ends - starts >= LONG_RANGE
    ranges += [Range(values[i], values[j - 1], True, True) for i, j in zip(starts[long], ends[long], strict=True)]
    simple = [normal(r) for r in _joined(ranges, t)]
    single = free & ~long
    if not single.all():
        chosen = np.repeat(single, ends - starts)
        values, ticks = tuple(compress(values, chosen.tolist())), None if ticks is None else ticks[chosen]
    if alone := [r.value for r in simple if type(r) is Equal]:
        values, ticks = tuple(sorted({*values, *alone})), None
    return [r for r in simple if type(r) is Range] + ([listed(values, t, ticks)] if values else [])


def subtract(restriction: Restriction, taken: Restriction, t: pa.DataType | None = None) -> list[Restriction]:
    """What is left of a list or range without the values of another restriction.

    `*` has no rest that could be written down, and a range without more than a few single values is not worth it: what
    cannot be taken away stays.

    >>> from penstock.pattern.restriction import between, equal, less, one_of
    >>> print(*subtract(one_of([1, 5, 9]), less(5)), *subtract(between(1, 9), between(3, 5)))
    {5, 9} [1, 3) [5, 9)
    """
    if taken is ANY:
        return []
    if restriction is ANY:
        return [ANY]
    if type(restriction) is not Range:
        if type(restriction) is OneOf and type(taken) is OneOf:
            kept = tuple(v for v in restriction.values if v not in taken.known)
        elif type(restriction) is OneOf and type(taken) is Range:
            start, stop = taken.slice(restriction.values)
            kept = restriction.values[:start] + restriction.values[stop:]
        else:
            kept = tuple(v for v in values_of(restriction) if not taken.matches(v))
        if len(kept) == len(values_of(restriction)):
            return [restriction]
        return [listed(kept, t)] if kept else []
    if type(taken) is Range:
        holes: list[Range] = [taken]
    else:
        inside = union([restriction.intersect(taken)], t)
        points = [v for r in inside for v in values_of(r)]
        holes = [r for r in inside if type(r) is Range] + [Range(v, v, True, True) for v in points]
        if len(holes) > FEW_RANGES:
            return [restriction]
    left: list[Restriction] = [restriction]
    for hole in holes:
        left = [r.intersect(side) for r in left for side in _sides(hole, t)]
    return [r for r in left if not r.is_empty(t)]


def _sides(hole: Range, t: pa.DataType | None) -> list[Range]:
    """Everything before and everything behind a range."""
    sides = []
    # Integers with closed ends, so that what was a run of values still looks like one.
    step = 1 if t is not None and pa.types.is_integer(t) else 0
    if hole.low is not None:
        closed = hole.low_closed
        sides.append(Range(None, hole.low - step if closed and step else hole.low, False, bool(step) or not closed))
    if hole.high is not None:
        closed = hole.high_closed
        sides.append(Range(hole.high + step if closed and step else hole.high, None, bool(step) or not closed, False))
    return sides


def jointly_contain(restrictions: Sequence[Restriction], wanted: Restriction, t: pa.DataType) -> bool:
    """Whether every value that `wanted` matches is matched by one of the restrictions."""
    if wanted.is_empty(t) or any(r is ANY for r in restrictions):
        return True
    if wanted is ANY:
        return False
    if type(wanted) is not Range:
        rest: list[Restriction] = [wanted]
        for r in restrictions:
            rest = [piece for w in rest for piece in subtract(w, r, t)]
        return not rest
    # Neighbours are merged, so that a range lies in one piece or in none.
    return any(r.contains(wanted, t) for r in union(restrictions, t))


def _gathered(restrictions: Sequence[Restriction], t: pa.DataType | None) -> tuple[tuple[Any, ...], _Ints | None]:
    """All values listed, sorted, and their ticks. The longest list is taken as it is and the others merged into it."""
    lists = [r for r in restrictions if type(r) is OneOf]
    longest = max(lists, key=lambda r: len(r.values), default=OneOf(()))
    fresh = {r.value for r in restrictions if type(r) is Equal}
    fresh.update(*(r.values for r in lists if r is not longest))
    fresh -= longest.known
    ticks = None if t is None else longest.ticks(t)
    if not fresh:
        return longest.values, ticks
    added = sorted(fresh)
    if t is not None and ticks is not None:
        more = ticks_of(added, t)
        assert more is not None
        ticks = np.insert(ticks, np.searchsorted(ticks, more), more)
        if pa.types.is_integer(t):
            return tuple(ticks.tolist()), ticks
    # Two sorted runs: merging them takes one pass.
    return tuple(sorted((*longest.values, *added))), ticks


def _runs(values: tuple[Any, ...], ticks: _Ints | None, t: pa.DataType | None) -> tuple[_Ints, _Ints]:
    """Where runs of neighbouring values start and end; without next values, each value is a run."""
    if not values:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    if ticks is not None:
        # Not by their difference, which may overflow.
        apart: npt.NDArray[np.bool_] = ticks[:-1] + 1 != ticks[1:]
    elif t is not None and (pa.types.is_decimal(t) or t == pa.bool_()):
        cut = cutter(t)
        apart = np.array([cut(a, 1) != cut(b, 0) for a, b in pairwise(values)], dtype=bool)
    else:
        apart = np.ones(len(values) - 1, dtype=bool)
    edges = np.concatenate(([0], np.flatnonzero(apart) + 1, [len(values)]))
    return edges[:-1], edges[1:]


def _touching(
    ranges: list[Range], values: tuple[Any, ...], starts: _Ints, ends: _Ints, t: pa.DataType | None
) -> tuple[list[Range], npt.NDArray[np.bool_]]:
    """The ranges together with the runs at their ends, and which runs no range overlaps or touches."""
    cut = cutter(t)
    grown = list(ranges)
    free = np.ones(len(starts), dtype=bool)
    for r in ranges:
        low, high = r.low_cut(cut), r.high_cut(cut)
        if not low < high:
            continue
        first = bisect_left(values, low, key=lambda v: cut(v, 1))
        behind = bisect_right(values, high, key=lambda v: cut(v, 0))
        if first < behind:
            a = int(np.searchsorted(starts, first, side="right")) - 1
            b = int(np.searchsorted(starts, behind - 1, side="right")) - 1
            grown += [Range(values[starts[k]], values[ends[k] - 1], True, True) for k in {a, b}]
            free[a : b + 1] = False
    return grown, free


def _joined(ranges: Sequence[Range], t: pa.DataType | None) -> list[Range]:
    """Ranges that overlap or touch as one, keeping the ends as they were written."""
    cut = cutter(t)
    ordered = sorted((r.low_cut(cut), r.high_cut(cut), i) for i, r in enumerate(ranges))
    joined: list[tuple[Cut, Range]] = []
    for low, high, i in ordered:
        if not low < high:
            continue
        if not joined or joined[-1][0] < low:
            joined.append((high, ranges[i]))
        elif joined[-1][0] < high:
            first = joined[-1][1]
            joined[-1] = (high, Range(first.low, ranges[i].high, first.low_closed, ranges[i].high_closed))
    return [r for _, r in joined]
