"""A function with a queue in a run: its budget, its punctuation, feedback to it, and what a restart finds."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.checkpoint.fault import Crash, hooked
from penstock.checkpoint.runs import Units, apply
from penstock.checkpoint.storage import Storage
from penstock.engine.tasks.bucket import step_bucket
from penstock.engine.tasks.job import Job
from penstock.engine.tasks.merge import Merge
from penstock.engine.tasks.pipeline import Keeper
from penstock.engine.tasks.report import TaskReport
from penstock.engine.tasks.watch import Watch
from penstock.errors import UserError
from penstock.operators.impute.kernel import QueueKernel
from penstock.operators.impute.operator import Impute
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.plan.orders import Orders
from penstock.portal.show import Snapshot
from penstock.portal.testing import local_session

SCHEMA = "ts int, segment int, speed int"
#: The rows of each call of the function, which runs in this process.
CALLS: list[list[dict[str, Any]]] = []


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    CALLS.clear()


def estimate(rows: pa.Table) -> pa.Table:
    CALLS.append(rows.to_pylist())
    return rows.set_column(2, "speed", pa.array([50] * rows.num_rows, pa.int32()))


def write(home: Path, name: str, *rows: tuple[int, int, int]) -> None:
    (home / "in").mkdir(exist_ok=True)
    lines = (json.dumps(dict(zip(("ts", "segment", "speed"), row))) for row in rows)
    (home / "in" / f"{name}.json").write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture
def sensor(tmp_path: Path) -> ps.Stream:
    """Forty events, the odd ones without a speed."""
    write(tmp_path, "1", *((t, t // 2 % 4, -1 if t % 2 else t) for t in range(40)))
    return ps.stream("sensor", SCHEMA, time="ts").read_json(str(tmp_path / "in"), order="name").disorder(0).ends()


def run(query: ps.Stream, home: Path, **settings: Any) -> tuple[ps.Run, list[tuple[int, dict[str, Any]]]]:
    """A run to its end; results with their epochs."""
    target = ps.memory()
    chosen = {"trigger": "available_now", "buckets": 3, "checkpoint": str(home / "checkpoint"), **settings}
    done = query.start(target, spark=local_session(), **chosen).wait()
    return done, [(epoch, row) for epoch, table in target.tables for row in table.to_pylist()]


def counts(done: ps.Run, what: str) -> list[int]:
    return [p.work.get(f"impute-1 {what}", 0) for p in done.history]


def called(name: str = "ts") -> list[int]:
    return [row[name] for call in CALLS for row in call]


def sorted_rows(rows: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in rows)


# --- the budget -------------------------------------------------------------------------------------------------------


def test_epochs_go_on_until_the_queue_is_empty(sensor: ps.Stream, tmp_path: Path) -> None:
    done, found = run(sensor.impute(estimate, budget=9), tmp_path)
    processed, queued = counts(done, "processed"), counts(done, "queued")
    assert max(processed) == 9 and sum(processed) == 40 and queued[-1] == 0
    assert processed[1:4] == [9, 9, 9]  # None is lost to a bucket that has nothing to do.
    assert [p.rows_in for p in done.history] == [40] + [0] * (len(processed) - 1)
    assert sorted_rows([row for _, row in found]) == [(t, t // 2 % 4, 50) for t in range(40)]
    assert sorted(called()) == list(range(40))
    assert done.progress is not None and done.progress.state_rows == 0


def test_the_rest_of_the_query_goes_on(sensor: ps.Stream, tmp_path: Path) -> None:
    query = sensor.impute(estimate, budget=4, where="speed < 0")
    _, found = run(query, tmp_path)
    direct = [(epoch, row) for epoch, row in found if row["ts"] % 2 == 0]
    assert {epoch for epoch, _ in direct} == {1}
    assert sorted(row["speed"] for _, row in direct) == list(range(0, 40, 2))
    slow = [(epoch, row) for epoch, row in found if row["ts"] % 2]
    assert len(slow) == 20 and {row["speed"] for _, row in slow} == {50}
    assert max(epoch for epoch, _ in slow) >= 5


def test_rows_have_their_turn_as_they_arrived(sensor: ps.Stream, tmp_path: Path) -> None:
    run(sensor.impute(estimate, budget=4), tmp_path, buckets=1, max_rows=6)
    assert called() == list(range(40))


def test_results_are_those_of_a_map(sensor: ps.Stream, tmp_path: Path) -> None:
    windows = [
        stream.window(8).group_by("segment").agg(n="count(*)", mean="avg(speed)")
        for stream in (sensor.map(estimate, keeps=["ts"]), sensor.impute(estimate, budget=3, keeps=["ts"]))
    ]
    (_, mapped), (_, imputed) = (run(w, tmp_path / str(k), max_rows=7) for k, w in enumerate(windows))
    assert sorted_rows([r for _, r in mapped]) == sorted_rows([r for _, r in imputed]) != []


def test_an_endless_run_works_off_its_queue_though_nothing_arrives(sensor: ps.Stream, tmp_path: Path) -> None:
    target = ps.memory()
    query = sensor.impute(estimate, budget=7)
    with query.start(target, every="1 ms", spark=local_session(), checkpoint=str(tmp_path / "c")) as running:
        limit = time.monotonic() + 30
        while len(target.rows()) < 40 and time.monotonic() < limit:
            time.sleep(0.01)
        epochs = len(running.history)
        time.sleep(0.1)
        assert len(running.history) <= epochs + 1  # Then it rests.
    assert len(target.rows()) == 40


# --- punctuation ------------------------------------------------------------------------------------------------------


def test_windows_behind_it_wait_for_their_events(sensor: ps.Stream, tmp_path: Path) -> None:
    query = sensor.impute(estimate, budget=5, keeps=["ts"]).window(10).agg(n="count(*)")
    done, found = run(query, tmp_path, buckets=1)
    assert [(row["window_start"], row["n"]) for _, row in found] == [(0, 10), (10, 10), (20, 10), (30, 10)]
    # Ten events take two epochs; that they are gone is known in the next.
    assert [epoch for epoch, _ in found] == [3, 5, 7, 9]
    assert done.progress is not None and done.progress.epoch == 9


def test_keys_behind_it_end_one_by_one(tmp_path: Path) -> None:
    rows = [(t, t // 4, -1) for t in range(12)]
    write(tmp_path, "1", *rows)
    source = ps.stream("s", SCHEMA, time="ts").read_json(str(tmp_path / "in")).punctuated(column="over")
    lines = [json.dumps({"over": f"[*, {s}, *]"}) for s in range(3)]
    (tmp_path / "in" / "2.json").write_text("\n".join(lines) + "\n")
    query = source.impute(estimate, budget=2, keeps=["segment"]).group_by("segment").agg(n="count(*)")
    _, found = run(query, tmp_path, buckets=1, max_rows=20)
    assert [(row["segment"], row["n"]) for _, row in found] == [(0, 4), (1, 4), (2, 4)]
    first, second, third = (epoch for epoch, _ in found)
    assert first < second < third


# --- feedback ---------------------------------------------------------------------------------------------------------


def test_preferred_events_have_their_turn_first(sensor: ps.Stream, tmp_path: Path) -> None:
    source = ps.stream("sensor", SCHEMA, time="ts").read_json(str(tmp_path / "in"))
    query = source.impute(estimate, budget=4, keeps=["segment"])
    run(query, tmp_path, buckets=1, feedback="prefer [*, 2, *]")
    segments = called("segment")
    assert segments[:10] == [2] * 10 and 2 not in segments[10:]
    assert sorted(called()) == list(range(40))
    preferred, others = called()[:10], called()[10:]
    assert preferred == sorted(preferred) and others == sorted(others)


def test_nothing_is_done_for_what_nobody_wants(sensor: ps.Stream, tmp_path: Path) -> None:
    query = sensor.impute(estimate, budget=4, keeps=["segment"])
    _, wanted = run(query, tmp_path, feedback="not [*, 2, *]")
    assert 2 not in called("segment") and len(called()) == 30 == len(wanted)


def test_what_waits_is_purged(tmp_path: Path) -> None:
    """Rows that nobody wants leave the queue without a turn, whether the first of its run have left or not."""
    source = ps.stream("sensor", SCHEMA, time="ts")
    kernel = QueueKernel(Impute((source.operator,), source.schema, function=estimate, budget=3), "impute-1")
    keeper = Keeper("impute-1", (0,), 1, kernel)
    units: Units = {}
    everything = Pattern.all(source.schema)
    orders = Orders(((),), (PunctuationSet(source.schema),), ((everything,),))

    def epoch(number: int, *purged: str, rows: pa.Table | None = None) -> TaskReport:
        nonlocal units
        purges = {"impute-1#0": tuple(Pattern.parse(p, source.schema) for p in purged)}
        job = Job("", b"", epoch=number, checkpoint=Storage.at(str(tmp_path)), purges=purges)
        report = TaskReport("m000")
        step_bucket(job, Merge(units, orders={"impute-1": orders}), keeper, 0, [rows], report, Watch(), print)
        units = apply(units, report.changes)
        return report

    arriving = [{"ts": t, "segment": t % 2, "speed": -1} for t in range(12)]
    epoch(1, rows=pa.Table.from_pylist(arriving, source.schema.arrow))
    assert epoch(2).work["impute-1 queued"] == 6
    report = epoch(3, "[< 8, *, *]", "[*, 1, *]")
    assert report.saved == {"impute-1 purged": 4} and report.work["impute-1 queued"] == 0
    assert report.answers["impute-1"][0][0][0].rows == 0 and units == {}
    assert called() == [0, 1, 2, 3, 4, 5, 8, 10]


def test_values_that_the_function_makes_are_no_reason_to_skip_it(sensor: ps.Stream, tmp_path: Path) -> None:
    """What is said of a speed that is yet to be estimated says nothing about the event."""
    _, found = run(sensor.impute(estimate, budget=10, keeps=["ts"]), tmp_path, feedback="not [*, *, 50]")
    assert found == [] and sorted(called()) == list(range(40))


# --- restart ----------------------------------------------------------------------------------------------------------


def test_a_queue_outlives_a_run(sensor: ps.Stream, tmp_path: Path) -> None:
    query = sensor.impute(estimate, budget=6, keeps=["ts"]).window(10).agg(n="count(*)", mean="avg(speed)")
    rows: list[dict[str, Any]] = []
    for _ in range(12):
        rows += [row for _, row in run(query, tmp_path, trigger="once")[1]]
    assert sorted_rows(rows) == [(start, 10, 50.0) for start in (0, 10, 20, 30)]
    assert sorted(called()) == list(range(40))


def test_a_budget_may_change_from_run_to_run(sensor: ps.Stream, tmp_path: Path) -> None:
    first, some = run(sensor.impute(estimate, budget=6), tmp_path, trigger="once")
    second, others = run(sensor.impute(estimate, budget=100), tmp_path)
    assert counts(first, "processed") == [6] and counts(second, "processed") == [34]
    assert sorted(row["ts"] for _, row in (*some, *others)) == list(range(40))


def test_a_function_that_fails_loses_nothing(sensor: ps.Stream, tmp_path: Path) -> None:
    broken = True

    def fill(rows: pa.Table) -> pa.Table:
        if broken and 20 in rows["ts"].to_pylist():
            raise ValueError("no model")
        return estimate(rows)

    query = sensor.impute(fill, budget=8)
    target = ps.memory()
    settings: dict[str, Any] = {"trigger": "available_now", "checkpoint": str(tmp_path / "c"), "buckets": 1}
    with pytest.raises(UserError, match=r"impute-1: function .*fill\(batch\) failed: ValueError: no model"):
        query.start(target, spark=local_session(), **settings).wait()
    assert sorted(row["ts"] for row in target.rows()) == list(range(16))
    broken = False
    rest = ps.memory()
    sensor.impute(fill, budget=8).start(rest, spark=local_session(), **settings).wait()
    assert sorted(row["ts"] for row in rest.rows()) == list(range(16, 40))


def test_a_crash_at_any_step_loses_no_event_and_doubles_none(sensor: ps.Stream, tmp_path: Path) -> None:
    query = sensor.impute(estimate, budget=9, keeps=["ts"], where="speed < 0")
    seen: set[str] = set()

    def pull_the_plug(point: str) -> None:
        kind = re.sub(r"\d{6}", "n", point)
        if kind not in seen:
            seen.add(kind)
            raise Crash(point)

    settings: dict[str, Any] = {"trigger": "available_now", "max_rows": 15, "checkpoint": str(tmp_path / "checkpoint")}
    crashes = 0
    with hooked(pull_the_plug):
        while True:
            try:
                query.start(ps.parquet(str(tmp_path / "out")), spark=local_session(), **settings).wait()
                break
            except Crash:
                crashes += 1
    assert crashes == len(seen) > 5
    found = pq.read_table(tmp_path / "out").to_pylist()
    assert sorted(row["ts"] for row in found) == list(range(40))
    assert [row["speed"] for row in found if row["ts"] % 2] == [50] * 20


def test_the_state_says_what_it_waits_for(sensor: ps.Stream, tmp_path: Path) -> None:
    run(sensor.impute(estimate, budget=6), tmp_path, trigger="once", buckets=1)
    (unit,) = Snapshot.open(str(tmp_path / "checkpoint")).units()
    assert (unit.operator, unit.rows, unit.waits) == ("impute-1", 34, "its turn")
    run(sensor.impute(estimate, budget=6), tmp_path, trigger="once", buckets=1)
    (unit,) = Snapshot.open(str(tmp_path / "checkpoint")).units()
    assert (unit.runs, unit.rows) == (1, 28)


# --- saying it --------------------------------------------------------------------------------------------------------


def test_mistakes_are_told_where_they_are_made(sensor: ps.Stream) -> None:
    with pytest.raises(UserError, match=r"impute: budget=0.*at least 1"):
        sensor.impute(estimate, budget=0)
    with pytest.raises(UserError, match="impute: keeps 'mph', which is not both"):
        sensor.impute(estimate, keeps=["mph"])
    with pytest.raises(UserError, match="impute: 'estimate' is not a function"):
        sensor.impute("estimate")  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"impute\(where=…\): the streams differ"):
        sensor.impute(estimate, "ts int, guess double", where="speed < 0")
    with pytest.raises(UserError, match="unknown column 'spede'"):
        sensor.impute(estimate, where="spede < 0")


def test_null_is_no_reason_to_lose_an_event(tmp_path: Path) -> None:
    write(tmp_path, "1", (1, 1, -1), (2, 1, 5))
    (tmp_path / "in" / "2.json").write_text('{"ts": 3, "segment": 1, "speed": null}\n')
    source = ps.stream("s", SCHEMA, time="ts").read_json(str(tmp_path / "in"))
    _, found = run(source.impute(estimate, where="speed < 0"), tmp_path)
    assert sorted(((row["ts"], row["speed"]) for _, row in found), key=repr) == [(1, 50), (2, 5), (3, None)]


def test_a_plan_says_what_it_does(sensor: ps.Stream) -> None:
    query = sensor.impute(estimate, budget=1500, keeps=["ts"])
    text = query.window(10).agg(n="count(*)").explain(punctuation=True)
    assert (
        "impute-1: estimate(batch), 1,500 an epoch" in text and "state: 1,500 events an epoch leave the queue" in text
    )
    report = query.check()
    (finding,) = (f for f in report.findings if f.operator == "impute-1")
    assert report.safe and (finding.state, finding.output) == ("bounded", "complete")
    assert finding.assumes == ("sensor brings it no more than 1,500 events an epoch in the long run",)
    assert report.edges["impute-1"] == "ts up to"
