"""Real `kill -9`, of the driver with all that belongs to it and of a Python worker: nothing is lost or doubled."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scenario import SCENARIOS, Outcome, held, orphans, outcome, state_named

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WINDOWS = SCENARIOS["windows"]

# After the plan is written; after everything is computed, before it counts; after it counts, before anybody sees it.
POINTS = (("planned", 1), ("commit", 2), ("publish", 1))


@pytest.fixture(scope="module")
def expected(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    home = tmp_path_factory.mktemp("undisturbed")
    WINDOWS.prepare(home)
    WINDOWS.start(home, home, spark).wait()
    return home, outcome(home)


def drive(
    source: Path,
    home: Path,
    point: str = "",
    nth: int = 0,
    master: str = "local[2]",
    name: str = "windows",
    **settings: Any,
) -> Any:
    """A driver in a process group of its own."""
    script = Path(__file__).with_name("killed_driver.py")
    command = [sys.executable, str(script), name, str(source), str(home), master, json.dumps(settings)]
    return subprocess.Popen(
        [*command, point, str(nth)], start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def kill_group(process: Any) -> None:
    """Kill what is left of a driver: its Java process is in its group, and takes the Python workers with it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def finish(source: Path, home: Path, spark: SparkSession, expected: Outcome) -> None:
    WINDOWS.start(source, home, spark).wait()
    assert outcome(home) == expected
    time.sleep(0.2)  # A worker that outlived its driver for a moment may have left a file just after the sweep.
    WINDOWS.start(source, home, spark).wait()
    assert orphans(home) == []
    assert outcome(home) == expected


def test_killed_driver(spark: SparkSession, expected: tuple[Path, Outcome], tmp_path: Path) -> None:
    source, undisturbed = expected
    for point, nth in POINTS:
        driver = drive(source, tmp_path, point, nth)
        text, _ = driver.communicate(timeout=240)
        kill_group(driver)
        assert driver.returncode == -signal.SIGKILL, text
    finish(source, tmp_path, spark, undisturbed)


@pytest.mark.parametrize(
    ("name", "points"),
    [
        # Rows of an outer join and their marks lie in files that only the last manifest tells from those of the dead.
        ("joined-open", (("merged", 2), ("committed", 2))),
        # Of the parts of a table some are replaced, and some not yet.
        ("folded", (("publish part-", 3), ("settle", 3))),
    ],
)
def test_killed_driver_of_more(
    spark: SparkSession, tmp_path: Path, name: str, points: tuple[tuple[str, int], ...]
) -> None:
    scenario, source, home = SCENARIOS[name], tmp_path / "undisturbed", tmp_path / "killed"
    scenario.prepare(source)
    scenario.start(source, source, spark).wait()
    for point, nth in points:
        driver = drive(source, home, point, nth, name=scenario.name)
        text, _ = driver.communicate(timeout=240)
        kill_group(driver)
        assert driver.returncode == -signal.SIGKILL, text
    scenario.start(source, home, spark).wait()
    time.sleep(0.2)
    scenario.start(source, home, spark).wait()
    assert outcome(home) == outcome(source)
    assert held(home) == held(source)
    assert orphans(home) == []
    there, named = state_named(home)
    assert there == named and (name != "joined-open" or any("marks-" in n for n in there))


@pytest.mark.parametrize("stage", ["scan", "merge"])
def test_killed_worker(spark: SparkSession, expected: tuple[Path, Outcome], tmp_path: Path, stage: str) -> None:
    source, undisturbed = expected
    marker = tmp_path / "killed"
    run = WINDOWS.start(source, tmp_path / "run", spark, fault=f"{stage}={marker}").wait()
    assert marker.exists()
    assert [p.epoch for p in run.history] == [1, 2, 3, 4]
    assert outcome(tmp_path / "run") == undisturbed
    WINDOWS.start(source, tmp_path / "run", spark).wait()
    assert orphans(tmp_path / "run") == []


def test_killed_worker_is_replaced_by_spark(expected: tuple[Path, Outcome], tmp_path: Path) -> None:
    """With a master that tries tasks again the epoch itself goes on: the driver is allowed one attempt only."""
    source, undisturbed = expected
    marker = tmp_path / "killed"
    driver = drive(source, tmp_path / "run", master="local[2,4]", attempts=1, fault=f"merge={marker}")
    text, _ = driver.communicate(timeout=240)
    assert driver.returncode == 0, text
    assert marker.exists()
    assert outcome(tmp_path / "run") == undisturbed


@pytest.mark.fuzz
@pytest.mark.timeout(3600)
def test_driver_killed_at_random_moments(spark: SparkSession, expected: tuple[Path, Outcome], tmp_path: Path) -> None:
    source, undisturbed = expected
    moments = random.Random(30)
    for i in range(30):
        home = tmp_path / str(i // 3)
        driver = drive(source, home, max_rows=20)
        assert driver.stdout.readline() == "started\n"
        time.sleep(moments.uniform(0, 8))
        kill_group(driver)
        if i % 3 == 2:
            WINDOWS.start(source, home, spark, max_rows=20).wait()
            assert outcome(home).rows == undisturbed.rows
            assert outcome(home).totals == undisturbed.totals
            time.sleep(0.2)
            WINDOWS.start(source, home, spark).wait()
            assert orphans(home) == []
