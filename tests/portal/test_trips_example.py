"""The trips of the example: what the files say, and that a join of them keeps only trips on the road."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import duckdb
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from penstock.portal.testing import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
HOURS = 30


@pytest.fixture(scope="module")
def trips() -> Iterator[ModuleType]:
    """The generator of the trips, found as the example finds it."""
    sys.path.append(str(ROOT))
    try:
        from benchmarks import trips as found

        yield found
    finally:
        sys.path.remove(str(ROOT))


@pytest.fixture(scope="module")
def data(trips: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = trips.write(trips.Trips(epochs=HOURS // 2, hours=2, rate=60), tmp_path_factory.mktemp("trips"))
    return made


@pytest.fixture(scope="module")
def example(trips: ModuleType) -> ModuleType:
    spec = importlib.util.spec_from_file_location("trips_example", ROOT / "examples" / "trips.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_event_follows_its_punctuation(data: Path) -> None:
    for side in ("starts", "ends"):
        over: set[str] = set()
        for path in sorted((data / side).glob("*.parquet")):
            for row in pq.read_table(path, columns=["trip", "punctuation"]).to_pylist():
                if row["punctuation"] is not None:
                    over.add(row["punctuation"])
                else:
                    assert f"[{row['trip']}, *, *, *]" not in over


def test_files_of_all_epochs_are_of_one_size(trips: ModuleType, data: Path) -> None:
    sizes = {pq.read_metadata(p).num_rows for p in data.rglob("*.parquet")}
    assert sizes == {trips.Trips(hours=2, rate=60).rows}


def test_events_are_no_later_than_declared_and_no_trip_is_longer(trips: ModuleType, data: Path) -> None:
    longest = duckdb.sql(
        f"SELECT max(e.ts - s.ts) <= INTERVAL '{trips.LONGEST_HOURS}' HOUR AND min(e.ts - s.ts) >= INTERVAL 1 MINUTE "
        f"FROM '{data}/starts/*.parquet' s JOIN '{data}/ends/*.parquet' e USING (trip)"
    ).fetchall()
    assert longest == [(True,)]
    for side in ("starts", "ends"):
        newest = None
        for path in sorted((data / side).glob("*.parquet")):
            for ts in pq.read_table(path, columns=["ts"])["ts"].drop_null().to_pylist():
                newest = ts if newest is None else max(newest, ts)
                assert (newest - ts).total_seconds() <= trips.SLACK_MINUTES * 60


def test_a_join_of_trips_keeps_the_ones_on_the_road(
    trips: ModuleType, example: ModuleType, data: Path, tmp_path: Path
) -> None:
    held: list[int] = []
    made = trips.Trips(epochs=HOURS // 2, hours=2, rate=60)
    example.run_penstock(local_session(), data, tmp_path, made, held.append)
    started_not_ended = []
    for epoch in range(made.epochs):
        names = [f"{e:04d}.parquet" for e in range(epoch + 1)]
        files = {side: str([str(data / side / n) for n in names]) for side in ("starts", "ends")}
        open_trips = duckdb.sql(
            f"SELECT count(*) FROM read_parquet({files['starts']}) s WHERE trip IS NOT NULL AND trip NOT IN "
            f"(SELECT trip FROM read_parquet({files['ends']}) WHERE trip IS NOT NULL)"
        ).fetchall()
        started_not_ended.append(open_trips[0][0])
    # An end can be known before its start: it waits for one epoch at most, there are few of them.
    assert len(held) == made.epochs
    assert all(0 <= h - n <= 5 for h, n in zip(held, started_not_ended, strict=True))
    count, _ = example.results(tmp_path)
    everything = duckdb.sql(
        f"SELECT count(*) FROM '{data}/starts/*.parquet' JOIN '{data}/ends/*.parquet' USING (trip)"
    ).fetchall()
    assert count == everything[0][0]


@pytest.mark.spark
def test_structured_streaming_holds_more_every_epoch(
    spark: SparkSession, trips: ModuleType, example: ModuleType, tmp_path: Path
) -> None:
    made = trips.Trips(epochs=3, hours=2, rate=60)
    told = StringIO()
    held = example.print_comparison(made, tmp_path, Console(file=told, width=120), spark)
    ours, watermark, forever = (held[n] for n in (example.PENSTOCK, example.WATERMARK, example.FOREVER))
    assert len(ours) == len(watermark) == len(forever) == made.epochs
    assert forever == [2 * made.events * (n + 1) for n in range(made.epochs)]
    # After the first epoch ends go again, but starts stay for a day.
    assert watermark[-1] > watermark[-2] and watermark[-1] >= made.events * made.epochs
    assert max(ours) < made.events / 2
    assert "the same" in told.getvalue() and (tmp_path / "trips_state.png").stat().st_size > 0
