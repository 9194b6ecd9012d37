"""What holds between each two moments, at a cost that grows with rows and moments and not with their product.

A row may hold over many intervals. It is noted with few *nodes*, each of which stands for a stretch of intervals of
length 1, 2, 4 and so on; what holds in an interval is what the few nodes above it have noted. So n rows over m
intervals take (n + m) · log m steps, whatever is computed of them, as long as it can be put together from parts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.kernels.index import Mask, Positions
from penstock.kernels.ticks import Ticks
from penstock.operators.shared.stock import FOREVER


def nodes_of(first: Positions, end: Positions, size: int) -> tuple[Positions, Positions]:
    """The fewest nodes that together stand for the intervals [first, end) of each row: pairs (row, node).

    >>> [part.tolist() for part in nodes_of(np.array([0, 1]), np.array([4, 4]), 4)]
    [[1, 1, 0], [5, 3, 1]]
    """
    low, high, row = first + size, end + size, np.arange(len(first))
    rows: list[Positions] = [row[:0]]
    nodes: list[Positions] = [row[:0]]
    while True:
        some = low < high
        low, high, row = low[some], high[some], row[some]
        if not len(row):
            return np.concatenate(rows), np.concatenate(nodes)
        odd = (low & 1) == 1
        rows.append(row[odd])
        nodes.append(low[odd])
        low = low + odd
        odd = (high & 1) == 1
        high = high - odd
        rows.append(row[odd])
        nodes.append(high[odd])
        low, high = low >> 1, high >> 1


def above(intervals: Positions, size: int) -> tuple[Positions, Positions]:
    """The nodes that stand for intervals, among others: pairs (interval, node).

    >>> [part.tolist() for part in above(np.array([1]), 4)]
    [[1, 1, 1], [5, 2, 1]]
    """
    node, interval = intervals + size, intervals
    found = [(interval[:0], node[:0])]
    while len(node):
        found.append((interval, node))
        node = node >> 1
        interval, node = interval[node > 0], node[node > 0]
    return np.concatenate([i for i, _ in found]), np.concatenate([n for _, n in found])


@dataclass(frozen=True)
class Line:
    """The moments of many groups on one line: first those of group 0 in order, then those of group 1, and so on."""

    ticks: Ticks

    @classmethod
    def through(cls, *ticks: Ticks) -> Line:
        return cls(np.unique(np.concatenate(ticks)))

    def place(self, group: Positions, ticks: Ticks) -> Positions:
        """Where moments lie; between two that are known, at the second."""
        return group * (len(self.ticks) + 1) + np.searchsorted(self.ticks, ticks)

    def group(self, places: Positions) -> Positions:
        return places // (len(self.ticks) + 1)

    def tick(self, places: Positions) -> Ticks:
        return self.ticks[places % (len(self.ticks) + 1)]


@dataclass(frozen=True)
class Stretches:
    """Of each group that something changes in, in order, from where on it does and up to where."""

    group: Positions
    low: Ticks
    high: Ticks

    def of(self, group: Positions) -> tuple[Positions, Mask]:
        """The stretch of each row's group; and whether it has one."""
        at = np.minimum(np.searchsorted(self.group, group), len(self.group) - 1)
        return at, self.group[at] == group

    def widened(self, group: Positions, ticks: Ticks) -> Stretches:
        """From the last of some moments before to the first behind; where there is none, to its own, and for ever."""
        at, has = self.of(group)
        low, high = np.full(len(self.group), -FOREVER), np.full(len(self.group), FOREVER)
        before, behind = has & (ticks < self.low[at]), has & (ticks > self.high[at])
        np.maximum.at(low, at[before], ticks[before])
        np.minimum.at(high, at[behind], ticks[behind])
        return Stretches(self.group, np.where(low == -FOREVER, self.low, low), high)

    def meets(self, group: Positions, start: Ticks, end: Ticks) -> Mask:
        """Which rows hold somewhere in the stretch of their group."""
        at, has = self.of(group)
        found: Mask = has & (start < self.high[at]) & (end > self.low[at])
        return found


def touched(group: Positions, payload: Positions, start: Ticks, end: Ticks, weight: Ticks) -> Stretches:
    """The groups in which something changes, from the first to the last moment at which it does.

    A row that is shortened changes nothing at its start: there one comes that is like the one that goes.
    """
    groups, payloads = np.concatenate([group, group]), np.concatenate([payload, payload])
    which, at = np.repeat([0, 1], len(group)), np.concatenate([start, end])
    order = np.lexsort((which, at, payloads, groups))
    key = np.stack([groups, payloads, at, which])[:, order]
    new = np.flatnonzero(np.concatenate([[True], (key[:, 1:] != key[:, :-1]).any(axis=0)])) if len(order) else order
    changed: Mask = np.add.reduceat(np.concatenate([weight, weight])[order], new) != 0 if len(new) else new != 0
    where, when = key[0, new[changed]], key[2, new[changed]]
    order = np.lexsort((when, where))
    where, when = where[order], when[order]
    firsts = np.flatnonzero(np.diff(where, prepend=-1))
    lasts = np.append(firsts[1:], len(where)) - 1 if len(where) else firsts
    return Stretches(where[firsts], when[firsts], when[lasts])
