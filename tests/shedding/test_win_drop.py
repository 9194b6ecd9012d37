"""What is kept is what would have been: whole windows, bit for bit, through nested windows, splits and filters.

Three forms of the same drops: marks in the stream, intervals that need no order, and feedback as the engine gives it.
"""

from __future__ import annotations

import random

import pytest
from markers import (
    Marked,
    MarkedDrop,
    MarkedNetwork,
    Results,
    Stage,
    interpreted,
    marked,
    order_free,
    random_events,
    random_stage,
)
from told import TreeQuery, is_unread

from penstock.shedding.drop_grid import DropGrid
from penstock.shedding.fates import FateRecord, Fates


def test_how_many_windows_an_event_is_in() -> None:
    """The function of the source, for windows of 5 every 3 from time 1 on."""
    assert [len(Stage(5, 3).starts(t - 1, first=0)) for t in range(1, 13)] == [1, 1, 1, 2, 2, 1, 2, 2, 1, 2, 2, 1]


def test_the_trace_of_the_source() -> None:
    """A count over (3, 2) and a sum of it over (3, 3), behind drops of every other stretch of (5, 3); times 1 to 19."""
    pipeline = Stage(3, 2, behind=(Stage(3, 3),))
    grid = pipeline.grid()
    assert grid == DropGrid(5, 3)

    drop = MarkedDrop(grid, lambda k: k % 2 == 0, next=0)
    network = MarkedNetwork(pipeline, grid.slide, first=0, of=len)
    network.stages[(0,)].of = sum
    let_in: list[Marked] = []
    for time in range(1, 20):
        # The source counts from 1; windows here start at multiples.
        for item in drop.take(time - 1, 1):
            let_in.append(item)
            network.take(item)
    seen = [(i.time + 1, *(int(end) + 1 for _, end in i.marks)) for i in let_in]
    assert seen == [(1, 6), (2,), (3,), (4,), (5,), (7, 12), (8,), (9,), (10,), (11,), (13, 18), (14,), (15,), (16,),
                    (17,), (19, 24)]  # fmt: skip
    assert [t + 1 for t in drop.dropped] == [6, 12, 18]
    network.finish()
    first = network.emitted[()]
    assert [i.time + 1 for i in first if i.value is not None] == [1, 3, 7, 9, 13, 15, 19]
    assert [(i.time + 1, int(i.marks[0][1]) + 1) for i in first if i.marks] == [(1, 4), (7, 10), (13, 16), (19, 22)]
    results = {time + 1: value for time, value in network.results[(0,)]}
    assert {t: v for t, v in results.items() if t < 19} == {1: 6, 7: 6, 13: 6}


def test_the_first_defect_of_the_printed_table_is_gone() -> None:
    """Under a grid of (7, 6) with its first stretch kept and the next dropped, nothing is cut short."""
    split = Stage(1, 1, behind=(Stage(3, 2), Stage(3, 3)))
    assert split.grid() == DropGrid(7, 6)
    events = [(t, 1) for t in range(40)]
    results, _ = marked(split, events, lambda k: k % 2 == 0, DropGrid(7, 6))
    assert_kept_are_exact(split, events, lambda k: k % 2 == 0, DropGrid(7, 6), results)


def assert_kept_are_exact(
    root: Stage, events: list[tuple[int, int]], keeps: object, grid: DropGrid, got: Results
) -> None:
    """Nothing missing of what is kept, nothing else, and all of it as it would have been."""
    for path, full in interpreted(root, events).items():
        expected = [(s, v) for s, v in full if keeps(s // grid.slide)]  # type: ignore[operator]
        assert got[path] == expected, (root, path)


def check_random_network(seed: int) -> tuple[int, int]:
    rng = random.Random(seed)
    root, events = random_stage(rng, rng.randrange(4)), random_events(rng)
    grid = root.grid()
    assert grid is not None
    gap = rng.choice([1, 2, 5])
    fates, share = Fates(seed, "out", gap=gap), rng.choice([0.3, 0.6, 1.0])
    times = [t for t, _ in events] or [0]
    low, high = (times[0] - 99) // grid.slide, times[-1] // grid.slide + 1
    _, runs = fates.decide(FateRecord(), low, high, share)
    gone = {k for first, last in runs for k in range(first, last + 1)}
    # Decisions that were made otherwise, such as window by window, are exact too.
    if rng.random() < 0.3:
        gone = {k for k in range(low, high) if rng.random() < share}
    results, early = marked(root, events, lambda k: k not in gone, grid)
    assert_kept_are_exact(root, events, lambda k: k not in gone, grid, results)
    kept = [k * grid.slide for k in range(low, high) if k not in gone]
    assert order_free(root, events, kept, grid) == results
    # An event goes early just if no kept stretch has it.
    assert early == [t for t, _ in events if not any(s <= t < s + grid.size for s in kept)]
    return sum(map(len, results.values())), len(early)


@pytest.mark.parametrize("block", range(10))
def test_what_is_kept_is_what_would_have_been(block: int) -> None:
    found = [check_random_network(seed) for seed in range(50 * block, 50 * block + 50)]
    assert sum(n for n, _ in found) > 100 and sum(n for _, n in found) > 20


@pytest.mark.fuzz
def test_what_is_kept_is_what_would_have_been_at_length() -> None:
    for seed in range(1_000_000, 1_010_000):
        check_random_network(seed)


@pytest.mark.parametrize("seed", range(20))
def test_as_feedback_the_same_is_dropped_at_least_as_early(seed: int) -> None:
    """Told behind every output, dropped stretches go up through nested windows and splits as far as marks would."""
    rng = random.Random(seed)
    root = random_stage(rng, rng.randrange(3), slides=(1, 2, 3))
    events = random_events(rng, most=40)
    grid = root.grid()
    assert grid is not None
    query = TreeQuery(root)
    times = [t for t, _ in events] or [0]
    low, high = times[0] // grid.slide - 99, times[-1] // grid.slide + 1
    _, runs = Fates(seed, "out", gap=rng.choice([1, 3, 6])).decide(FateRecord(), low, high, 0.6)
    gone = {k for first, last in runs for k in range(first, last + 1)}
    patterns = query.unread(runs, grid)
    left = [(t, v) for t, v in events if not is_unread(patterns, {"ts": t, "v": v})]
    now = query.results(left)
    for path, full in query.results(events).items():
        kept = [(s, v) for s, v in full if s // grid.slide not in gone]
        assert [(s, v) for s, v in now[path] if s // grid.slide not in gone] == kept
    _, early = marked(root, events, lambda k: k not in gone, grid)
    assert set(early) <= {t for t, v in events if is_unread(patterns, {"ts": t, "v": v})}
