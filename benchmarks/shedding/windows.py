"""Experiments with whole windows: how many must go, wherever the drop stands (E6 to E9).

A run is stable if the last row is done soon after it came. The share of windows that must go is searched for; where no
share is enough that the gap allows, nothing sensible is delivered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.shedding.server import Mask, Numbers, finished
from penstock.shedding.drop_grid import DropGrid, before_split
from penstock.shedding.fates import FateRecord, Fates

GAP = 10
#: Delays that rows and results cause, in seconds, as in the published experiments.
DELAY = 0.005


@dataclass(frozen=True)
class Aggregation:
    """A count over windows of `size` rows every `slide`, and what a row costs before it and a result behind it.

    Rows come evenly, one a tick, so windows by count and by time are the same.
    """

    size: int
    slide: int
    before: float = DELAY
    behind: float = DELAY

    @property
    def grid(self) -> DropGrid:
        return DropGrid(self.size, self.slide, GAP)

    @property
    def per_row(self) -> float:
        """Work that comes of one row when nothing is dropped."""
        return self.before + self.behind / self.slide


def fates(stretches: int, share: float, gap: int | None = GAP, seed: int = 1) -> Mask:
    """Which of so many windows are dropped."""
    _, runs = Fates(seed, "simulated", gap).decide(FateRecord(), 0, stretches, share)
    gone = np.zeros(stretches, bool)
    for low, high in runs:
        gone[low : high + 1] = True
    return gone


def needed_rows(gone: Mask, grid: DropGrid, rows: int) -> Mask:
    """Which rows some kept window of a grid needs."""
    steps = np.zeros(rows + grid.size + 1)
    starts = np.flatnonzero(~gone) * grid.slide
    starts = starts[starts < rows]
    np.add.at(steps, starts, 1)
    np.add.at(steps, starts + grid.size, -1)
    return np.asarray(np.cumsum(steps)[:rows] > 0)


def is_stable(ticks: Numbers, work: Numbers, rows: int, per_tick: float) -> bool:
    """Whether the server keeps up: at the end it is behind by no more than a burst."""
    there = ticks < rows  # what ends later is not part of the run
    ticks, work = ticks[there], work[there]
    order = np.argsort(ticks, kind="stable")
    done = finished(ticks[order] * per_tick, work[order])
    return bool(done[-1] <= rows * per_tick * 1.01 + work.max(initial=0))


def least_share(stable: Callable[[float], bool], most: float) -> float | None:
    """The smallest share that is enough; None if the largest is not."""
    if not stable(most):
        return None
    low, high = 0.0, most
    while high - low > 0.002:
        middle = (low + high) / 2
        low, high = (low, middle) if stable(middle) else (middle, high)
    return round(high, 3)


def window_drop(work: Aggregation, excess: float, windows: int = 20_000) -> float | None:
    """The share of windows that a drop at the input must take at so much excess of the rate."""
    rows = min(windows * work.slide, 200_000)
    windows = rows // work.slide
    per_tick = work.per_row / (1 + excess)

    def stable(share: float) -> bool:
        gone = fates(windows, share)
        early = work.grid.drops_early
        come = np.flatnonzero(needed_rows(gone, work.grid, rows)) if early else np.arange(rows)
        closing = np.flatnonzero(~gone) * work.slide + work.size
        return is_stable(
            np.concatenate([come, closing]).astype(float),
            np.concatenate([np.full(len(come), work.before), np.full(len(closing), work.behind)]),
            rows,
            per_tick,
        )

    return least_share(stable, GAP / (GAP + 1))


def random_drop(work: Aggregation, excess: float, rows: int = 20_000) -> float | None:
    """The share of results that a random drop behind the aggregate must take."""
    rows = max(rows, 200 * work.slide)
    per_tick = work.per_row / (1 + excess)
    coins = np.random.default_rng(5).random(rows // work.slide)

    def stable(share: float) -> bool:
        closing = np.flatnonzero(coins >= share) * work.slide + work.size
        return is_stable(
            np.concatenate([np.arange(rows), closing]).astype(float),
            np.concatenate([np.full(rows, work.before), np.full(len(closing), work.behind)]),
            rows,
            per_tick,
        )

    return least_share(stable, 1.0)


def nested(shares: tuple[float, float, float], excess: float, windows: int = 1_500) -> dict[str, float | None]:
    """Counts over 10 and over 100 rows, with so much of the work before, between and behind them (E6)."""
    grid = DropGrid(10, 10, GAP).behind_counted(10, 10)
    rows = windows * grid.size
    per_tick = 1 / (1 + excess)
    first, between, last = shares[0], 10 * shares[1], 100 * shares[2]

    def stable(where: str) -> Callable[[float], bool]:
        def holds(share: float) -> bool:
            gone = fates(windows, share, None if where == "RDrop" else GAP)
            kept = np.repeat(~gone, 10)
            read = np.repeat(kept, 10) if where == "Nested2" else np.ones(rows, bool)
            counted = np.ones(10 * windows, bool) if where == "RDrop" else kept
            ticks = [np.flatnonzero(read), 10.0 * np.flatnonzero(counted) + 10, 100.0 * np.flatnonzero(~gone) + 100]
            costs = [np.full(len(t), c) for t, c in zip(ticks, (first, between, last), strict=True)]
            return is_stable(np.concatenate(ticks).astype(float), np.concatenate(costs), rows, per_tick)

        return holds

    most = GAP / (GAP + 1)
    return {w: least_share(stable(w), 1.0 if w == "RDrop" else most) for w in ("RDrop", "Nested1", "Nested2")}


def split(excess: float) -> dict[str, float | None]:
    """Two aggregates behind a shared operator; the drop before the split, in each branch, or behind each (E7)."""
    branches = (Aggregation(10, 10, DELAY, 10 * DELAY), Aggregation(20, 20, DELAY, 20 * DELAY))
    shared, rows = 2 * DELAY, 40_000
    per_tick = (shared + sum(b.per_row for b in branches)) / (1 + excess)
    grid = before_split([replace(b.grid, gap=GAP) for b in branches])
    assert grid is not None

    def holds(where: str) -> Callable[[float], bool]:
        def stable(share: float) -> bool:
            ticks, costs = [], []
            together = np.repeat(fates(rows // grid.slide, share, grid.gap), grid.slide // 10)
            for k, b in enumerate(branches):
                one = np.random.default_rng(k).random(rows // b.slide) < share
                mine = fates(rows // b.slide, share, seed=k)
                gone = {"shared": together[:: b.slide // 10], "split": mine, "behind": one}[where]
                read = np.ones(rows, bool) if where == "behind" else needed_rows(gone, b.grid, rows)
                ticks += [np.flatnonzero(read), np.flatnonzero(~gone) * b.slide + b.size]
                costs += [np.full(len(ticks[-2]), b.before), np.full(len(ticks[-1]), b.behind)]
            kept = ~np.repeat(together, 10) if where == "shared" else np.ones(rows, bool)
            ticks.append(np.flatnonzero(kept))
            costs.append(np.full(len(ticks[-1]), shared))
            return is_stable(np.concatenate(ticks).astype(float), np.concatenate(costs), rows, per_tick)

        return stable

    most = {"shared": (grid.gap or 1) / ((grid.gap or 1) + 1), "split": GAP / (GAP + 1), "behind": 1.0}
    return {where: least_share(holds(where), m) for where, m in most.items()}


def run(quick: bool) -> dict[str, Any]:
    """E6 to E9."""
    steps = (
        (0.1, 0.25, 0.5, 0.6, 0.7, 1.0, 2.0)
        if quick
        else (0.1, 0.25, 0.4, 0.5, 0.6, 0.65, 0.7, 0.8, 1.0, 1.5, 2.0, 4.0)
    )
    sizes = (10, 25, 100) if quick else (10, 25, 50, 75, 100)
    slides = (1, 10, 20, 50, 100) if quick else (1, 2, 5, 10, 15, 20, 30, 50, 100)
    wide = [Aggregation(100, s) for s in slides]
    return {
        "E6": {"excess": steps, "thirds": [nested((1 / 3, 1 / 3, 1 / 3), e) for e in steps],
               "39 % behind": [nested((0.303, 0.303, 0.394), e) for e in steps]},
        "E7": {"excess": steps, "needed": [split(e) for e in steps]},
        "E8": {"sizes": sizes, "tumbling": [window_drop(Aggregation(s, s), 0.25) for s in sizes],
               "sliding": [window_drop(Aggregation(s, 1), 0.25) for s in sizes]},
        "E9": {"slides": slides, **{str(e): {"window": [window_drop(w, e) for w in wide],
               "random": [random_drop(w, e) for w in wide]} for e in (0.1, 0.25, 0.5)}},
    }  # fmt: skip
