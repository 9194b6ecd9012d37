"""What a run was told, across crashes: versions in plans and in records of their own, and messages that wait again."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.checkpoint.checkpoint import Checkpoint
from penstock.checkpoint.fault import Crash, hooked
from penstock.checkpoint.storage import Storage
from penstock.engine.source import files
from penstock.feedback.answers import answer, answers, store_answers
from penstock.feedback.log import ControlLog
from penstock.pattern.feedback import Feedback
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


def test_what_an_epoch_writes_does_not_grow_with_what_was_said(tmp_path: Path) -> None:
    """Three hundred epochs, each of which is told something of the next seconds, and of a key that never ends."""
    events = ps.generate(rate=10, rows=3_000, columns={"segment": ("key", 5), "speed": ("uniform", 0, 100)})
    query = events.window("10 s").group_by("segment").agg(n="count(*)", top="max(speed)")
    runs: list[ps.Run] = []
    sizes: list[tuple[int, int]] = []
    kept = tmp_path / "kept"

    def talk(progress: ps.Progress) -> None:
        plans = sorted((kept / "epochs").glob("*.plan.json"))
        sizes.append((sum(1 for p in kept.rglob("*") if p.is_file()), max(p.stat().st_size for p in plans)))
        if runs and progress.epoch < 298:
            until = datetime(2026, 1, 1) + timedelta(seconds=progress.epoch + 20)
            runs[0].feedback(f"not [< '{until}', {progress.epoch % 5}, *, *]")
            runs[0].feedback(f"not [*, {100 + progress.epoch % 7}, *, *]")

    settings = {"trigger": "available_now", "max_rows": 10, "spark": local_session(), "checkpoint": str(kept)}
    runs.append(query.start(ps.memory(), listener=talk, **settings))
    runs[0].wait()
    assert len(sizes) >= 300
    for early, late in zip(*([max(column) for column in zip(*part)] for part in (sizes[50:150], sizes[-100:]))):
        assert late <= 1.2 * early


# --- crashes with several versions under way --------------------------------------------------------------------------


def talking(home: Path, said: dict[int, str], fails: int, error: type[BaseException] = Crash) -> Callable[[str], None]:
    """Say something when the nth epoch is planned; pull the plug, once, when that many are merged."""
    count = {"planned": 0, "merged": 0}
    down: list[int] = []

    def hook(point: str) -> None:
        if point in count:
            count[point] += 1
            if point == "planned" and count[point] in said:
                ps.consumer(str(home / "kept")).feedback(said[count[point]])
            if point == "merged" and count[point] == fails and not down:
                down.append(fails)
                raise error(point)

    return hook


@pytest.mark.parametrize("fails", range(1, 7))
@pytest.mark.parametrize("error", [Crash, ConnectionResetError])
def test_two_epochs_planned_under_two_versions_forget_neither(
    start: Start, tmp_path: Path, fails: int, error: type[BaseException]
) -> None:
    """While one epoch merges, the next is planned and has heard more. A lost worker is tried again in the process."""
    with hooked(talking(tmp_path, {2: "not [3, *]", 3: "not [1, *]"}, fails, error)):
        try:
            start(fuse_below=0).wait()
        except Crash:
            start(fuse_below=0).wait()
    assert results(tmp_path) == {0: 10, 2: 10}


@pytest.mark.parametrize("fails", range(1, 9))
def test_a_list_of_which_a_part_is_over_keeps_the_rest(tmp_path: Path, fails: int) -> None:
    (tmp_path / "in").mkdir()
    for first in range(10):  # Each minute has an event in four files.
        minutes = pa.array([first + 3, first + 2, first + 1, first], pa.int32())
        pq.write_table(pa.table({"minute": minutes}), tmp_path / "in" / f"{first}.parquet")
    cars = ps.stream("cars", "minute int", time="minute").read_parquet(str(tmp_path / "in"), order="name")
    query = cars.disorder(3).ends().group_by("minute").agg(n="count(*)")

    def begin() -> ps.Run:
        return query.start(
            ps.parquet(str(tmp_path / "out")),
            checkpoint=str(tmp_path / "kept"),
            trigger="available_now",
            spark=local_session(),
            max_rows=4,
            fuse_below=0,
        )

    # Somebody else speaks in each epoch, of what never comes.
    others = {n: f"not [*, > {200 - n}]" for n in range(3, 12)}
    with hooked(talking(tmp_path, {1: "not [{2, 4, 6}, *]", **others}, fails)):
        try:
            begin().wait()
        except Crash:
            begin().wait()
    rows = pq.read_table(tmp_path / "out").to_pylist()
    found = {r["minute"]: r["n"] for r in rows}
    assert found == {0: 1, 1: 2, 3: 4, 5: 4, 7: 4, 8: 4, 9: 4, 10: 3, 11: 2, 12: 1}


# --- messages that cannot be read, demands that cannot be answered ----------------------------------------------------


@pytest.mark.parametrize("data", [b"", b'{"sha256":"ab'], ids=["0", "half"])
def test_a_message_that_cannot_be_read_is_told_and_left_alone(start: Start, tmp_path: Path, data: bytes) -> None:
    name = ControlLog(storage(tmp_path)).submit({"text": "not [3, *]"})
    (tmp_path / "kept" / "control" / "requests" / f"{name}.json").write_bytes(data)
    run = start().wait()
    assert [w for w in run.warnings if name in w and "cannot be read" in w]
    assert len(results(tmp_path)) == 4


def test_a_message_to_nobody_is_told(start: Start, tmp_path: Path) -> None:
    ControlLog(storage(tmp_path)).submit({"text": "not [3, *]", "node": "join-7"})
    run = start().wait()
    assert [w for w in run.warnings if "refused: the query has no operator 'join-7'" in w]


def test_a_message_is_not_swept_while_it_is_written(start: Start, tmp_path: Path) -> None:
    half = tmp_path / "kept" / "control" / "requests" / ".1.json.7.partial"
    half.parent.mkdir(parents=True)
    half.write_bytes(b"{")
    start().wait()
    assert half.exists()


def test_a_demand_that_fails_does_not_end_the_run(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for minute in range(6):
        rows = {"minute": pa.array([minute] * 2, pa.int32()), "segment": pa.array([0, 1], pa.int32())}
        pq.write_table(pa.table(rows), tmp_path / "in" / f"{minute}.parquet")

    def whole(rows: pa.Table) -> pa.Table:
        if min(rows["n"].to_pylist()) < 6:
            raise ValueError("a group of less than six")
        return rows

    cars = ps.stream("cars", "minute int, segment int", time="minute").read_parquet(str(tmp_path / "in"), order="name")
    query = cars.disorder(0).ends().group_by("segment").agg(n="count(*)").map(whole, keeps=["segment"])
    run = query.start(
        ps.parquet(str(tmp_path / "out")),
        checkpoint=str(tmp_path / "kept"),
        trigger="available_now",
        spark=local_session(),
        max_rows=2,
        feedback=["now [*, *]"],
    ).wait()
    assert results(tmp_path) == {0: 6, 1: 6}
    assert [w for w in run.warnings if "as they are now cannot be computed" in w and "less than six" in w]
    (refused,) = (tmp_path / "kept" / "partials").iterdir()
    with pytest.raises(ps.UserError, match="less than six"):
        answer(storage(tmp_path), refused.name.partition(".")[0])
    assert ControlLog(storage(tmp_path)).requests() == []


def test_answers_of_one_epoch_are_all_kept_until_the_next(tmp_path: Path) -> None:
    folder = Storage.at(str(tmp_path))
    many = {f"{n:03}": pa.table({"n": [n]}) for n in range(150)}
    store_answers(folder, many)
    assert all(answer(folder, name) is not None for name in many)
    # By name it is older than those, as after a clock was set back.
    store_answers(folder, {"!": pa.table({"n": [1]})})
    assert answer(folder, "!") is not None and len(answers(folder)) == 100


def test_once_reads_everything_though_much_of_it_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_MOST_SPARED", 3)
    for n in range(8):
        pq.write_table(pa.table({"ts": [n], "k": [7 if n < 6 else 1]}), tmp_path / f"{n}.parquet")
    source = ps.stream("s", "ts bigint, k bigint", time="ts").read_parquet(str(tmp_path), order="name").disorder(0)
    target = ps.memory()
    run = source.where("k > 0").start(target, trigger="once", spark=local_session(), feedback=["not [*, 7]"]).wait()
    assert [r["ts"] for r in target.rows()] == [6, 7]
    assert run.saved["source:s files skipped"] == 6


def test_what_is_taken_back_is_forgotten(start: Start, tmp_path: Path) -> None:
    run = start().wait()
    receipt = run.feedback("not [3, *]")
    ps.consumer(run).withdraw(receipt)
    listening = run.driver.feedback
    assert listening._said and listening.log._mine
    listening.freeze(99)
    assert not listening._said and not listening.log._mine and not listening.guards.places


def test_findings_that_no_plan_holds_are_written_with_the_epoch(start: Start, tmp_path: Path) -> None:
    listening = start().wait().driver.feedback
    found = {"node": "aggregate-1", "port": -1, "epoch": 9}
    said = Feedback.parse("not [3, *]", listening.nodes["aggregate-1"].operator.schema)
    listening.issued = [{**found, "feedback": said.to_json()}]
    listening.freeze(99)  # Nothing is to be read, so no plan follows.
    assert listening.issued == []
    assert [f["epoch"] for f in listening.to_json(0)["issued"]] == [9]
    listening.to_write()
    assert "issued" not in listening.to_json(0)
