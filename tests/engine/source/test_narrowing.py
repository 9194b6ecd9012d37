"""Nothing is narrowed on the way in: a value that the declared type cannot hold is a dead letter, in every format."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.engine.source import Batch, open_reader, read
from penstock.engine.source.formats.fit import convert
from penstock.operators.source.operator import Source
from penstock.pattern.schema import Schema
from penstock.plan.promise import Disorder, Files
from penstock.portal.testing import local_session

STAMP = Schema.parse("id int, ts timestamp")


def batch(path: Path, schema: Schema, fmt: Any = "parquet", **options: Any) -> Batch:
    source = Source((), schema, name="s", reader=Files(str(path), fmt, options=tuple(options.items())))
    (split,) = open_reader(source).plan(None, None, 1, settled=True)
    return read(split, schema, options=options)


def parquet(tmp_path: Path, column: pa.Array, declared: str, **more: Any) -> tuple[list[Any], list[str]]:
    """What is let in of a column, and why the rest is not."""
    table = pa.table({"id": pa.array(range(len(column)), pa.int32()), "x": column})
    pq.write_table(table, tmp_path / "a.parquet", **more)
    found = batch(tmp_path, Schema.parse(f"id int, x {declared}"))
    return found.table["x"].to_pylist(), found.malformed["detail"].to_pylist()


FINE = [1_000, 1_001, -1_000, -1, None, 5_000_000]


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_nanoseconds_of_parquet_are_kept_or_set_aside(tmp_path: Path, zone: str | None) -> None:
    kept, why = parquet(tmp_path, pa.array(FINE, pa.timestamp("ns", zone)), "timestamp")
    epoch = datetime(1970, 1, 1)
    assert [None if k is None else (k - epoch) // (datetime.resolution) for k in kept] == [1, -1, None, 5_000]
    assert why == ["'x' is finer than a microsecond"] * 2


def test_the_letter_shows_all_nine_digits(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "ts": pa.array([1_001], pa.timestamp("ns"))}), tmp_path / "a.parquet")
    (letter,) = batch(tmp_path, Schema.parse("id bigint, ts timestamp", time="ts")).malformed.to_pylist()
    assert json.loads(letter["event"]) == {"id": 1, "ts": "1970-01-01 00:00:00.000001001"}
    assert letter["reason"] == "malformed" and letter["time"] is None


def test_the_old_type_of_timestamps_is_exact_too(tmp_path: Path) -> None:
    """INT96, as Spark and Impala write it: nanoseconds for every year, which Arrow has not."""
    far, fine = datetime(9999, 12, 31, 23, 59, 59, 999_999), np.datetime64("2020-01-01T00:00:00.123456789")
    path = tmp_path / "a.parquet"
    table = pa.table({"id": [1, 2], "ts": pa.array([far, None], pa.timestamp("us"))})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True)
    assert pq.ParquetFile(path).schema.column(1).physical_type == "INT96"
    schema = Schema.parse("id bigint, ts timestamp")
    assert batch(tmp_path, schema).table["ts"].to_pylist() == [far, None]
    column = pa.array([fine, fine.astype("datetime64[us]").astype("datetime64[ns]")], pa.timestamp("ns"))
    pq.write_table(pa.table({"id": [1, 2], "ts": column}), path, use_deprecated_int96_timestamps=True)
    found = batch(tmp_path, schema)
    assert found.table["ts"].to_pylist() == [datetime(2020, 1, 1, 0, 0, 0, 123_456)]
    assert found.malformed["detail"].to_pylist() == ["'ts' is finer than a microsecond"]


MOMENTS = [
    ("2026-01-01 00:00:00.123456", True),
    ("2026-01-01 00:00:00.123456000", True),
    ("2026-01-01T00:00:00.1234560Z", True),
    ("2026-01-01 00:00:00.123456789", False),
    ("2026-01-01 00:00:00.0000001", False),
    ("2026-01-01T00:00:00.1234567Z", False),
    ("2026-01-01T00:00:00.123456001+01:00", False),
    ("2026-01-01T00:00:00.123456000+00:00", True),
]


@pytest.mark.parametrize("fmt", ["csv", "json"])
@pytest.mark.parametrize("alone", [True, False])
def test_text_with_more_digits_is_kept_or_set_aside(tmp_path: Path, fmt: str, alone: bool) -> None:
    for n, (text, good) in enumerate(MOMENTS):
        rows = [(n, text)] if alone else [(n, text), (99, "2026-01-01 00:00:00")]
        lines = [f"{i},{t}" if fmt == "csv" else json.dumps({"id": i, "ts": t}) for i, t in rows]
        (tmp_path / "a").write_text("\n".join([*(["id,ts"] if fmt == "csv" else []), *lines]) + "\n")
        found = batch(tmp_path / "a", STAMP, fmt)
        letters = found.malformed["detail"].to_pylist()
        assert (n in found.table["id"].to_pylist()) == good, text
        assert letters == ([] if good else [f"'ts' is finer than a microsecond: {text!r}"])
        if good:
            assert found.table["ts"].to_pylist()[0] == datetime(2026, 1, 1, 0, 0, 0, 123_456)


def test_statistics_of_nanoseconds_promise_nothing(tmp_path: Path) -> None:
    """Least and greatest are whole microseconds, and what lies between them is not."""
    schema = Schema.parse("ts timestamp", time="ts")
    pq.write_table(pa.table({"ts": pa.array([1_000, 9_001, 8_000], pa.timestamp("ns"))}), tmp_path / "a.parquet")
    source = Source((), schema, name="s", reader=Files(str(tmp_path), "parquet"), promises=(Disorder("ts", 0),))
    (split,) = open_reader(source).plan(None, None, 1)
    assert (split.low, split.high) == (None, None)


def test_an_event_that_is_set_aside_makes_nobody_late(tmp_path: Path) -> None:
    """Whole and fine nanoseconds in row groups of their own, so that statistics would speak for them."""
    ticks = [1_000, 9_000_001, 2_000, 3_000]
    path = tmp_path / "in/a.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"ts": pa.array(ticks, pa.timestamp("ns"))}), path, row_group_size=1)
    stream = ps.stream("s", "ts timestamp", time="ts").read_parquet(str(path.parent)).disorder(0)
    run = stream.start(ps.memory(), trigger="available_now", spark=local_session()).wait()
    assert run.dead_letters()["reason"].to_pylist() == ["malformed"]


FAR = 253_402_300_800_000_000  # the first microsecond of the year 10000


def test_moments_beyond_the_calendar(tmp_path: Path) -> None:
    """No pattern could name them, and `<= '9999-12-31 23:59:59.999999'` is to match all there is."""
    kept, why = parquet(tmp_path, pa.array([FAR - 1, FAR, -(1 << 62)], pa.timestamp("us")), "timestamp")
    assert kept == [datetime.max] and why == ["'x' does not fit timestamp"] * 2
    kept, why = parquet(tmp_path, pa.array([2_932_896, 2_932_897], pa.int32()).view(pa.date32()), "date")
    assert kept == [date.max] and why == ["'x' does not fit date"]
    kept, why = parquet(tmp_path, pa.array([2_932_897], pa.int32()).view(pa.date32()), "timestamp")
    assert kept == [] and why == ["'x' does not fit timestamp"]


def test_what_lies_beyond_the_calendar_is_no_maximum(tmp_path: Path) -> None:
    schema = Schema.parse("ts timestamp, other timestamp", time="ts")
    source = Source((), schema, name="s", reader=Files(str(tmp_path), "parquet"), promises=(Disorder("ts", 0),))
    us = pa.timestamp("us")
    for ts, other, high in [([1, 2], [1, 1], 2), ([1, FAR], [1, 1], None), ([1, 2], [1, FAR], None)]:
        pq.write_table(pa.table({"ts": pa.array(ts, us), "other": pa.array(other, us)}), tmp_path / "a.parquet")
        (split,) = open_reader(source).plan(None, None, 1)
        assert split.high == high


D = Decimal


@pytest.mark.parametrize(
    ("column", "declared", "kept", "lost"),
    [
        (pa.array([5, 99_999_999, 100_000_000], pa.int64()), "decimal(10,2)", [D("5.00"), D("99999999.00")], 1),
        (pa.array([5, -128], pa.int8()), "decimal(3,1)", [D("5.0")], 1),
        (pa.array([1 << 63], pa.uint64()), "decimal(38,19)", [D(1 << 63)], 0),
        (pa.array([1 << 63, 7], pa.uint64()), "bigint", [7], 1),
        (pa.array([D("1.20"), D("1.25")], pa.decimal128(5, 2)), "decimal(5,1)", [D("1.2")], 1),
        (pa.array([D("123.4"), D("1234.5")], pa.decimal128(5, 1)), "decimal(4,1)", [D("123.4")], 1),
        (pa.array([D(7), D(300)], pa.decimal128(5, 0)), "tinyint", [7], 1),
        (pa.array([1 << 53, (1 << 53) + 1], pa.int64()), "double", [float(1 << 53)], 1),
        (pa.array([1 << 24, (1 << 24) + 1], pa.int32()), "float", [float(1 << 24)], 1),
        (pa.array([127, 128, -129], pa.int16()), "tinyint", [127], 2),
        (pa.array([1_000, 1 << 62], pa.timestamp("ms")), "timestamp", [datetime(1970, 1, 1, 0, 0, 1)], 1),
        (pa.array([date(2026, 1, 2)]), "timestamp", [datetime(2026, 1, 2)], 0),
        (pa.array([0], pa.timestamp("us", "America/New_York")), "timestamp", [datetime(1970, 1, 1)], 0),
    ],
)
def test_parquet_values_fit_exactly_or_are_set_aside(
    tmp_path: Path, column: pa.Array, declared: str, kept: list[Any], lost: int
) -> None:
    found, why = parquet(tmp_path, column, declared)
    assert (found, len(why)) == (kept, lost)


@pytest.mark.parametrize("fmt", ["csv", "json"])
@pytest.mark.parametrize(
    ("declared", "good", "bad"),
    [
        ("int", ["7", "-2147483648"], ["1.5", "2147483648", "1e3"]),
        ("decimal(4,1)", ["1.5", "1.50", "999.9"], ["1.25", "1000"]),
        ("date", ["2026-01-01"], ["2026-01-01 10:00", "2026-02-30"]),
        ("tinyint", ["127"], ["128"]),
    ],
)
def test_texts_fit_exactly_or_are_set_aside(
    tmp_path: Path, fmt: str, declared: str, good: list[str], bad: list[str]
) -> None:
    lines = [t if fmt == "csv" else json.dumps({"x": t}) for t in good + bad]
    if fmt == "json" and declared != "date":
        lines = [f'{{"x": {t}}}' for t in good + bad]
    (tmp_path / "a").write_text("\n".join([*(["x"] if fmt == "csv" else []), *lines]) + "\n")
    found = batch(tmp_path / "a", Schema.parse(f"x {declared}"), fmt)
    assert (found.table.num_rows, found.malformed.num_rows) == (len(good), len(bad))


def test_malformed_rows_beside_columns_of_views(tmp_path: Path) -> None:
    views = {"s": pa.array(["a", "b"], pa.string_view()), "b": pa.array([b"x", b"y"], pa.binary_view())}
    pq.write_table(pa.table({"id": pa.array([1, 1 << 40], pa.int64()), **views}), tmp_path / "a.parquet")
    found = batch(tmp_path, Schema.parse("id int, s string, b binary"))
    assert found.table.to_pylist() == [{"id": 1, "s": "a", "b": b"x"}]
    assert json.loads(found.malformed["event"][0].as_py())["s"] == "b"


@given(st.lists(st.one_of(st.none(), st.integers(-(1 << 62), 1 << 62)), max_size=20))
def test_any_nanoseconds(ticks: list[int | None]) -> None:
    column, bad = convert(pa.chunked_array([pa.array(ticks, pa.timestamp("ns"))]), pa.timestamp("us"))
    wrong = [t is not None and t % 1_000 != 0 for t in ticks]
    assert (bad.tolist() if bad is not None else [False] * len(ticks)) == wrong
    expected = [None if t is None or w else t // 1_000 for t, w in zip(ticks, wrong)]
    assert column.cast(pa.int64()).to_pylist() == expected
