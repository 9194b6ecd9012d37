"""Windows dropped by marks in the stream: the form of the source, corrected, as an oracle.

A drop at the input marks the first tuple of every stretch that is kept with the interval in which windows may start.
Aggregates open windows that start in an interval that they were told of, and pass on the interval, less their size. A
mark on a tuple that is filtered away, or that is of dropped stretches alone, travels without content. It must not
overtake results of windows that began before it, and at equal times it comes first.

Here too are the same networks without drops, and the order-free form: which events and which windows may stay.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple
from zlib import crc32

from penstock.shedding.drop_grid import DropGrid, before_split

#: Windows may start from here up to, not including, there.
Mark = tuple[int, float]


class Marked(NamedTuple):
    """A tuple with marks; a fake has no value."""

    time: int
    value: int | None
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True)
class Stage:
    """An aggregate, and a filter in front of it; several stages behind it are branches. A leaf is an output."""

    size: int
    slide: int
    passes: int = 0
    behind: tuple[Stage, ...] = ()

    def lets(self, value: int) -> bool:
        return not self.passes or value % self.passes != 0

    def starts(self, time: int, first: float) -> range:
        """The windows that an event is in."""
        least = (time - self.size) // self.slide * self.slide + self.slide
        while least < first:
            least += self.slide
        return range(least, time + 1, self.slide)

    def grid(self) -> DropGrid | None:
        """The drop grid in front of it, by the rules."""
        if not self.behind:
            return DropGrid(self.size, self.slide)
        grids = [g for b in self.behind if (g := b.grid()) is not None]
        joined = before_split(grids)
        return None if joined is None else joined.behind(self.size, self.slide)

    def leaves(self, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Stage]]:
        if not self.behind:
            yield path, self
        for k, branch in enumerate(self.behind):
            yield from branch.leaves((*path, k))


def fold(values: Sequence[int]) -> int:
    """Some function of all values of a window in their order: no two windows agree by chance."""
    return crc32(repr(values).encode())


Fold = Callable[[Sequence[int]], int]
Results = dict[tuple[int, ...], list[tuple[int, int]]]
Events = Sequence[tuple[int, int]]


# --- without drops, and order-free


def interpreted(
    stage: Stage,
    events: Events,
    kept: Sequence[int] | None = None,
    reach: int = 0,
    stretch: int = 0,
    *,
    first: float = -inf,
    of: Fold = fold,
    path: tuple[int, ...] = (),
) -> Results:
    """All results of every output; with `kept` starts of stretches, only windows that start within reach of one."""
    windows: dict[int, list[int]] = {}
    for time, value in events:
        if stage.lets(value):
            for start in stage.starts(time, first):
                windows.setdefault(start, []).append(value)
    left = reach - (stage.size - 1)
    bound = min(left, stretch) if not stage.behind else left
    found = [
        (start, of(values))
        for start, values in sorted(windows.items())
        if kept is None or any(t <= start < t + bound for t in kept)
    ]
    if not stage.behind:
        return {path: found}
    results: Results = {}
    for k, branch in enumerate(stage.behind):
        results |= interpreted(branch, found, kept, left, stretch, first=first, of=of, path=(*path, k))
    return results


def order_free(stage: Stage, events: Events, kept: Sequence[int], grid: DropGrid, **how: object) -> Results:
    """The same from the events that a kept stretch needs, in any order."""
    read = [(t, v) for t, v in events if any(start <= t < start + grid.size for start in kept)]
    return interpreted(stage, read, kept, grid.size, grid.slide, **how)  # type: ignore[arg-type]


# --- with marks


@dataclass
class MarkedDrop:
    """Marks stretches at the input, and lets go of what only dropped ones need."""

    grid: DropGrid
    keeps: Callable[[int], bool]
    next: int
    until: float = -inf
    dropped: list[int] = field(default_factory=list)

    def take(self, time: int, value: int) -> Iterator[Marked]:
        marks = []
        while self.next * self.grid.slide <= time:
            start = self.next * self.grid.slide
            if self.keeps(self.next):
                marks.append((start, start + self.grid.size))
                self.until = max(self.until, start + self.grid.size)
            self.next += 1
        if time < self.until:
            yield Marked(time, value, tuple(marks))
        elif marks:
            yield Marked(time, None, tuple(marks))
        if time >= self.until:
            self.dropped.append(time)


@dataclass
class MarkedStage:
    """An aggregate that heeds marks and hands them on."""

    stage: Stage
    stretch: int
    first: float
    of: Fold
    permits: list[Mark] = field(default_factory=list)
    pending: list[Mark] = field(default_factory=list)
    open: dict[int, list[int]] = field(default_factory=dict)

    def take(self, item: Marked) -> Iterator[Marked]:
        yield from self.close(item.time)
        for start, end in item.marks:
            mine = (start, end - (self.stage.size - 1))
            self.permits.append(mine if self.stage.behind else (start, min(mine[1], start + self.stretch)))
            self.pending.append(mine)
        if item.value is not None and self.stage.lets(item.value):
            for start in self.stage.starts(item.time, self.first):
                if any(low <= start < high for low, high in self.permits):
                    self.open.setdefault(start, []).append(item.value)
        # No window that begins before this will give a result any more.
        yield from self.released(
            (item.time - self.stage.size) // self.stage.slide * self.stage.slide + self.stage.slide
        )

    def close(self, time: float) -> Iterator[Marked]:
        for start in sorted(s for s in self.open if s + self.stage.size <= time):
            yield from self.released(start)
            yield Marked(start, self.of(self.open.pop(start)))

    def released(self, until: float) -> Iterator[Marked]:
        for mark in sorted(m for m in self.pending if m[0] <= until):
            self.pending.remove(mark)
            yield Marked(mark[0], None, (mark,))


@dataclass
class MarkedNetwork:
    """A tree of stages, item by item."""

    root: Stage
    stretch: int
    first: float = -inf
    of: Fold = fold
    results: Results = field(default_factory=dict)
    emitted: dict[tuple[int, ...], list[Marked]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.stages: dict[tuple[int, ...], MarkedStage] = {}
        self._build(self.root, ())

    def _build(self, stage: Stage, path: tuple[int, ...]) -> None:
        self.stages[path] = MarkedStage(stage, self.stretch, self.first, self.of)
        self.emitted[path] = []
        if not stage.behind:
            self.results[path] = []
        for k, branch in enumerate(stage.behind):
            self._build(branch, (*path, k))

    def take(self, item: Marked, path: tuple[int, ...] = ()) -> None:
        self._hand_on(self.stages[path].take(item), path)

    def finish(self, path: tuple[int, ...] = ()) -> None:
        here = self.stages[path]
        self._hand_on([*here.close(inf), *here.released(inf)], path)
        for k in range(len(here.stage.behind)):
            self.finish((*path, k))

    def _hand_on(self, items: Iterator[Marked] | list[Marked], path: tuple[int, ...]) -> None:
        for item in items:
            self.emitted[path].append(item)
            if path in self.results and item.value is not None:
                self.results[path].append((item.time, item.value))
            for k in range(len(self.stages[path].stage.behind)):
                self.take(item, (*path, k))


def marked(root: Stage, events: Events, kept: Callable[[int], bool], grid: DropGrid) -> tuple[Results, list[int]]:
    """Results of a network behind a drop at its input, and the times of the events that never got in."""
    begin = (min((t for t, _ in events), default=0) - grid.size) // grid.slide
    drop, network = MarkedDrop(grid, kept, begin), MarkedNetwork(root, grid.slide)
    for time, value in events:
        for item in drop.take(time, value):
            network.take(item)
    network.finish()
    return network.results, drop.dropped


# --- at random


def random_stage(rng: random.Random, depth: int, slides: Sequence[int] = (1, 2, 3, 4, 6)) -> Stage:
    """Nested windows, some of them split, with filters here and there."""
    slide = rng.choice(slides)
    size = slide + rng.choice([0, 0, 1, 2, slide, 2 * slide])
    branches = rng.choice([1, 1, 2, 3]) if depth else 0
    behind = tuple(random_stage(rng, rng.randrange(depth), slides) for _ in range(branches))
    return Stage(size, slide, rng.choice([0, 0, 2, 3]), behind)


def random_events(rng: random.Random, most: int = 80) -> list[tuple[int, int]]:
    """In order of time; sparse or dense, with several at one time, and long silences."""
    time, events = rng.randint(-30, 30), []
    for _ in range(rng.randrange(most)):
        time += rng.choice([0, 1, 1, 1, 2, 5]) if rng.random() < 0.95 else rng.randint(10, 90)
        events.append((time, rng.randrange(1, 100)))
    return events
