"""Joins that run for ever: what they hold, in rows, runs, files and promises, does not grow with what has gone by."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.portal.testing import local_session

QUICK, LONG = 100, 320
"""Epochs of a run: always, and with `make fuzz`, which runs all cases."""
ROWS = 16
"""Rows of each stream in an epoch, punctuations included."""
EACH = 4
"""Rows of each trip in each stream: the last is the punctuation that it is over, where streams punctuate."""
OPEN = 12
"""So many seconds a trip takes; one begins every second."""
SECOND = 1_000_000
SIDES = ("starts", "ends")
#: What is measured, and how much more of it is chance, or numbers that have more digits.
MEASURES = {"rows": 10, "runs": 2, "files": 6, "manifest": 500}


@dataclass(frozen=True)
class Held:
    """What a run holds after an epoch."""

    rows: int
    runs: int
    files: int
    manifest: int


@pytest.fixture
def home() -> Iterator[Path]:
    """In memory where there is such a folder: hundreds of epochs flush thousands of files."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-endless-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    yield folder
    shutil.rmtree(folder)


def keys(kind: str, count: int) -> pa.Array:
    """Trips numbered as they come, or named without any order."""
    if kind == "serial":
        return pa.array(np.arange(count), pa.int64())
    rng = np.random.default_rng(1)
    return pa.array([f"{n:016x}" for n in rng.integers(0, 1 << 62, count)])


def cases(quick: set[tuple[str, ...]], *choices: Iterable[str]) -> list[object]:
    """All combinations for long runs, and some of them for quick ones."""
    long = [pytest.param(*case, LONG, marks=[pytest.mark.fuzz, pytest.mark.timeout(900)]) for case in product(*choices)]
    return [*(pytest.param(*case, QUICK) for case in sorted(quick)), *long]


def write(home: Path, kind: str, epochs: int, *, each: int = EACH, punctuated: bool = False, late: float = 0.0) -> None:
    """Trips that begin one after the other and take about equally long; the events of those under way mix."""
    count = epochs * ROWS // each
    names = keys(kind, count)
    quote = "'" if pa.types.is_string(names.type) else ""
    for seed, side in enumerate(SIDES):
        rng = np.random.default_rng(seed)
        trip = np.repeat(np.arange(count), each)
        at = trip + rng.uniform(0, OPEN, len(trip))
        order = np.argsort(at + rng.uniform(0, late, len(trip)) if late else at)
        trip, at = trip[order], at[order]
        named = names.take(pa.array(trip))
        columns = {
            "ts": pa.array((at * SECOND).astype(np.int64), pa.timestamp("us")),
            "trip": named,
            "value": pa.array(rng.integers(0, 9, len(trip)), pa.int64()),
        }
        if punctuated:
            last = np.zeros(len(trip), dtype=np.bool_)
            last[len(trip) - 1 - np.unique(trip[::-1], return_index=True)[1]] = True
            told = [f"[*, {quote}{n}{quote}, *]" if over else None for n, over in zip(named.to_pylist(), last)]
            columns["punctuation"] = pa.array(told, pa.string())
        (home / side).mkdir()
        # One file: of how many files a source has read it keeps a list, which is no matter of joins.
        pq.write_table(pa.table(columns), home / side / "all.parquet", row_group_size=ROWS * 20)


def sources(home: Path, kind: str) -> list[ps.Stream]:
    schema = f"ts timestamp, trip {'bigint' if kind == 'serial' else 'string'}, value bigint"
    return [ps.stream(side, schema, time="ts").read_parquet(str(home / side)) for side in SIDES]


def run(query: ps.Stream, home: Path) -> list[Held]:
    """What is held after each epoch."""
    seen: list[Held] = []
    checkpoint = home / "checkpoint"

    def note(progress: ps.Progress) -> None:
        files = sum(len(names) for _, _, names in os.walk(checkpoint))
        manifest = (checkpoint / "epochs" / f"{progress.epoch:06d}.commit.json").stat().st_size
        seen.append(Held(progress.state_rows, progress.state_runs, files, manifest))

    query.start(
        ps.parquet(str(home / "out")),
        trigger="available_now",
        checkpoint=str(checkpoint),
        spark=local_session(),
        max_rows=ROWS,
        buckets=1,
        listener=note,
    ).wait()
    return seen


def assert_bounded(seen: list[Held], *measures: str) -> None:
    """The most of the end is no more than that of the beginning. Some lists fill and are emptied every 32 epochs."""
    part = len(seen) * 2 // 5
    early, late = seen[:part], seen[-part:]
    assert part > 32
    for what in measures or MEASURES:
        before, after = (max(getattr(h, what) for h in part) for part in (early, late))
        limit = 1.08 * before + MEASURES[what]
        assert after <= limit, f"{what}: {before} in the beginning, {after} in the end"


def assert_results(home: Path, wanted: str) -> None:
    """The results are, as a bag, what a query over everything at once says."""
    with duckdb.connect() as batch:
        for side in SIDES:
            batch.execute(f"CREATE VIEW {side} AS FROM read_parquet('{home / side / 'all.parquet'}')")
        batch.execute(f"CREATE VIEW found AS FROM read_parquet('{home / 'out' / 'part-*'}')")
        assert (
            batch.sql(f"(FROM found EXCEPT ALL {wanted}) UNION ALL ({wanted} EXCEPT ALL FROM found)").fetchall() == []
        )
        assert batch.sql("SELECT count(*) FROM found").fetchall() > [(QUICK,)]


JOINED = """(SELECT s.trip, s.ts, s.value, e.ts AS ts_right, e.value AS value_right
    FROM (FROM starts {starts}) s {how} JOIN (FROM ends {ends}) e ON s.trip = e.trip)"""


@pytest.mark.parametrize(("kind", "how", "epochs"), cases({("named", "left")}, ("serial", "named"), ("inner", "left")))
def test_trips_that_end(home: Path, kind: str, how: str, epochs: int) -> None:
    write(home, kind, epochs, punctuated=True)
    # Names are remembered one by one, to catch events that come after their trip: as many as were asked for.
    starts, ends = (s.punctuated(remember=100) for s in sources(home, kind))
    seen = run(starts.join(ends.where("value > 4"), "trip", how), home)
    told = "WHERE punctuation IS NULL"
    assert_results(home, JOINED.format(how=how, starts=told, ends=f"{told} AND value > 4"))
    assert seen[-1].rows == 0
    assert_bounded(seen)


@pytest.mark.parametrize(("kind", "epochs"), cases({("serial",)}, ("serial", "named")))
def test_behind_a_join(home: Path, kind: str, epochs: int) -> None:
    """What a join says of trips empties duplicate elimination and closes groups, and need not be remembered there."""
    write(home, kind, epochs, punctuated=True)
    starts, ends = (s.punctuated(remember=100) for s in sources(home, kind))
    pairs = starts.join(ends, "trip", "left").select("trip", "value", "value_right").distinct()
    seen = run(pairs.group_by("trip").agg(n="count(*)"), home)
    told = "WHERE punctuation IS NULL"
    joined = JOINED.format(how="left", starts=told, ends=told)
    distinct = f"(SELECT DISTINCT trip, value, value_right FROM {joined})"
    assert_results(home, f"(SELECT trip, count(*) AS n FROM {distinct} GROUP BY trip)")
    assert seen[-1].rows == 0
    assert_bounded(seen)


@pytest.mark.parametrize(("kind", "epochs"), cases({("serial",)}, ("serial", "named")))
def test_trips_that_come_once(home: Path, kind: str, epochs: int) -> None:
    write(home, kind, epochs, each=1)
    starts, ends = (s.punctuate(ps.Punctuate.once("trip", remember=100)) for s in sources(home, kind))
    seen = run(starts.join(ends, "trip"), home)
    assert_results(home, JOINED.format(how="", starts="", ends=""))
    assert seen[-1].rows == 0
    assert_bounded(seen)


@pytest.mark.parametrize(("kind", "epochs"), cases({("named",)}, ("serial", "named")))
def test_trips_that_are_over_when_nothing_has_come_for_long(home: Path, kind: str, epochs: int) -> None:
    write(home, kind, epochs, late=3.0)
    over = ps.Punctuate.after("trip", f"{OPEN} s", remember=100)
    starts, ends = (s.disorder("3 s").punctuate(over) for s in sources(home, kind))
    seen = run(starts.join(ends, "trip"), home)
    assert_results(home, JOINED.format(how="", starts="", ends=""))
    assert_bounded(seen)


@pytest.mark.parametrize(("how", "epochs"), cases({("left",)}, ("inner", "left")))
def test_a_window_of_time(home: Path, how: str, epochs: int) -> None:
    write(home, "serial", epochs, late=3.0)
    starts, ends = (s.disorder("3 s").ends().with_columns(trip="trip % 7") for s in sources(home, "serial"))
    seen = run(starts.join(ends, "trip", how, within="5 s"), home)
    key = "SELECT ts, trip % 7 AS trip, value"
    wanted = f"""(SELECT s.trip, s.ts, s.value, e.ts AS ts_right, e.value AS value_right
        FROM ({key} FROM starts) s {how} JOIN ({key} FROM ends) e
        ON s.trip = e.trip AND e.ts BETWEEN s.ts - INTERVAL 5 SECOND AND s.ts + INTERVAL 5 SECOND)"""
    assert_results(home, wanted)
    assert_bounded(seen)


@pytest.mark.parametrize("how", ["left", "full", "anti"])
def test_a_trip_that_ends_with_its_last_event(tmp_path: Path, how: str) -> None:
    """Its other stream had ended it before. The event has no partner, which is told at once, and nothing is kept."""
    told = {
        "starts": [(None, "[*, 1, *]"), (1, None), (2, None), (None, "[*, 2, *]")],
        "ends": [(3, None), (None, "[*, 2, *]"), (3, None), (None, "[*, 1, *]")],
    }
    for side, rows in told.items():
        (tmp_path / side).mkdir()
        columns = {
            "ts": pa.array([0] * len(rows), pa.timestamp("us")),
            "trip": pa.array([trip for trip, _ in rows], pa.int64()),
            "value": pa.array([0] * len(rows), pa.int64()),
            "punctuation": pa.array([p for _, p in rows], pa.string()),
        }
        pq.write_table(pa.table(columns), tmp_path / side / "all.parquet")
    starts, ends = (s.punctuated() for s in sources(tmp_path, "serial"))
    sink, held = ps.memory(), []
    query = starts.join(ends, "trip", how)
    query.start(
        sink, trigger="available_now", spark=local_session(), max_rows=2, listener=lambda p: held.append(p.state_rows)
    ).wait()
    assert [r["trip"] for r in sink.rows()] == [2]
    assert held[-1] == 2  # Trip 3, which nobody has ended.
