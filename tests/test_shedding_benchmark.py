"""The simulator of load shedding: a server by hand, and the shapes that were published."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1]))  # The benchmarks are beside the package, not in it.
from benchmarks.shedding.report import tables
from benchmarks.shedding.rows import battalion, losses, twenty
from benchmarks.shedding.server import finished
from benchmarks.shedding.windows import Aggregation, nested, random_drop, split, window_drop


def test_whoever_comes_waits_for_those_before() -> None:
    rng = np.random.default_rng(1)
    times, work = np.sort(rng.random(50)), rng.random(50) / 25
    free, expected = 0.0, []
    for at, seconds in zip(times, work, strict=True):
        free = max(free, at) + seconds
        expected.append(free)
    assert finished(times, work) == pytest.approx(expected)


def test_a_drop_behind_all_the_work_ends_where_its_share_of_the_work_does() -> None:
    thirds = (1 / 3, 1 / 3, 1 / 3)
    assert nested(thirds, 0.45, 300)["RDrop"] and nested(thirds, 0.6, 300)["RDrop"] is None
    late = (0.303, 0.303, 0.394)
    assert nested(late, 0.55, 300)["RDrop"] and nested(late, 0.75, 300)["RDrop"] is None
    found = nested(late, 0.4, 300)
    assert found["Nested2"] and found["Nested1"] and found["RDrop"]
    assert found["Nested2"] <= found["Nested1"] <= found["RDrop"]


def test_windows_that_overlap_need_twice_the_drop() -> None:
    tumbling, sliding = (window_drop(Aggregation(50, s), 0.25, 6_000) for s in (50, 1))
    assert tumbling == pytest.approx(0.2, abs=0.05)
    assert sliding == pytest.approx(0.39, abs=0.05)
    assert random_drop(Aggregation(100, 100), 0.25) is None


def test_the_earliest_drop_loses_least() -> None:
    found = split(0.4)
    assert found["shared"] and found["split"] and found["behind"]
    assert found["shared"] < found["split"] < found["behind"]


def test_value_beats_chance_and_chance_beats_the_door() -> None:
    semantic, random, door = (losses(battalion(1), 1.5, p, 1)[1] for p in ("semantic", "random", "input-uniform"))
    assert semantic < random < door
    branches, shut = (losses(twenty(1, 1.0), 1.5, p, 1)[0] for p in ("random", "input-uniform"))
    assert branches < shut


def test_nothing_simulated_is_said_so() -> None:
    assert set(tables({}).values()) == {"Not simulated."}
