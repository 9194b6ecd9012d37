"""A crash at every step of the commit protocol: output as if nothing had happened, and nothing left lying about."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from plug import EveryStepOnce, Hook, Seeded, crash_at, run_to_the_end
from scenario import ROWS, SCENARIOS, Outcome, Scenario, held, orphans, outcome, state_named, windows

import penstock as ps
from penstock.checkpoint.fault import Crash, hooked
from penstock.checkpoint.storage import Storage
from penstock.engine.tasks import bucket
from penstock.portal.testing import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Undisturbed = Callable[[str], tuple[Path, Outcome]]


def _finder(spark: SparkSession, folders: pytest.TempPathFactory) -> Undisturbed:
    known: dict[str, tuple[Path, Outcome]] = {}

    def find(name: str) -> tuple[Path, Outcome]:
        if name not in known:
            home = folders.mktemp(name)
            SCENARIOS[name].prepare(home)
            SCENARIOS[name].start(home, home, spark).wait()
            known[name] = home, outcome(home)
        return known[name]

    return find


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """The input of a scenario and what it gives when nothing goes wrong; made once."""
    return _finder(spark, tmp_path_factory)


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
    assert sorted((row for rows in delivered.values() for row in rows), key=repr) == expected.rows


# --- operators that keep rows: in this process, since the driver and the tasks are tried here, not Spark --------------


@pytest.fixture(scope="module")
def undisturbed_here(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    return _finder(local_session(), tmp_path_factory)


def check_kept(name: str, undisturbed: Undisturbed, home: Path, hook: Hook) -> int:
    """As `check`; what is held in the end is also the same, and every file of it is one that a manifest names."""
    crashes = check(SCENARIOS[name], undisturbed, home, local_session(), hook)
    source, _ = undisturbed(name)
    there, named = state_named(home)
    assert there == named
    assert held(home) == held(source)
    return crashes


@pytest.mark.parametrize("name", ["joined", "joined-open"])
def test_every_step_of_a_join_crashes_once(undisturbed_here: Undisturbed, tmp_path: Path, name: str) -> None:
    """Outer joins, whose marks change from epoch to epoch, with `distinct` and an aggregate behind, closed by key."""
    hook = EveryStepOnce(tmp_path)
    crashes = check_kept(name, undisturbed_here, tmp_path, hook)
    assert crashes == len(hook.seen) >= 35
    if name == "joined-open":
        there, _ = state_named(tmp_path)
        assert any("marks-" in n for n in there) and any("distinct" in n for n in there)


def test_every_step_of_results_by_value_crashes_once(undisturbed_here: Undisturbed, tmp_path: Path) -> None:
    hook = EveryStepOnce(tmp_path)
    crashes = check_kept("by-value", undisturbed_here, tmp_path, hook)
    assert crashes == len(hook.seen) >= 60
    assert any(p.startswith("publish key=") for p in hook.seen)


@pytest.mark.parametrize("name", ["folded", "folded by value"])
def test_every_step_of_a_table_that_is_replaced_crashes_once(
    undisturbed_here: Undisturbed, tmp_path: Path, name: str
) -> None:
    hook = EveryStepOnce(tmp_path)
    crashes = check_kept(name, undisturbed_here, tmp_path, hook)
    assert crashes == len(hook.seen) >= 40
    assert any(p.startswith("publish ") and p.endswith("part-0000.parquet") for p in hook.seen)


def test_a_join_crashes_within_files_of_state(
    undisturbed_here: Undisturbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task is torn off in the middle of an epoch: some of its runs and marks are there, and half of another."""
    left = 0
    torn: list[str] = []

    def tearing(write: Callable[..., Any]) -> Callable[..., Any]:
        def write_and_tear(storage: Storage, *rest: Any, **named: Any) -> Any:
            nonlocal left
            written = write(storage, *rest, **named)
            left -= 1
            if left == 0:
                name = written.name
                path = Path(storage.path(name))
                path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
                torn.append(name)
                raise Crash(name)
            return written

        return write_and_tear

    monkeypatch.setattr(bucket, "write_run", tearing(bucket.write_run))
    monkeypatch.setattr(bucket, "write_table", tearing(bucket.write_table))
    name = "joined-open"
    source, expected = undisturbed_here(name)
    for nth in range(1, 200, 2):  # Each start gets a little further, until one gets through.
        left = nth
        with suppress(Crash):
            SCENARIOS[name].start(source, tmp_path, local_session()).wait()
            break
    assert len(torn) >= 8 and any("marks-" in n for n in torn) and not all("marks-" in n for n in torn)
    assert outcome(tmp_path) == expected
    left = 0
    assert check_kept(name, undisturbed_here, tmp_path, lambda _: None) == 0


@pytest.mark.parametrize("seed", range(3))
def test_seeded_crashes_of_a_join(undisturbed_here: Undisturbed, tmp_path: Path, seed: int) -> None:
    name = ("joined", "joined-open")[seed % 2]
    assert check_kept(name, undisturbed_here, tmp_path, Seeded(tmp_path, seed, crashes=8, within=90)) > 0


@pytest.mark.fuzz
@pytest.mark.timeout(3600)
def test_a_thousand_crashes(
    spark: SparkSession, undisturbed: Undisturbed, tmp_path: Path, tried: Callable[[str], None]
) -> None:
    crashes = seed = 0
    while crashes < 1000:
        name = sorted(SCENARIOS)[seed % len(SCENARIOS)]
        hook = Seeded(tmp_path / str(seed), seed, crashes=12, within=20 + seed % 60)
        found = check(SCENARIOS[name], undisturbed, tmp_path / str(seed), spark, hook)
        crashes, seed = crashes + max(found, 1), seed + 1
    tried(f"{crashes:,} crashes in {seed} runs")
