"""The data of the feedback benchmark has the published counts, and its files lend themselves to being skipped."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Schema

sys.path.append(str(Path(__file__).parents[1]))  # The benchmarks are beside the package, not in it.
from benchmarks.feedback_suites.traffic import DAY, PROBE, SENSOR, Traffic, minute, write


def ask(sql: str) -> tuple[Any, ...]:
    with duckdb.connect() as db:
        db.sql("SET TimeZone = 'UTC'")
        (row,) = db.sql(sql).fetchall()
    return tuple(row)


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(Traffic(file_minutes=60, group_minutes=60, told=True), tmp_path_factory.mktemp("day"))


def test_a_day_of_sensors(day: Path) -> None:
    found = ask(f"""
        SELECT count(sensor_id), count(punctuation), count(DISTINCT sensor_id), count(DISTINCT ts),
               min(ts)::VARCHAR, max(ts)::VARCHAR, count(*) FILTER (occupancy > 20), count(*) FILTER (speed > 20)
        FROM '{day}/sensor/*.parquet'""")
    assert found[:4] == (648_000, 1_440, 150, 4_320)
    assert found[4:6] == ("2010-02-15 09:00:00+00", "2010-02-16 08:59:40+00")
    assert found[6:] == (514_421, 505_481)


def test_every_sensor_reports_three_times_a_minute(day: Path) -> None:
    found = ask(f"""
        SELECT min(n), max(n), count(*) FROM (
          SELECT date_trunc('minute', ts), sensor_id, count(*) AS n FROM '{day}/sensor/*.parquet'
          WHERE punctuation IS NULL GROUP BY ALL)""")
    assert found == (3, 3, 1_440 * 150)


def test_a_day_of_probes(day: Path) -> None:
    found = ask(f"""
        SELECT count(probe_id), count(punctuation), count(DISTINCT probe_id), count(DISTINCT ts)
        FROM '{day}/probe/*.parquet'""")
    assert found == (14_400, 14_400, 50, 1_440)
    fewest = ask(f"SELECT min(n), max(n) FROM (SELECT count(*) n FROM '{day}/probe/*.parquet' GROUP BY probe_id, "
                 "punctuation IS NULL) WHERE n < 14400")  # fmt: skip
    assert fewest == (288, 288)


def test_locations(day: Path) -> None:
    found = ask(f"""
        SELECT count(*), count(DISTINCT freeway_id), count(DISTINCT (freeway_id, milepost)), count(DISTINCT sensor_id)
        FROM '{day}/location.parquet'""")
    assert found == (150, 5, 50, 150)
    assert ask(
        f"SELECT count(*) FROM '{day}/sensor/*.parquet' SEMI JOIN '{day}/location.parquet' USING (sensor_id)"
    ) == (648_000,)


def test_half_of_twelve_hours_is_dirty(tmp_path: Path) -> None:
    folder = write(Traffic(minutes=720, file_minutes=60, group_minutes=60, dirty=True, told=True), tmp_path)
    found = ask(f"""
        SELECT count(sensor_id), count(punctuation), count(*) FILTER (speed = -1) FROM '{folder}/sensor/*.parquet'""")
    assert found == (324_000, 720, 162_000)


def test_the_same_reports_with_and_without_records_of_punctuation(day: Path, tmp_path: Path) -> None:
    plain = write(Traffic(file_minutes=60, group_minutes=10), tmp_path)
    for name, schema in (("sensor", SENSOR), ("probe", PROBE)):
        columns = ", ".join(Schema.parse(schema).names)
        sql = "SELECT count(*), sum(hash({})) FROM '{}/{}/*.parquet' WHERE speed IS NOT NULL"
        assert ask(sql.format(columns, day, name)) == ask(sql.format(columns, plain, name))


@pytest.mark.parametrize("told", [False, True])
def test_punctuations_promise_what_the_rest_keeps(tmp_path: Path, told: bool) -> None:
    """Row by row, in file order: no report matches a punctuation before it, every report matches one after it."""
    folder = write(Traffic(minutes=6, told=told), tmp_path)
    for name, text, expected in (("sensor", SENSOR, 6 if told else 0), ("probe", PROBE, 60 if told else 0)):
        schema = Schema.parse(text, "ts")
        files = sorted((folder / name).glob("*.parquet"))
        assert len(files) == 6
        rows = [r for f in files for r in pq.read_table(f).to_pylist()]
        before: list[Pattern] = []
        waiting: list[dict[str, Any]] = []
        for row in rows:
            if (said := row.get("punctuation")) is not None:
                pattern = Pattern.parse(said, schema)
                before.append(pattern)
                waiting = [e for e in waiting if not pattern.matches_row(e)]
            else:
                event = {n: row[n] for n in schema.names}
                assert not any(p.matches_row(event) for p in before)
                waiting.append(event)
        assert len(before) == expected
        assert waiting == [] or not expected


@pytest.mark.parametrize("told", [False, True])
def test_row_groups_follow_one_another_in_time(tmp_path: Path, told: bool) -> None:
    folder = write(Traffic(minutes=20, file_minutes=10, group_minutes=2, told=told), tmp_path)
    ends: list[Any] = []
    for path in sorted((folder / "sensor").glob("*.parquet")):
        metadata = pq.ParquetFile(path).metadata
        at = metadata.schema.to_arrow_schema().get_field_index("ts")
        for group in range(metadata.num_row_groups):
            column = metadata.row_group(group).column(at)
            if metadata.row_group(group).num_rows > 1:
                assert not ends or column.statistics.min > ends[-1]
                ends.append(column.statistics.max)
    assert len(ends) == (20 if told else 10)


def test_minutes_in_words() -> None:
    assert minute(0) == "2010-02-15 09:00:00"
    assert minute(DAY) == "2010-02-16 09:00:00"
    with pytest.raises(ValueError, match="come out even"):
        Traffic(minutes=10, file_minutes=3)
