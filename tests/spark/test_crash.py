"""A crash at every step of the commit protocol: output as if nothing had happened, and nothing left lying about."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from plug import EveryStepOnce, Hook, Seeded, crash_at, run_to_the_end
from scenario import ROWS, SCENARIOS, Outcome, Scenario, orphans, outcome, windows

import penstock as ps
from penstock.engine.fault import Crash, hooked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Undisturbed = Callable[[str], tuple[Path, Outcome]]


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """The input of a scenario and what it gives when nothing goes wrong; made once."""
    known: dict[str, tuple[Path, Outcome]] = {}

    def find(name: str) -> tuple[Path, Outcome]:
        if name not in known:
            home = tmp_path_factory.mktemp(name)
            SCENARIOS[name].prepare(home)
            SCENARIOS[name].start(home, home, spark).wait()
            known[name] = home, outcome(home)
        return known[name]

    return find


def check(scenario: Scenario, undisturbed: Undisturbed, home: Path, spark: SparkSession, hook: Hook) -> int:
    source, expected = undisturbed(scenario.name)
    crashes = run_to_the_end(lambda: scenario.start(source, home, spark), hook)
    assert outcome(home) == expected
    scenario.start(source, home, spark).wait()  # Starting sweeps; there is nothing else to do.
    assert orphans(home) == []
    assert outcome(home) == expected
    return crashes


def test_every_step_crashes_once(spark: SparkSession, undisturbed: Undisturbed, tmp_path: Path) -> None:
    hook = EveryStepOnce(tmp_path)
    crashes = check(SCENARIOS["windows"], undisturbed, tmp_path, spark, hook)
    assert crashes == len(hook.seen) >= 40


@pytest.mark.parametrize("name", ["fused", "compacting", "two-levels", "no-overlap", "partitions"])
def test_seeded_crashes(spark: SparkSession, undisturbed: Undisturbed, tmp_path: Path, name: str) -> None:
    hook = Seeded(tmp_path, seed=len(name), crashes=6)
    assert check(SCENARIOS[name], undisturbed, tmp_path, spark, hook) > 0


def test_partitions_that_were_seen_but_not_read_hold_the_frontier(
    spark: SparkSession, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    """The plan that is taken up after a crash must know of them, or their events would come too late."""
    check(SCENARIOS["partitions"], undisturbed, tmp_path, spark, crash_at("planned", 1))


def test_every_epoch_is_delivered_under_one_id(spark: SparkSession, undisturbed: Undisturbed, tmp_path: Path) -> None:
    source, expected = undisturbed("windows")
    delivered: dict[int, list[tuple[object, ...]]] = {}

    def take(rows: pa.Table, epoch: int) -> None:
        found = sorted(tuple(r.values()) for r in rows.to_pylist())
        assert delivered.setdefault(epoch, found) == found  # Perhaps twice, but the same.

    def start() -> ps.Run:
        checkpoint = str(tmp_path / "checkpoint")
        query = windows(source / "in")
        return query.start(
            ps.deliver(take), trigger="available_now", checkpoint=checkpoint, spark=spark, max_rows=ROWS, fuse_below=0
        )

    for point in ("deliver", "delivered", "written delivered/sink-1.json", "published", "merged"):
        with hooked(crash_at(point, 1)), pytest.raises(Crash):
            start().wait()
    start().wait()
    assert sorted(row for rows in delivered.values() for row in rows) == expected.rows


@pytest.mark.fuzz
@pytest.mark.timeout(3600)
def test_a_thousand_crashes(spark: SparkSession, undisturbed: Undisturbed, tmp_path: Path) -> None:
    crashes = seed = 0
    while crashes < 1000:
        name = sorted(SCENARIOS)[seed % len(SCENARIOS)]
        hook = Seeded(tmp_path / str(seed), seed, crashes=12, within=20 + seed % 60)
        found = check(SCENARIOS[name], undisturbed, tmp_path / str(seed), spark, hook)
        crashes, seed = crashes + max(found, 1), seed + 1
