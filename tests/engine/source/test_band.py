"""Punctuations in files: three forms of the same, read and judged the same, whatever the file is cut into."""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.source import Checker, PromiseState, open_reader, plan_tasks, read
from penstock.engine.source.promises.in_band import read_text
from penstock.errors import UserError
from penstock.operators.source.operator import Source
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.schema import Schema
from penstock.plan.promise import Files, InBand

SCHEMA = Schema.parse("ts timestamp, trip int, zone string", time="ts")
START = datetime(2026, 1, 1)


def minute(n: int) -> datetime:
    return START + timedelta(minutes=n)


#: A punctuation as (trip, zone, ts below this minute); None is no restriction.
Mark = tuple[int | None, str | None, int | None]
#: An event as (minute, trip, zone).
Record = tuple[str, Any]


def as_text(mark: Mark) -> str:
    trip, zone, below = mark
    parts = ["*" if below is None else f"< '{minute(below)}'", "*" if trip is None else str(trip)]
    return f"[{', '.join([*parts, '*' if zone is None else repr(zone)])}]"


def as_object(mark: Mark) -> dict[str, Any]:
    trip, zone, below = mark
    said: dict[str, Any] = {} if trip is None else {"trip": trip}
    said |= {} if zone is None else {"zone": [zone]}
    return said | ({} if below is None else {"ts": {"<": str(minute(below))}})


def write(folder: Path, form: str, records: list[Record], group: int) -> tuple[str, bool]:
    """Write records in one of the forms; returns the format and whether it has companions."""
    columns: dict[str, list[Any]] = {n: [] for n in (*SCHEMA.names, "punctuation", "ts_below")}
    lines = []
    companion = form in ("parquet companions", "csv companions")
    for kind, record in records:
        if kind == "event":
            at, trip, zone = record
            row: tuple[Any, ...] = (minute(at), trip, zone, None, None)
            lines.append({"ts": str(minute(at)), "trip": trip, "zone": zone})
        elif companion:
            row = (None, record[0], record[1], True, None if record[2] is None else minute(record[2]))
        else:
            row = (None, None, None, as_text(record), None)
            lines.append({"punctuation": as_object(record) if form == "json objects" else as_text(record)})
        for column, value in zip(columns.values(), row):
            column.append(value)
    if form.startswith("json"):
        (folder / "a.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return "json", False
    types = [pa.timestamp("us"), pa.int32(), pa.string(), pa.bool_() if companion else pa.string(), pa.timestamp("us")]
    table = pa.table([pa.array(c, t) for c, t in zip(columns.values(), types)], names=list(columns))
    table = table if companion else table.drop_columns(["ts_below"])
    if form.startswith("parquet"):
        pq.write_table(table, folder / "a.parquet", row_group_size=group)
        return "parquet", companion
    csv.write_csv(table, folder / "a.csv")
    return "csv", companion


def run(folder: Path, fmt: Any, companion: bool, rows: int | None) -> tuple[set[int], PunctuationSet, list[str]]:
    promises = (InBand(companion=companion),)
    source = Source((), SCHEMA, name="t", promises=promises, reader=Files(str(folder), fmt))
    reader, state = open_reader(source), PromiseState(source)
    asserted: list[Any] = []
    rejected: list[dict[str, Any]] = []
    while splits := reader.plan(rows, None, 2, settled=True):
        reports = []
        for task in plan_tasks(state, splits, 2):
            checker = Checker(promises, SCHEMA)
            for split, known in task:
                batch = read(split, SCHEMA, None, promises, {})
                checked = checker.check(batch, split, known)
                assert batch.malformed.num_rows == 0, batch.malformed.to_pylist()
                rejected += checked.rejected.to_pylist()
                reports.append(checked.report)
        asserted += state.absorb(reports)
    return {r["row"] for r in rejected}, PunctuationSet(SCHEMA).add(*asserted), [r["detail"] for r in rejected]


FORMS = ("json text", "json objects", "csv text", "csv companions", "parquet text", "parquet companions")
events = st.tuples(st.just("event"), st.tuples(st.integers(0, 9), st.integers(0, 3), st.sampled_from("ab")))
marks = st.tuples(
    st.just("mark"),
    st.tuples(
        st.one_of(st.none(), st.integers(0, 3)), st.sampled_from([None, "a", "b"]), st.sampled_from([None, None, 3, 6])
    ).filter(lambda mark: mark != (None, None, None)),  # the end of a stream is written in one form only
)


@settings(max_examples=12, deadline=None)
@given(st.lists(st.one_of(events, marks), min_size=1, max_size=20), st.integers(1, 6), st.sampled_from([None, 1, 4]))
def test_all_forms_and_cuts_say_the_same(
    tmp_path_factory: pytest.TempPathFactory, records: list[Record], group: int, rows: int | None
) -> None:
    late = set()
    given_so_far: list[Any] = []
    for i, (kind, record) in enumerate(records):
        if kind == "mark":
            given_so_far.append(read_text(as_text(record), SCHEMA))
        elif any(p.matches_row({"ts": minute(record[0]), "trip": record[1], "zone": record[2]}) for p in given_so_far):
            late.add(i)
    wanted = PunctuationSet(SCHEMA).add(*given_so_far)
    for form in FORMS:
        folder = tmp_path_factory.mktemp("in")
        fmt, companion = write(folder, form, records, group)
        for cut in {None, rows}:
            found, asserted, details = run(folder, fmt, companion, cut)
            assert found == late, form
            assert all(asserted.covers(p) for p in wanted), form
            assert all(wanted.covers(p) for p in asserted), form
            assert all(read_text(d, SCHEMA) for d in details)


def test_thousands_of_values_are_one_punctuation(tmp_path: Path) -> None:
    trips = np.repeat(np.arange(20_000), 3)
    order = np.argsort(np.arange(60_000) + (np.arange(60_000) % 7) * 9, kind="stable")
    trips = trips[order]
    last = np.zeros(len(trips), bool)
    last[len(trips) - 1 - np.unique(trips[::-1], return_index=True)[1]] = True
    at = np.repeat(np.arange(len(trips)), 1 + last)
    mark = np.concatenate([[False], at[1:] == at[:-1]])
    table = pa.table(
        {
            "ts": pa.array(np.where(mark, 0, at), pa.int64(), mask=mark).cast(pa.timestamp("us")),
            "trip": pa.array(trips[at], pa.int32()),
            "zone": pa.nulls(len(at), pa.string()),
            "punctuation": pa.array(mark),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=7_000)
    found, asserted, _ = run(tmp_path, "parquet", True, 9_000)
    assert found == set()
    assert [str(p) for p in asserted] == ["[*, [0, 19999], *]"]
    again = table.slice(100, 50)
    pq.write_table(again, tmp_path / "b.parquet")
    os.utime(tmp_path / "b.parquet", ns=(1 << 62, 1 << 62))
    found, _, details = run(tmp_path, "parquet", True, 9_000)
    assert len(details) == int((~mark[100:150]).sum())
    assert set(details) == {f"[*, {t}, *]" for t in trips[at][100:150][~mark[100:150]].tolist()}


def test_a_punctuation_that_says_nothing_is_malformed(tmp_path: Path) -> None:
    lines = ["[1", '{"trip": "x"}', '{"tripp": 1}', '{"trip": {"~": 1}}', '{"trip": 1']
    text = "".join(json.dumps({"punctuation": line}) + "\n" for line in lines)
    (tmp_path / "a.json").write_text(text + json.dumps({"ts": str(START), "trip": 1, "punctuation": None}) + "\n")
    source = Source((), SCHEMA, name="t", promises=(InBand(),), reader=Files(str(tmp_path), "json"))
    (split,) = open_reader(source).plan(None, None, 1, settled=True)
    batch = read(split, SCHEMA, None, source.promises, {})
    assert (batch.table.num_rows, batch.punctuations) == (1, ())
    details = batch.malformed.column("detail").to_pylist()
    assert len(details) == 5
    for detail, part in zip(
        details, ("punctuation '[1'", "'x'", "no attribute 'tripp'", "'~' is not a comparison", "JSON")
    ):
        assert part in detail


def test_companions_that_do_not_fit_are_malformed(tmp_path: Path) -> None:
    text = "punctuation,ts,trip,zone,trip_upto,trip_from\n"
    text += "yes,,,,7,\ntrue,,x,,,\nfalse,2026-01-01,1,a,,\n,2026-01-01,2,a,,\n1,,,q,9,3\n0,2026-01-02,3,b,,\n"
    (tmp_path / "a.csv").write_text(text)
    source = Source((), SCHEMA, name="t", promises=(InBand(companion=True),), reader=Files(str(tmp_path), "csv"))
    (split,) = open_reader(source).plan(None, None, 1, settled=True)
    batch = read(split, SCHEMA, None, source.promises, {})
    assert batch.table.column("trip").to_pylist() == [1, 2, 3]
    assert [(i, str(p)) for i, p in batch.punctuations] == [(0, "[*, <= 7, *]"), (2, "[*, [3, 9], 'q']")]
    assert batch.malformed.column("row").to_pylist() == [1]


def test_objects_by_name() -> None:
    assert str(read_text('{"trip": {">": 3, "<=": 9}, "zone": null}', SCHEMA)) == "[*, (3, 9], *]"
    with pytest.raises(UserError, match="pattern, attribute 'ts'"):
        read_text('{"ts": true}', SCHEMA)


def outcome(folder: Path, fmt: Any, promises: tuple[InBand, ...]) -> tuple[list[str], list[str]]:
    """What the one file of a folder says, and why some of it says nothing."""
    source = Source((), SCHEMA, name="t", promises=promises, reader=Files(str(folder), fmt))
    (split,) = open_reader(source).plan(None, None, 1, settled=True)
    batch = read(split, SCHEMA, None, promises, {})
    return [str(p) for _, p in batch.punctuations], batch.malformed.column("detail").to_pylist()


@pytest.mark.parametrize("said", [{"trip": None}, {}, {"trip": "*"}])
def test_a_slip_does_not_end_the_stream(tmp_path: Path, said: dict[str, Any]) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"punctuation": said}) + "\n")
    found, (detail,) = outcome(tmp_path, "json", (InBand(),))
    assert found == []
    assert "restricts nothing" in detail and "for the end of the stream write [*, *, *]" in detail


def test_the_end_of_a_stream_is_written_in_full(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"punctuation": "[*, *,*]"}\n')
    assert outcome(tmp_path, "json", (InBand(),)) == (["[*, *, *]"], [])
    assert outcome(tmp_path, "json", (InBand(companion=True),)) == (["[*, *, *]"], [])


@pytest.mark.parametrize("said", [{"trip": []}, {"trip": {">": 5, "<": 1}}, "[*, {}, *]", "[*, (5, 1), *]"])
def test_a_punctuation_that_matches_nothing_is_malformed(tmp_path: Path, said: object) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"punctuation": said}) + "\n")
    found, details = outcome(tmp_path, "json", (InBand(),))
    assert (found, len(details)) == ([], 1)


def test_a_mark_with_nothing_beside_it_does_not_end_the_stream(tmp_path: Path) -> None:
    lines = [
        {"punctuation": True, "trip_below": 7},
        {"punctuation": True, "trip_blow": 7},
        {"punctuation": "[*, 4711, *]", "trip": 3},
        {"punctuation": {"trip": 4711}},
        {"punctuation": "true", "trip_upto": 1, "trip_from": 5},
    ]
    (tmp_path / "a.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found, details = outcome(tmp_path, "json", (InBand(companion=True),))
    assert found == ["[*, < 7, *]"]
    for detail, part in zip(details, ("ts_upto or ts_below", "without companion", "without companion", "no event")):
        assert part in detail
    assert len(details) == 4


def test_a_punctuation_nobody_asked_for_is_told_from_an_event_without_time(tmp_path: Path) -> None:
    (tmp_path / "j").mkdir()
    (tmp_path / "j" / "a.json").write_text('{"punctuation": {"trip": 1}}\n{"trip": 1}\n{"punctuation": null}\n')
    _, details = outcome(tmp_path / "j", "json", ())
    assert [".punctuated()" in d for d in details] == [True, False, False]
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "a.csv").write_text('punctuation,ts,trip,zone\n"[*, 1, *]",,,\n')
    (tmp_path / "p").mkdir()
    nothing = {n: pa.nulls(1, t) for n, t in zip(SCHEMA.names, SCHEMA.arrow.types)}
    pq.write_table(pa.table({**nothing, "punctuation": ["[*, 1, *]"]}), tmp_path / "p" / "a.parquet")
    for folder, fmt in (("c", "csv"), ("p", "parquet")):
        _, (detail,) = outcome(tmp_path / folder, fmt, ())
        assert "time attribute 'ts' is null" in detail and ".punctuated()" in detail
