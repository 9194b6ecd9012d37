"""How far events are out of order, measured as they come.

Three numbers say it. `k`: the most places that an event came late, that is, how many earlier events are greater (a sort
with a buffer of that many puts the stream in order). `epsilon`: the most that an event was older than the newest before
it, in ticks. And the lateness of the events that came out of order, as a histogram: 16 buckets for each power of two,
so that a quantile is right to one part in 16, and never too small. `k` is exact up to 4,096 places across splits;
beyond that it is at least what is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.engine.source.promises.running import LOWEST, greatest
from penstock.kernels.ticks import Ticks

_KEPT = 4_096
_PARTS = 16


@dataclass(frozen=True)
class Disorderliness:
    """The disorder of what was seen; lateness in ticks, quantiles among the events that came out of order."""

    k: int
    epsilon: int
    p50: int
    p99: int
    max: int
    events: int
    out_of_order: int

    def __str__(self) -> str:
        return self.text()

    def text(self, where: str = "") -> str:
        """In a few words.

        >>> print(Disorderliness(k=2, epsilon=2, p50=1, p99=2, max=2, events=10, out_of_order=2).text(" in ts"))
        2 of 10 events out of order in ts, by up to 2 places and 2 ticks (half ≤ 1, 99 % ≤ 2)
        """
        return (
            f"{self.out_of_order:,} of {self.events:,} events out of order{where}, by up to {self.k:,} places "
            f"and {self.epsilon:,} ticks (half ≤ {self.p50:,}, 99 % ≤ {self.p99:,})"
        )


@dataclass(frozen=True)
class Lateness:
    """Counts of lateness that can be added up, over splits, partitions and epochs in any order."""

    events: int = 0
    late: int = 0
    k: int = 0
    epsilon: int = 0
    counts: Mapping[int, int] = field(default_factory=dict)

    def __add__(self, other: Lateness) -> Lateness:
        counts = dict(self.counts)
        for bucket, n in other.counts.items():
            counts[bucket] = counts.get(bucket, 0) + n
        return Lateness(
            self.events + other.events,
            self.late + other.late,
            max(self.k, other.k),
            max(self.epsilon, other.epsilon),
            dict(sorted(counts.items())),
        )

    def quantile(self, share: float, of_all: bool = False) -> int:
        """The lateness that a share of the late events, or of all, does not exceed: rounded up by a 16th at most."""
        wanted = share * (self.events if of_all else self.late) - (self.events - self.late if of_all else 0)
        if wanted <= 0 or not self.late:
            return 0
        reached = 0
        for bucket, n in self.counts.items():
            reached += n
            if reached >= wanted:
                return min(_upper(bucket), self.epsilon)
        return self.epsilon

    @property
    def summary(self) -> Disorderliness:
        return Disorderliness(
            self.k, self.epsilon, self.quantile(0.5), self.quantile(0.99), self.epsilon, self.events, self.late
        )

    def to_json(self) -> list[Any]:
        return [self.events, self.late, self.k, self.epsilon, [[b, n] for b, n in self.counts.items()]]

    @classmethod
    def from_json(cls, stored: list[Any]) -> Lateness:
        events, late, k, epsilon, counts = stored
        return cls(events, late, k, epsilon, dict(counts))


@dataclass(frozen=True)
class Seen:
    """What the events so far leave behind for those to come: the greatest values, ascending."""

    top: tuple[int, ...] = ()

    def watch(self, ticks: Ticks) -> tuple[Seen, Lateness]:
        """Measure events in arrival order.

        >>> _, tally = Seen().watch(np.array([1, 2, 3, 5, 4, 6, 7, 9, 10, 8]))
        >>> print(tally.summary)
        2 of 10 events out of order, by up to 2 places and 2 ticks (half ≤ 1, 99 % ≤ 2)
        """
        if not len(ticks):
            return self, Lateness()
        before = np.array(self.top, np.int64)
        running = np.empty(len(ticks), np.int64)
        running[0] = before[-1] if len(before) else LOWEST
        np.maximum.accumulate(np.maximum(ticks[:-1], running[0]), out=running[1:])
        late = np.flatnonzero(ticks < running)
        top = greatest(before, ticks, _KEPT)
        after = Seen(tuple(top.tolist()))
        if not len(late):
            return after, Lateness(len(ticks))
        # The most that an event has to move forward when all are sorted is the most earlier ones that are greater.
        together = np.concatenate([before, ticks])
        order = np.argsort(together, kind="stable")
        k = int((order - np.arange(len(order))).max())
        # Unsigned, since two ticks may be further apart than the greatest tick.
        lateness = running[late].view(np.uint64) - ticks[late].view(np.uint64)
        buckets, counts = np.unique(_buckets(lateness), return_counts=True)
        found = dict(zip(buckets.tolist(), counts.tolist()))
        return after, Lateness(len(ticks), len(late), k, int(lateness.max()), found)


def _buckets(lateness: Any) -> Any:
    """The bucket of each value ≥ 1: itself below 16, else 16 for each power of two."""
    bits = np.floor(np.log2(lateness.astype(np.float64))).astype(np.int64)
    # The logarithm of a number just below a power of two may round up to it.
    bits -= (np.uint64(1) << np.minimum(bits, 63).astype(np.uint64)) > lateness
    shift = np.maximum(bits - 4, 0).astype(np.uint64)
    part = (lateness >> shift).astype(np.int64)
    return np.where(bits < 4, lateness.astype(np.int64), (bits - 3) * _PARTS + part - _PARTS)


def _upper(bucket: int) -> int:
    """The greatest value of a bucket.

    >>> [_upper(int(_buckets(np.array([v], np.uint64))[0])) for v in (1, 15, 16, 31, 32, 33, 1000)]
    [1, 15, 16, 31, 33, 33, 1023]
    """
    if bucket < _PARTS:
        return bucket
    shift = bucket // _PARTS - 1
    return int(((bucket % _PARTS + _PARTS + 1) << shift) - 1)
