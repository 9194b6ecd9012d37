"""What a run measures of itself: every row is counted where it comes and goes, also beyond a restart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import penstock as ps
from penstock.feedback.consumer import Consumer
from penstock.portal.explain_run import explain_json, explain_run
from penstock.portal.testing import local_session


def lines(rows: range) -> str:
    return "".join(json.dumps({"ts": ts, "lane": ts % 4, "speed": 40}) + "\n" for ts in rows)


@pytest.fixture
def counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ps.Stream:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("in/0.json").write_text(lines(range(100)))
    cars = ps.stream("cars", "ts int, lane int, speed int", time="ts").read_json("in", order="name").disorder(0)
    return cars.where("lane < 3").window(10).group_by("lane").agg(n="count(*)")


def run(query: ps.Stream) -> ps.Run:
    return query.start(ps.parquet("out"), trigger="available_now", max_rows=30, spark=local_session()).wait()


def test_rows_are_counted_on_every_edge(counts: ps.Stream) -> None:
    first = run(counts)
    Path("in/1.json").write_text(lines(range(100, 160)))
    second = run(counts)
    assert first.progress is not None and second.progress is not None
    operators = second.progress.to_json()["statistics"]["operators"]
    assert operators["source:cars"]["rows_in"] == operators["source:cars"]["rows_out"] == 160
    assert operators["aggregate-1#0"]["rows_in"] == 160
    # Every result was a group that has come and gone; the last windows are not complete.
    assert operators["aggregate-1"]["rows_out"] == second.progress.total_rows_out == 45
    assert operators["sink-1#0"]["rows_in"] == 45
    assert all(o["cpu_seconds"] > 0 for o in operators.values())
    # What was found by the first run counts for the second.
    assert first.progress.measured.epochs < second.progress.measured.epochs == second.progress.epoch


def test_explain_shows_them_at_the_operators(counts: ps.Stream) -> None:
    run(counts)
    consumer = Consumer.at("out")
    text = explain_run(consumer)
    assert "measured: 100 rows in, 100 out (1 per row)" in text
    assert "measured on the way to input 0: 100 rows in" in text
    assert "waiting to be read: " in text
    told = explain_json(consumer)
    assert told["operators"]["aggregate-1"]["measured"]["aggregate-1"]["rows_out"] == 27
    assert told["measured"]["sources"]["source:cars"]["rows_per_second"] > 0


def test_what_waits_is_known_in_rows_and_bytes(counts: ps.Stream) -> None:
    Path("in/1.json").write_text(lines(range(100, 200)))
    done = run(counts)
    source = done.driver.readers["source:cars"]
    assert (source.backlog().rows, source.backlog().bytes) == (0, 0)
    Path("in/2.json").write_text(lines(range(200, 300)))
    size = Path("in/2.json").stat().st_size
    source.fix()
    source.plan(10, None, 1, True)
    waiting = source.backlog()
    assert waiting.rows is not None and 80 <= waiting.rows <= 95
    assert 0 < waiting.bytes < size
    assert waiting.seconds >= 0
