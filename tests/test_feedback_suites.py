"""The queries of the feedback benchmark, on ten minutes of traffic: what feedback leaves over is known in advance."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

import penstock as ps
from penstock.portal.testing import local_session

sys.path.append(str(Path(__file__).parents[1]))  # The benchmarks are beside the package, not in it.
from benchmarks.feedback import expected
from benchmarks.feedback_suites.expensive import Tap
from benchmarks.feedback_suites.queries import LEVELS, build
from benchmarks.feedback_suites.traffic import Traffic, minute, write
from benchmarks.feedback_suites.turn import run

MINUTES, UNWANTED = 10, 4
WHOLE = MINUTES * 450


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write(Traffic(MINUTES, 5, 1), tmp_path_factory.mktemp("traffic")))


def answer(suite: str, plan: str, mode: str, data: str, **more: Any) -> dict[str, Any]:
    job = {"suite": suite, "plan": plan, "mode": mode, "data": data, "rows": 2 * 450, **more}
    return run(local_session(), job)


@pytest.mark.parametrize("level", LEVELS)
def test_how_far_upstream(data: str, level: str) -> None:
    found = answer("4", level, "told", data, tapped=True, unwanted=UNWANTED)
    assert found["operators"] == expected(level, MINUTES, UNWANTED)
    less = UNWANTED * 450 if level == "scan" else 0
    assert found["read"] == {"one": WHOLE - less, "two": WHOLE - less}
    assert found["saved"].get("source:one never read", 0) == less


@pytest.mark.parametrize("level", LEVELS[1:])
@pytest.mark.parametrize("after", [1, 4])
def test_what_is_said_late_is_of_less_use(data: str, tmp_path: Path, level: str, after: int) -> None:
    """A minute an epoch. What is said after some of them spares the work of the others that nobody wants, no more."""
    unwanted = 6
    taps, checkpoint = tmp_path / "taps", str(tmp_path / "checkpoint")
    taps.mkdir()
    question = build({"suite": "4", "plan": level, "data": data, "unwanted": unwanted, "taps": str(taps)})

    def listen(progress: ps.Progress) -> None:
        if progress.epoch == after:
            for text in question.feedback:
                ps.consumer(checkpoint).ignore(text.removeprefix("not "))

    target = ps.memory()
    settings = {"max_rows": 450, "overlap": False, "trigger": "available_now", "spark": local_session()}
    run = question.query.start(target, checkpoint=checkpoint, listener=listen, **settings).wait()
    with duckdb.connect() as db:
        db.sql("SET TimeZone = 'UTC'")
        means = db.sql(f"""
            SELECT strftime(date_trunc('minute', ts), '%Y-%m-%d %H:%M:%S'), avg(speed)
            FROM '{data}/sensor/*.parquet' GROUP BY 1""").fetchall()
    # The next minute would have completed the last one that was read: it is open still, and goes. The others are whole.
    kept = {minute(n) for n in (*range(after - 1), *range(unwanted, MINUTES))}
    came = {f"{row['window_start']:%Y-%m-%d %H:%M:%S}": row["mean"] for row in target.rows()}
    assert came == {at: pytest.approx(mean) for at, mean in means if at in kept} and len(came) == len(kept)
    less, reached = WHOLE - (unwanted - after) * 450, LEVELS.index(level)
    counts = {"BUCKET": less if reached >= 2 else WHOLE, "JOIN": less if reached >= 3 else WHOLE}
    assert Tap.counts(str(taps)) == counts
    read = {name: sum(p.read.get(name, 0) for p in run.history) for name in ("one", "two")}
    assert set(read.values()) == {less if level == "scan" else WHOLE}


def test_filters_of_one_minute(data: str) -> None:
    with duckdb.connect() as db:
        db.sql("SET TimeZone = 'UTC'")
        ((crowded, moving),) = db.sql(f"""
            SELECT count(*) FILTER (occupancy > 20), count(*) FILTER (speed > 20)
            FROM '{data}/sensor/*.parquet' WHERE ts < '{minute(1)}'""").fetchall()
    found = answer("5", "1", "told", data, tapped=True)
    assert found["operators"] == {
        "SELECT (occupancy)": crowded,
        "SELECT (speed)": moving,
        "UNION": crowded + moving,
    }
    assert found["read"] == {"one": 450, "two": 450}


def test_highest_speeds_of_one_station(data: str) -> None:
    assert answer("5", "2", "silent", data)["rows_out"] == MINUTES * 50
    found = answer("5", "2", "told", data, tapped=True)
    assert found["operators"] == {"JOIN": 63, "BUCKET": 63, "MAX": 7}
    assert found["read"] == {"sensor": 7 * 450}


def test_averages_of_two_minutes(data: str) -> None:
    assert answer("5", "3", "silent", data)["rows_out"] == MINUTES
    found = answer("5", "3", "told", data, tapped=True)
    counts = {"BUCKET (sensor)": 900, "BUCKET (probe)": 20, "AVERAGE (sensor)": 2, "AVERAGE (probe)": 2, "JOIN": 2}
    assert found["operators"] == counts
    assert found["read"] == {"sensor": 900, "probe": 20}


@pytest.mark.parametrize(("suite", "plan"), [("1", "a"), ("1", "b"), ("1", "c"), ("2", "1"), ("2", "5")])
def test_useless_feedback_changes_nothing(data: str, suite: str, plan: str) -> None:
    silent, told = answer(suite, plan, "silent", data), answer(suite, plan, "told", data, useless=5)
    assert silent["rows_out"] == told["rows_out"] == (MINUTES if suite == "1" else WHOLE)
    assert told["guards"] > 0
    assert silent["read"] == told["read"]


def test_useful_work(tmp_path: Path) -> None:
    """A quarter of what the function is asked for is within its means, and what is late by five minutes is useless."""
    data = str(write(Traffic(MINUTES, MINUTES, MINUTES, dirty=True), tmp_path))
    dirty = WHOLE // 2
    ample = answer("3", "a", "told", data, budget=450, micros=1)
    assert (ample["calls"], ample["useful"], ample["rows_out"]) == (dirty, WHOLE, WHOLE)
    union, paced, told = (answer("3", plan, "told", data, budget=112, micros=1) for plan in "abc")
    assert union["calls"] == paced["calls"] == dirty > told["calls"]
    assert union["rows_out"] == WHOLE > union["useful"]
    assert paced["rows_out"] == paced["useful"] == union["useful"]
    assert told["rows_out"] == told["useful"] > paced["useful"]
    assert told["calls"] == told["useful_imputed"]
