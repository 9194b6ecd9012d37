"""Whole queries over sources that punctuate: answers come as keys end, and violators are set aside."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import penstock as ps
from penstock.plan.policy import Measured, Punctuate
from penstock.portal.testing import local_session

START = datetime(2026, 1, 1)


def write(folder: Path, rows: list[tuple[int, int]], files: int = 4) -> None:
    size = -(-len(rows) // files)
    for i in range(files):
        part = rows[i * size : (i + 1) * size]
        table = {
            "ts": [START + timedelta(seconds=t) for t, _ in part],
            "trip": pa.array([k for _, k in part], pa.int32()),
        }
        pq.write_table(pa.table(table), folder / f"{i}.parquet")


def trips(folder: Path) -> ps.Stream:
    return ps.stream("trips", "ts timestamp, trip int", time="ts").read_parquet(str(folder), order="name")


def test_groups_are_answered_when_their_key_is_over(tmp_path: Path) -> None:
    # Trip k has events at 10 k, 10 k + 5 and 10 k + 12; the last of trip 1 comes again much later.
    rows = sorted((10 * k + d, k) for k in range(20) for d in (0, 5, 12))
    write(tmp_path, [*rows, (203, 1)])
    known = trips(tmp_path).disorder("2 s").punctuate(Punctuate.after("trip", "30 s"))
    sink = ps.memory()
    run = (
        known.group_by("trip").agg(n="count(*)").start(sink, trigger="available_now", spark=local_session(), max_rows=9)
    )
    run.wait()
    found = {r["trip"]: r["n"] for r in (sink.table() or pa.table({})).to_pylist()}
    # Time is complete up to 201 in the end: trips whose last event is older than 171 are over.
    assert found == dict.fromkeys(range(16), 3)
    (letter,) = run.dead_letters().to_pylist()
    assert (letter["reason"], letter["detail"]) == ("late", "[*, 1]")


def test_a_key_that_comes_once_is_answered_at_once(tmp_path: Path) -> None:
    write(tmp_path, [(k, k % 30) for k in range(40)])
    known = trips(tmp_path).punctuate(Punctuate.once("trip"))
    sink = ps.memory()
    run = known.group_by("trip").agg(n="count(*)").start(sink, trigger="available_now", spark=local_session())
    run.wait()
    assert sorted(r["trip"] for r in (sink.table() or pa.table({})).to_pylist()) == list(range(30))
    assert run.dead_letters().num_rows == 10


def test_a_measured_disorder_closes_windows(tmp_path: Path) -> None:
    write(tmp_path, [(t - (3 if t % 5 == 0 else 0), 0) for t in range(3, 400)], files=8)
    known = trips(tmp_path).disorder(Measured(at_most="1 h", quantile=1.0, warm_up=100))
    sink = ps.memory()
    run = (
        known.window("10 s")
        .agg(n="count(*)")
        .start(sink, trigger="available_now", spark=local_session(), max_rows=50, overlap=False)
    )
    run.wait()
    answered = (sink.table() or pa.table({})).num_rows
    assert 30 <= answered <= 40  # with a slack of an hour there would be no answer at all
    assert run.dead_letters().num_rows == 0
