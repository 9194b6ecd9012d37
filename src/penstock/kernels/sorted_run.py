"""Sorted runs during one epoch, stored or just arrived, and which of their rows match.

Rows that arrive are not moved to be sorted: their hashes and times are, with a note of where each row lies. Most leave
again without being stored, so whole rows are only gathered for results and for what is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.kernels.hash import Hashes, hash_keys
from penstock.kernels.index import (
    HASH,
    Mask,
    Positions,
    Ticks,
    expand,
    narrow,
    order_of,
    pick,
    ranges,
    same,
    ticks_of,
    whole,
    within,
)
from penstock.kernels.stateful import DEAD, Held


class SortedRun:
    """A run in order: its rows, and what becomes known of them. `order` tells where in the source they lie."""

    def __init__(
        self,
        source: pa.Table,
        time: str | None,
        *,
        order: Positions | None = None,
        name: str | None = None,
        group: int = 0,
        low: int | None = None,
        high: int | None = None,
        marks: pa.Table | None = None,
    ) -> None:
        self.source, self.order, self.time = source, order, time
        self.name, self.group, self.marks = name, group, marks
        self.changed = False
        self._flags: dict[str, Mask] = {}
        if time is not None and len(self) and (low is None or high is None):
            low, high = int(self.ticks.min()), int(self.ticks.max())
        self.low, self.high = low, high

    @classmethod
    def of(cls, held: Held, time: str | None) -> SortedRun:
        """A stored run; nothing is read yet."""
        return cls(held.rows, time, name=held.name, group=held.group, low=held.low, high=held.high, marks=held.marks)

    @classmethod
    def arrived(cls, table: pa.Table, keys: Sequence[str], time: str | None) -> SortedRun:
        """The rows of a table by the hash of their keys, then by time.

        >>> run = SortedRun.arrived(pa.table({"k": [3, 1, 3], "t": [5, 4, 2]}), ["k"], "t")
        >>> run.order.tolist(), run.rows.column_names, run.rows["t"].to_pylist()
        ([2, 0, 1], ['__hash', 'k', 't'], [2, 5, 4])
        """
        table = table.combine_chunks()
        hashes = hash_keys(table, keys)
        order = order_of(hashes, None if time is None else ticks_of(table.column(time)))
        return cls(table.add_column(0, HASH, pa.array(hashes)), time, order=order)

    def __len__(self) -> int:
        return int(self.source.num_rows) if self.order is None else len(self.order)

    @cached_property
    def rows(self) -> pa.Table:
        """All columns, in order."""
        return self.source if self.order is None else self.source.take(pa.array(self.order))

    def at(self, positions: Positions) -> Positions:
        """Where rows lie in the source."""
        return positions if self.order is None else self.order[positions]

    def pick(self, name: str, positions: Positions) -> pa.Array:
        """Some values of a column."""
        return pick(self.source, name, self.at(positions))

    @cached_property
    def hashes(self) -> Hashes:
        return self.values(HASH)

    @cached_property
    def ticks(self) -> Ticks:
        assert self.time is not None
        return self._ordered(ticks_of(self.source.column(self.time)))

    def values(self, name: str) -> npt.NDArray[Any]:
        """A whole column of numbers without nulls."""
        return self._ordered(np.asarray(whole(self.source.column(name)).to_numpy()))

    def _ordered(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return values if self.order is None else values[self.order]

    def part(self, at: Positions, group: int) -> SortedRun:
        """Some rows, with their marks, as a new run: none of them is dead."""
        part = SortedRun(self.source, self.time, order=self.at(at), group=group)
        for flag in self.flagged:
            if flag != DEAD:
                part.mark(flag, self.flags(flag)[at])
        return part

    def has(self, flag: str) -> bool:
        """Whether any row may have a mark; without one there is nothing to read."""
        return flag in self._flags or (self.marks is not None and flag in self.marks.column_names)

    @property
    def flagged(self) -> tuple[str, ...]:
        """The marks that some row may have."""
        stored = self.marks.column_names if self.marks is not None else []
        return tuple(dict.fromkeys([*stored, *self._flags]))

    def flags(self, flag: str) -> Mask:
        """One bit per row, to be written by `mark` alone."""
        if flag not in self._flags:
            if self.has(flag):
                assert self.marks is not None
                self._flags[flag] = np.array(whole(self.marks.column(flag)).to_numpy(zero_copy_only=False))
            else:
                self._flags[flag] = np.zeros(len(self), dtype=np.bool_)
        return self._flags[flag]

    def mark(self, flag: str, at: Positions | Mask) -> None:
        self.flags(flag)[at] = True
        self.changed = True

    def live(self) -> Mask | None:
        """The rows that are not dead, None for all."""
        return ~self.flags(DEAD) if self.has(DEAD) else None

    def stamp(self, flags: Sequence[str]) -> pa.Table | None:
        """The marks as they are now."""
        return pa.table({f: pa.array(self.flags(f)) for f in flags}) if flags else None


@dataclass(frozen=True)
class Rule:
    """When two rows match: equal keys, and `low ≤ right time − left time ≤ high`.

    With `exact`, the hash is as good as the key.
    """

    keys: tuple[tuple[str, str], ...]
    low: int | None = None
    high: int | None = None
    null_safe: bool = False
    exact: bool = False

    @property
    def timed(self) -> bool:
        return self.low is not None or self.high is not None

    def reaches(self, left: SortedRun, right: SortedRun) -> bool:
        """Whether any times of two runs can match."""
        if not self.timed or left.low is None or left.high is None or right.low is None or right.high is None:
            return True
        far = self.low is None or right.high - left.low >= self.low
        return far and (self.high is None or right.low - left.high <= self.high)


def meet(
    left: SortedRun, right: SortedRun, rule: Rule, among: Positions | None = None
) -> Iterator[tuple[Positions, Positions]]:
    """The positions of all live pairs that match, in pieces; of the left only rows `among` the given ones."""
    if not len(left) or not len(right) or not rule.reaches(left, right):
        return
    wanted = left.hashes if among is None else left.hashes[among]
    swapped = len(wanted) > len(right)
    found, begin, end = ranges(right.hashes, wanted) if swapped else ranges(wanted, right.hashes)
    if rule.timed and len(found):
        times = left.ticks if among is None else left.ticks[among]
        if swapped:
            low, high = None if rule.high is None else -rule.high, None if rule.low is None else -rule.low
            begin, end = narrow(times, begin, end, right.ticks[found], low, high)
        else:
            begin, end = narrow(right.ticks, begin, end, times[found], rule.low, rule.high)
    for which, at in expand(begin, end):
        li, ri = (at, found[which]) if swapped else (found[which], at)
        li, ri = _verified(left, li if among is None else among[li], right, ri, rule)
        if len(li):
            yield li, ri


def _verified(
    left: SortedRun, li: Positions, right: SortedRun, ri: Positions, rule: Rule
) -> tuple[Positions, Positions]:
    """Of candidates with equal hashes those that match, cheapest question first."""
    masks = [~run.flags(DEAD)[at] for run, at in ((left, li), (right, ri)) if run.has(DEAD)]
    if rule.timed:
        masks.append(within(left.ticks[li], right.ticks[ri], rule.low, rule.high))
    if masks and not bool((fits := np.logical_and.reduce(masks)).all()):
        li, ri = li[fits], ri[fits]
    for a, b in () if rule.exact else rule.keys:
        equal = same(left.pick(a, li), right.pick(b, ri), rule.null_safe)
        if not bool(equal.all()):
            li, ri = li[equal], ri[equal]
    return li, ri
