"""What a run was told, across crashes: versions in plans and in records of their own, and messages that wait again."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.engine.checkpoint import Checkpoint
from penstock.engine.control_log import ControlLog
from penstock.engine.fault import Crash, hooked
from penstock.engine.storage import Storage
from penstock.portal.testing import local_session

Start = Callable[..., ps.Run]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Counts of ten minutes with a row of each of four segments, read minute by minute."""
    (tmp_path / "in").mkdir()
    for minute in range(10):
        rows = {"minute": pa.array([minute] * 4, pa.int32()), "segment": pa.array(range(4), pa.int32())}
        pq.write_table(pa.table(rows), tmp_path / "in" / f"{minute}.parquet")
    cars = ps.stream("cars", "minute int, segment int", time="minute")
    cars = cars.read_parquet(str(tmp_path / "in"), order="name").disorder(0).ends()
    query = cars.group_by("segment").agg(n="count(*)")

    def start(**more: object) -> ps.Run:
        settings = {"trigger": "available_now", "max_rows": 4, "spark": local_session()}
        kept = {"checkpoint": str(tmp_path / "kept")}
        return query.start(ps.parquet(str(tmp_path / "out")), **kept, **{**settings, **more})  # type: ignore[arg-type]

    return start


def storage(home: Path) -> Storage:
    return Storage.at(str(home / "kept"))


def results(home: Path) -> dict[int, int]:
    found = pq.read_table(home / "out").to_pylist()
    return {row["segment"]: row["n"] for row in found}


def crash_at(start: Start, point: str, **more: object) -> None:
    def hook(reached: str) -> None:
        if reached == point:
            raise Crash(point)

    with pytest.raises(Crash), hooked(hook):
        start(**more).wait()


def test_a_version_is_in_the_first_plan_that_names_it(start: Start, tmp_path: Path) -> None:
    crash_at(start, "planned", feedback=["not [3, *]"])
    assert ControlLog(storage(tmp_path)).versions() == []
    (plan,) = Checkpoint(storage(tmp_path)).plans_after(0)
    assert plan.control == 1 and plan.heard["places"] and len(plan.heard["requests"]) == 1
    start().wait()
    assert results(tmp_path) == {0: 10, 1: 10, 2: 10}


def test_a_version_that_lives_on_gets_a_record_of_its_own(start: Start, tmp_path: Path) -> None:
    start(feedback=["not [3, *]"]).wait()
    last = Checkpoint(storage(tmp_path)).latest()
    assert last is not None and last.epoch > 5 and last.control == 1
    assert ControlLog(storage(tmp_path)).versions() == [1]


@pytest.mark.parametrize("epoch", [1, 2, 3, 5])
def test_what_one_plan_alone_holds_outlives_it(start: Start, tmp_path: Path, epoch: int) -> None:
    """Started anew at each epoch, a run forgets nothing, though plans are retired."""
    for number in range(1, epoch + 1):
        said = {"feedback": ["not [3, *]"]} if number == 1 else {}
        crash_at(start, f"written epochs/{number:06d}.commit.json", **said)
    start().wait()
    assert results(tmp_path) == {0: 10, 1: 10, 2: 10}


def test_a_plan_that_is_made_anew_loses_no_message(start: Start, tmp_path: Path) -> None:
    crash_at(start, "planned", feedback=["not [3, *]", "not [1, *]"])
    # Its file changes before the epoch has happened.
    file = tmp_path / "in" / "0.parquet"
    pq.write_table(pq.read_table(file), file, compression="none")
    os.utime(file, ns=(1, 1))
    run = start().wait()
    assert any("planned anew" in warning for warning in run.warnings)
    assert results(tmp_path) == {0: 10, 2: 10}
    assert ControlLog(storage(tmp_path)).requests() == []


def test_one_message_an_epoch_leaves_no_records(start: Start, tmp_path: Path) -> None:
    runs: list[ps.Run] = []
    written: list[str] = []

    def talk(progress: ps.Progress) -> None:
        if runs and progress.epoch < 8:
            runs[0].feedback(f"not [{100 + progress.epoch}, *]")

    def note(reached: str) -> None:
        if reached.startswith("written control/0"):
            written.append(reached)

    with hooked(note):
        runs.append(start(listener=talk, feedback=["not [3, *]"]))
        runs[0].wait()
    versions = Checkpoint(storage(tmp_path)).latest()
    assert versions is not None and versions.control >= 5
    assert len(written) <= 3
    assert results(tmp_path) == {0: 10, 1: 10, 2: 10}
