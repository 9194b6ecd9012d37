"""The controller in a closed loop with a machine that is made up: what is too much goes, and comes back afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

import penstock as ps
from penstock.shedding.controller import Controller, RoadStanding
from penstock.shedding.policy import Shedding
from penstock.shedding.qos import QoS
from penstock.shedding.terms import Terms
from penstock.statistics.figures import Backlog, EpochFigures
from penstock.statistics.measured import RunStatistics

CORES, EVERY, FIXED, COST = 2, 1.0, 0.05, 200e-6


@dataclass
class Epoch:
    """One epoch of the machine: how long it took, how much was delivered, and what had piled up before it."""

    seconds: float
    share: float
    queued: int


def played(rates: Sequence[float], qos: QoS, *, most: int | None = None) -> list[Epoch]:
    """Epochs of a query that costs 200 µs a row, of which a source brings so many a second."""
    stream = ps.stream("cars", "ts int, lane int", time="ts").read_parquet("cars")
    plan = stream.window(10).group_by("lane").agg(n="count(*)").plan
    controller = Controller(plan, {"aggregate-1": Terms.of(qos)}, ("aggregate-1",) if qos.gap else ())
    policy, at, measured, share = Shedding.auto(headroom=0.9), RoadStanding(), RunStatistics(), 1.0
    waiting, since, found = 0.0, EVERY, []
    for rate in rates:
        waiting += rate * since
        taken = waiting if most is None else min(waiting, most)
        waiting -= taken
        done = taken * share
        cpu = {"source:cars": taken * 2e-6, "aggregate-1#0": done * COST, "aggregate-1": 1e-5}
        seconds = FIXED + sum(cpu.values()) / CORES
        since = max(EVERY, seconds)
        rows = {"source:cars": round(taken), "aggregate-1#0": round(done), "aggregate-1": 10}
        left = {"source:cars": Backlog(round(waiting), round(waiting) * 16, 0.0)}
        figures = EpochFigures(rows, {**rows, "aggregate-1#0": 10}, cpu, seconds, since, EVERY, CORES, left)
        measured = measured.after(figures)
        found.append(Epoch(seconds, share, round(waiting + taken)))
        row, at = controller.decide(policy, at, measured, CORES)
        share = row.delivered["aggregate-1"]
    return found


def test_three_times_too_much_for_long_does_not_pile_up_and_all_comes_back() -> None:
    # 9,000 rows a second are what two cores at nine tenths can do.
    quiet, storm = 4000.0, 27_000.0
    epochs = played([quiet] * 10 + [storm] * 200 + [quiet] * 40, QoS())
    assert all(e.share == 1 for e in epochs[:10])
    steady = epochs[60:210]
    assert max(e.queued for e in steady) < 6 * storm  # A few seconds of it, however long it lasts.
    assert 0.1 < sum(e.share for e in steady) / len(steady) < 0.4  # A third would be right to the last bit.
    assert [e.share for e in epochs[-20:]] == [1.0] * 20


def test_what_fits_is_left_alone_for_ever() -> None:
    assert all(e.share == 1 for e in played([7000.0] * 200, QoS()))


def test_a_limit_on_epochs_is_seen_in_what_waits() -> None:
    epochs = played([12_000.0] * 120, QoS(), most=30_000)
    assert min(e.share for e in epochs) < 1
    assert epochs[-1].queued < 10 * 12_000


@pytest.mark.parametrize("gap", [1, 4])
def test_a_gap_that_cannot_be_kept_switches_off_and_on(gap: int) -> None:
    epochs = played([4000.0] * 5 + [80_000.0] * 60 + [4000.0] * 40, QoS(gap=gap))
    assert 0.0 in {e.share for e in epochs}
    assert all(e.share == 0 or e.share >= 1 / (gap + 1) - 1e-9 for e in epochs)
    assert epochs[-1].share == 1
