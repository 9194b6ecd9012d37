"""Labels in SQL against the closed form in Python."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import UserError
from penstock.kernels.duck import query
from penstock.operators.window.kernel import bucket_sql
from penstock.pattern.schema import Schema
from penstock.plan.window import TimeWindow, Window, from_tick, to_tick

SCHEMAS = {
    "us": Schema.parse("t timestamp, v int", time="t"),
    "day": Schema.parse("t date, v int", time="t"),
    "unit": Schema.parse("t bigint, v int", time="t"),
}


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(["us", "day", "unit"]),
    st.integers(1, 12),
    st.integers(1, 12),
    st.integers(-20, 20),
    st.lists(st.one_of(st.none(), st.integers(-50, 50)), max_size=12),
)
def test_one_row_per_event_and_window(unit: str, size: int, slide: int, origin: int, ticks: list[int | None]) -> None:
    schema = SCHEMAS[unit]
    window = TimeWindow("t", size, slide, origin, 1, unit)  # type: ignore[arg-type]
    times = [None if t is None else from_tick(t, window.unit) for t in ticks]
    events = pa.table({"t": times, "v": list(range(len(ticks)))}, schema=schema.arrow)
    got = query(bucket_sql("SELECT * FROM events", window), events=events)
    assert got.schema.field("window_start").type == window.label_type(schema)
    expected = [
        (v, window.start(w))
        for v, t in enumerate(ticks)
        if t is not None
        for w in range((t - window.origin - window.size) // window.slide + 1, (t - window.origin) // window.slide + 1)
    ]
    rows = zip(got["v"].to_pylist(), got["window_start"].to_pylist())
    assert sorted((v, to_tick(label, window.unit)) for v, label in rows) == expected


def test_golden_minutes_of_feedback_and_contracts() -> None:
    schema = Schema.parse("ts timestamp, who string", time="ts")
    begin = datetime(2010, 4, 1, 10)
    times = [begin + timedelta(seconds=s) for s in (0, 30, 60, 90)]
    events = pa.table({"ts": times, "who": ["a", "b", "b", "a"]}, schema=schema.arrow)
    got = query(bucket_sql("SELECT * FROM events", Window.tumbling("1 min").resolve(schema)), events=events)
    minutes = [(label - begin) // timedelta(minutes=1) + 1 for label in got["window_start"].to_pylist()]
    assert list(zip(minutes, got["who"].to_pylist())) == [(1, "a"), (1, "b"), (2, "b"), (2, "a")]


def test_before_1970() -> None:
    schema = SCHEMAS["day"]
    events = pa.table({"t": [date(1969, 12, 31)], "v": [1]}, schema=schema.arrow)
    got = query(bucket_sql("SELECT * FROM events", Window.tumbling(7).resolve(schema)), events=events)
    assert got["window_start"].to_pylist() == [date(1969, 12, 25)]


def test_no_labels_without_an_aggregate() -> None:
    for window in (Window.count(3), Window.landmark(5)):
        with pytest.raises(UserError, match="group_by"):
            bucket_sql("SELECT 1", window.resolve(SCHEMAS["unit"]))


@pytest.mark.parametrize("window", [Window.tumbling(10, granularity=5), Window.sliding(10, 5, granularity=5)])
def test_a_time_off_the_declared_grid_is_an_error(window: TimeWindow) -> None:
    schema = SCHEMAS["unit"]
    sql = bucket_sql("SELECT * FROM events", window.resolve(schema))
    on = pa.table({"t": [-5, 0, 15, None], "v": [1, 2, 3, 4]}, schema=schema.arrow)
    assert set(query(sql, events=on)["v"].to_pylist()) == {1, 2, 3}
    off = pa.table({"t": [15, 17], "v": [1, 2]}, schema=schema.arrow)
    with pytest.raises(UserError, match="off the grid"):
        query(sql, events=off)
