"""Running maxima over columns: which values lie too far below the greatest value before them."""

from __future__ import annotations

from bisect import insort

import numpy as np

from penstock.kernels.ticks import Ticks

LOWEST = -(1 << 63)
"""Stands for "nothing before": no value is below it."""
_HIGHEST = (1 << 63) - 1
_BLOCK = 1 << 14
# How many values per event may be looked at one suspect after the other.
_LOOKED_AT = 8


def below_running_max(ticks: Ticks, prefix: int, slack: int, floor: int = LOWEST) -> tuple[Ticks, Ticks, int]:
    """Positions of the values below (greatest value before them − slack), or below the floor.

    Returns the positions, the limit that each falls below, and the greatest value in the end.

    >>> found, limits, high = below_running_max(np.array([10, 4, 12, 8, 5]), prefix=9, slack=3)
    >>> found.tolist(), limits.tolist(), high
    ([1, 3, 4], [7, 9, 9], 12)
    """
    slack = min(slack, _HIGHEST)
    found: list[Ticks] = []
    limits: list[Ticks] = []
    before = np.empty(min(len(ticks), _BLOCK), np.int64)
    # In blocks that stay in the cache: whole-column temporaries cost several times the arithmetic.
    for start in range(0, len(ticks), _BLOCK):
        block = ticks[start : start + _BLOCK]
        high = max(prefix, int(block.max()))
        limit = max(high - slack, LOWEST, floor)
        if int(block.min()) < limit:
            running = before[: len(block)]
            running[0] = prefix
            np.maximum.accumulate(block[:-1], out=running[1:])
            np.maximum(running, max(prefix, LOWEST + slack), out=running)
            running -= slack
            if floor > LOWEST:
                np.maximum(running, floor, out=running)
            late = np.flatnonzero(block < running)
            if len(late):
                found.append(late + start)
                limits.append(running[late])
        prefix = high
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.int64), prefix
    return np.concatenate(found), np.concatenate(limits), prefix


def above_running_max(ticks: Ticks, prefix: int, most: int) -> tuple[Ticks, Ticks, int]:
    """Positions of the values above (greatest value let in before them + most), which are not let in.

    Returns the positions, the limit that each lies above, and the greatest value let in. Before the first value, with
    the prefix `LOWEST`, there is no limit.

    >>> found, limits, high = above_running_max(np.array([10, 99, 14, 20, 98]), prefix=9, most=5)
    >>> found.tolist(), limits.tolist(), high
    ([1, 3, 4], [15, 19, 19], 14)
    """
    found: list[int] = []
    limits: list[int] = []
    for start in range(0, len(ticks), _BLOCK):
        block = ticks[start : start + _BLOCK]
        if prefix == LOWEST:
            prefix = int(block[0])
        high = int(block.max())
        if high - prefix <= most:
            prefix = max(prefix, high)
            continue
        # A stream that moves on quickly, or a value too far ahead: where every step is small, it is the former.
        rising = np.maximum.accumulate(np.append(np.int64(prefix), block))
        if _largest_step(rising) <= most:
            prefix = high
            continue
        for i, value in enumerate(block.tolist(), start):
            if value - prefix > most:
                found.append(i)
                limits.append(min(prefix + most, _HIGHEST))
            else:
                prefix = max(prefix, value)
    return np.array(found, np.int64), np.array(limits, np.int64), prefix


def _largest_step(rising: Ticks) -> int:
    # As unsigned numbers, in which the difference of any two ticks has room.
    return int(np.diff(rising.view(np.uint64)).max())


def below_running_max_by_key(ticks: Ticks, codes: Ticks, prefixes: Ticks, slack: int) -> tuple[Ticks, Ticks, Ticks]:
    """The same with one running maximum per key; `codes` are positions in `prefixes`.

    >>> ticks, codes = np.array([5, 9, 3, 8]), np.array([0, 1, 0, 1])
    >>> found, limits, highs = below_running_max_by_key(ticks, codes, np.array([0, 0]), 1)
    >>> found.tolist(), limits.tolist(), highs.tolist()
    ([2], [4], [5, 9])
    """
    slack = min(slack, _HIGHEST)
    # The maximum of each key so far comes first in its group, then its values in their order.
    keys = len(prefixes)
    values = np.concatenate([prefixes, ticks])
    groups = np.concatenate([np.arange(keys), codes])
    order = np.argsort(groups, kind="stable")
    # Ranks shifted by group make one accumulation do for all groups: each group starts above the one before it.
    distinct, ranks = np.unique(values, return_inverse=True)
    shifted = ranks[order] + groups[order] * len(distinct)
    running = np.maximum.accumulate(shifted)
    greatest = distinct[running - groups[order] * len(distinct)]
    starts = np.searchsorted(groups[order], np.arange(keys))
    ends = np.append(starts[1:], len(order)) - 1
    before = np.empty(len(values), np.int64)
    before[order[1:]] = greatest[:-1]  # wrong at the first of a group only, and that is no event
    limits = less_slack(before[keys:], slack)
    found = np.flatnonzero(ticks < limits)
    return found, limits[found], greatest[ends]


def less_slack(values: Ticks, slack: int) -> Ticks:
    """values − slack, stopping at the lowest value instead of wrapping around."""
    result: Ticks = np.where(values < LOWEST + slack, np.int64(LOWEST), values - np.int64(slack))
    return result


def limits_before(ticks: Ticks, prefix: int, slack: int, floor: int = LOWEST) -> Ticks:
    """For each position the greatest value before it less the slack, not below the floor.

    >>> limits_before(np.array([10, 4, 12]), prefix=9, slack=3).tolist()
    [6, 7, 7]
    """
    running = np.empty(len(ticks), np.int64)
    if len(ticks):
        running[0] = prefix
        np.maximum.accumulate(np.maximum(ticks[:-1], prefix), out=running[1:])
    return np.maximum(less_slack(running, min(slack, _HIGHEST)), floor)


def below_kth_greatest(ticks: Ticks, top: Ticks, k: int) -> tuple[Ticks, Ticks, Ticks]:
    """Positions of the values with more than `k` greater ones before them.

    `top` are the k + 1 greatest values so far, or all if there are fewer. Returns the positions, the limit that each
    falls below, and the greatest values in the end.

    >>> found, limits, top = below_kth_greatest(np.array([9, 10, 8, 7]), np.array([5]), 2)
    >>> found.tolist(), limits.tolist(), top.tolist()
    ([3], [8], [8, 9, 10])
    """
    if not len(ticks):
        return np.empty(0, np.int64), np.empty(0, np.int64), top
    together = np.concatenate([top, ticks])
    running = np.maximum.accumulate(together)
    # With more than k greater ones before it, a value is below what was the greatest k + 1 places before.
    suspects = np.flatnonzero(together[k + 1 :] < running[: -k - 1]) + k + 1 if len(together) > k + 1 else top[:0]
    after = greatest(top, ticks, k + 1)
    if not len(suspects):
        return np.empty(0, np.int64), np.empty(0, np.int64), after
    # Those that are greater come behind the first maximum above it.
    firsts = np.searchsorted(running, together[suspects], "right")
    if int((suspects - firsts).sum()) > _LOOKED_AT * len(ticks):
        return _below_kth_in_halves(ticks, top, k)
    found: list[int] = []
    limits: list[int] = []
    for first, place in zip(firsts.tolist(), suspects.tolist()):
        between = together[first:place]
        between = between[between > together[place]]
        if len(between) > k:
            found.append(place - len(top))
            limits.append(int(np.partition(between, len(between) - k - 1)[len(between) - k - 1]))
    return np.array(found, np.int64), np.array(limits, np.int64), after


def _below_kth_in_halves(ticks: Ticks, top: Ticks, k: int) -> tuple[Ticks, Ticks, Ticks]:
    """The same when a great many values are suspect, as behind one that is far too great."""
    found: list[int] = []
    limits: list[int] = []
    # A stretch without such a value shows it by its least value; the others are halved.
    stretches = [(start, min(start + _BLOCK, len(ticks))) for start in range(0, len(ticks), _BLOCK)][::-1]
    while stretches:
        start, stop = stretches.pop()
        block = ticks[start:stop]
        after = greatest(top, block, k + 1)
        if len(after) <= k or int(block.min()) >= int(after[0]):
            top = after
        elif stop - start > 64:
            middle = (start + stop) // 2
            stretches += [(middle, stop), (start, middle)]
        else:
            held = top.tolist()
            for i, value in enumerate(block.tolist(), start):
                if len(held) > k and value < held[0]:
                    found.append(i)
                    limits.append(held[0])
                else:
                    insort(held, value)
                    del held[: max(0, len(held) - k - 1)]
            top = np.array(held, np.int64)
    return np.array(found, np.int64), np.array(limits, np.int64), top


def greatest(top: Ticks, more: Ticks, count: int) -> Ticks:
    """The greatest values of two lists, ascending."""
    together = np.concatenate([top, more])
    if len(together) > count:
        together = np.partition(together, len(together) - count)[len(together) - count :]
    return np.sort(together)
