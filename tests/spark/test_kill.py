"""Real `kill -9` at chosen steps, of the driver and of a Python worker: nothing is lost or doubled."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from forked import kill_at_steps
from killed_driver import spark_driver
from scenario import SCENARIOS, Outcome, held, orphans, outcome, same, state_named

from penstock.portal.testing import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WINDOWS = SCENARIOS["windows"]

#: By scenario the steps at which drivers are killed, and at which time.
POINTS = {
    # After the plan is written; when everything is computed, before it counts; when it counts, before anybody sees it.
    "windows": (("planned", 1), ("commit", 2), ("publish", 1)),
    # Rows of an outer join and their marks lie in files that only the last manifest tells from those of the dead.
    "joined-open": (("merged", 2), ("committed", 2)),
    # Of the parts of a table some are replaced, and some not yet.
    "folded": (("publish part-", 3), ("settle", 3)),
}


@pytest.fixture(scope="module")
def expected(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    home = tmp_path_factory.mktemp("undisturbed")
    WINDOWS.prepare(home)
    WINDOWS.start(home, home, spark).wait()
    return home, outcome(home)


@pytest.mark.parametrize("name", POINTS)
def test_killed_driver(tmp_path: Path, name: str) -> None:
    scenario, source, home = SCENARIOS[name], tmp_path / "undisturbed", tmp_path / "killed"
    scenario.prepare(source)
    scenario.start(source, source, local_session()).wait()
    kill_at_steps(name, source, home, POINTS[name])
    scenario.start(source, home, local_session()).wait()
    assert same(outcome(home), outcome(source))
    assert held(home) == held(source)
    assert orphans(home) == []
    there, named = state_named(home)
    assert there == named and (name != "joined-open" or any("marks-" in n for n in there))


@pytest.mark.parametrize("path", ["resident", "job"])
@pytest.mark.parametrize("stage", ["scan", "merge"])
def test_killed_worker(
    spark: SparkSession, expected: tuple[Path, Outcome], tmp_path: Path, stage: str, path: str
) -> None:
    source, undisturbed = expected
    marker = tmp_path / "killed"
    home, below = tmp_path / "run", 0 if path == "job" else 64 << 20
    run = WINDOWS.start(source, home, spark, fault=f"{stage}={marker}", resident_below=below).wait()
    assert marker.exists()
    assert [p.epoch for p in run.history] == [1, 2, 3, 4]
    assert "job" in (paths := {p.path for p in run.history}) and (path in paths)
    assert outcome(home) == undisturbed
    WINDOWS.start(source, home, spark).wait()
    assert orphans(home) == []


def test_killed_worker_is_replaced_by_spark(expected: tuple[Path, Outcome], tmp_path: Path) -> None:
    """With a master that tries tasks again the epoch itself goes on: the driver is allowed one attempt only."""
    source, undisturbed = expected
    marker = tmp_path / "killed"
    settings = {"attempts": 1, "fault": f"merge={marker}", "resident_below": 0}
    driver = spark_driver(source, tmp_path / "run", "local[2,4]", **settings)
    text, _ = driver.communicate(timeout=240)
    assert driver.returncode == 0, text
    assert marker.exists()
    assert outcome(tmp_path / "run") == undisturbed
