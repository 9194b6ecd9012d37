"""Folders: every row once, in order, whatever the cut; and clear words for everything that is not as it should be."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.source import Split, open_reader, read
from penstock.errors import SchemaError, SourceError, UserError
from penstock.operators.source.operator import Source
from penstock.pattern.schema import Schema
from penstock.plan.promise import Bounds, Disorder, Domain, Files, InBand, Promise

SCHEMA = Schema.parse("ts bigint, v double", time="ts")


def source(
    path: Path | str, fmt: Any = "parquet", promises: tuple[Promise, ...] = (), schema: Schema = SCHEMA, **more: Any
) -> Source:
    options = tuple(more.pop("options", {}).items())
    return Source((), schema, name="traffic", promises=promises, reader=Files(str(path), fmt, options=options, **more))


def write(path: Path, ts: list[int | None], at: int | None = None, **more: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"v": [float(t or 0) for t in ts], "ts": pa.array(ts, pa.int64())}), path, **more)
    if at is not None:
        os.utime(path, ns=(at, at))


def values(splits: tuple[Split, ...], src: Source) -> list[int]:
    return [t for s in splits for t in read(s, src.schema, None, src.promises).table.column("ts").to_pylist()]


@settings(max_examples=40)
@given(
    sizes=st.lists(st.integers(0, 12), min_size=1, max_size=4),
    group=st.integers(1, 5),
    rows=st.one_of(st.none(), st.integers(1, 9)),
    size=st.one_of(st.none(), st.integers(1, 400)),
    parallelism=st.integers(1, 4),
)
def test_any_cut_gives_the_same_rows_in_order(
    tmp_path_factory: pytest.TempPathFactory,
    sizes: list[int],
    group: int,
    rows: int | None,
    size: int | None,
    parallelism: int,
) -> None:
    folder = tmp_path_factory.mktemp("in")
    expected: list[int] = []
    for i, n in enumerate(sizes):
        part = list(range(len(expected), len(expected) + n))
        write(folder / f"{i}.parquet", part, at=i + 1, row_group_size=group)
        expected += part
    src = source(folder, promises=(Disorder("ts", 3),))
    reader = open_reader(src)
    found: list[int] = []
    ordinals: list[int] = []
    deltas: list[dict[str, Any]] = []
    while splits := reader.plan(rows, size, parallelism):
        for s in splits:
            assert Split.from_json(json.loads(json.dumps(s.to_json()))) == s
            ticks = values((s,), src)
            assert s.rows == len(ticks)
            if s.high is not None:
                assert (s.low, s.high) == (min(ticks), max(ticks))
            found += ticks
            ordinals.append(s.ordinal)
        if rows is not None and len(splits) > 1:
            assert sum(s.rows or 0 for s in splits) <= rows
        # A crash now: positions written so far, and the last plan read again from its record.
        again = open_reader(src)
        again.restore(None, json.loads(json.dumps(deltas)))
        again.advance(splits)
        deltas.append(reader.position())
        assert again.position()["begun"] == deltas[-1]["begun"]
        assert again.snapshot()["ordinals"] == reader.snapshot()["ordinals"]
        if parallelism == 2:
            reader = open_reader(src)
            reader.restore(json.loads(json.dumps(again.snapshot())), [])
    assert found == expected
    assert ordinals == list(range(len(ordinals)))
    assert reader.exhausted


def test_big_files_are_shared_out_over_tasks(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", list(range(1000)), row_group_size=100)
    splits = open_reader(source(tmp_path)).plan(None, None, 2)
    assert [(s.start, s.stop, s.row_groups) for s in splits] == [
        (0, 500, (0, 1, 2, 3, 4)),
        (500, 1000, (5, 6, 7, 8, 9)),
    ]


def test_new_files_are_picked_up_and_positions_stay_small(tmp_path: Path) -> None:
    src = source(tmp_path)
    write(tmp_path / "a.parquet", [1], at=1)
    reader = open_reader(src)
    for i in range(30):
        assert values(reader.plan(None, None, 1), src) == [i + 1]
        position = reader.position()
        assert len(position["delta"]) == 1
        assert position["files_done"] == i + 1
        assert reader.exhausted
        write(tmp_path / f"b{i:02}.parquet", [i + 2], at=i + 2)
        assert not reader.exhausted
    assert len(reader.snapshot()["delta"]) == 30


def test_order_by_time_or_by_name(tmp_path: Path) -> None:
    for name, at in [("a", 3), ("b", 1), ("c", 2)]:
        write(tmp_path / f"{name}.parquet", [at], at=at)
    assert values(open_reader(source(tmp_path)).plan(None, None, 1), source(tmp_path)) == [1, 2, 3]
    by_name = source(tmp_path, order="name")
    assert values(open_reader(by_name).plan(None, None, 1), by_name) == [3, 1, 2]


def test_sub_folders_as_partitions_take_turns(tmp_path: Path) -> None:
    for name in ("x/1", "x/2", "y/1", "y/2"):
        write(tmp_path / f"{name}.parquet", [1])
    reader = open_reader(source(tmp_path, partitions="directory", order="name"))
    (first,) = reader.plan(1, None, 1)
    assert reader.partitions == ("x", "y")  # known before it is read: nothing may be asserted past it
    rest = [s for _ in range(3) for s in reader.plan(1, None, 1)]
    assert [(s.partition, s.ordinal) for s in (first, *rest)] == [("x", 0), ("y", 0), ("x", 1), ("y", 1)]


def test_unfinished_and_hidden_files_are_never_read(tmp_path: Path) -> None:
    write(tmp_path / "good.parquet", [1])
    whole = (tmp_path / "good.parquet").read_bytes()
    for name in (
        "_x.parquet",
        ".y.parquet",
        "z.parquet.tmp",
        "z.inprogress",
        "z.crc",
        "z.part",
        "_temporary/q.parquet",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(whole)
    (tmp_path / "partial.parquet").write_bytes(whole[:-10])
    src = source(tmp_path)
    reader = open_reader(src)
    assert values(reader.plan(None, None, 1), src) == [1]
    assert [Path(p).name for p, _ in reader.waiting] == ["partial.parquet"]
    assert not reader.exhausted
    (tmp_path / "partial.parquet").write_bytes(whole)
    assert values(reader.plan(None, None, 1), src) == [1]
    assert reader.waiting == ()


def test_globs_single_files_and_urls(tmp_path: Path) -> None:
    write(tmp_path / "d/a1.parquet", [1], at=1)
    write(tmp_path / "d/b1.parquet", [2], at=2)
    for path, expected in [
        (f"{tmp_path}/d/a*.parquet", [1]),
        (f"{tmp_path}/*/b?.parquet", [2]),
        (f"{tmp_path}/d/b1.parquet", [2]),
        (f"file://{tmp_path}/d", [1, 2]),
    ]:
        src = source(path)
        reader = open_reader(src)
        assert values(reader.plan(None, None, 1), src) == expected
        assert reader.exhausted


def test_text_waits_until_it_has_settled(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts,v\n1,2\n")
    (tmp_path / "empty.csv").write_text("")
    reader = open_reader(source(tmp_path, "csv", options={"settle": 3600}))
    assert reader.plan(None, None, 1) == ()
    assert {Path(p).name for p, _ in reader.waiting} == {"a.csv", "empty.csv"}
    assert len(reader.plan(None, None, 1, settled=True)) == 1
    assert len(open_reader(source(tmp_path, "csv", options={"settle": 0})).plan(None, None, 1)) == 1


@pytest.mark.parametrize(
    ("make", "fmt", "text"),
    [
        (lambda d: d / "nowhere", "parquet", "does not exist"),
        (lambda d: d, "parquet", "no file to read"),
        (lambda d: [(d / "a.csv").write_text("ts,v\n1,2\n"), d][1], "parquet", "is not a Parquet file"),
        (lambda d: [write(d / "a.parquet", [1]), d][1], "csv", "is a Parquet file"),
        (lambda d: [(d / "a.csv.gz").write_bytes(b"x"), d][1], "csv", "is compressed"),
        (lambda d: "nosuch://x/y", "csv", "cannot open"),
    ],
)
def test_what_cannot_be_read_is_named_in_one_line(tmp_path: Path, make: Any, fmt: str, text: str) -> None:
    with pytest.raises((UserError, SourceError), match=text) as caught:
        open_reader(source(make(tmp_path), fmt)).plan(None, None, 1, settled=True)
    assert "\n" not in str(caught.value)
    assert caught.value.hint
    assert ("wait=True" in caught.value.hint) == (text == "no file to read")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [1])
    (tmp_path / "a.parquet").chmod(0)
    reader = open_reader(source(tmp_path))
    assert reader.plan(None, None, 1) == ()
    assert "Permission denied" in reader.waiting[0][1]


def test_a_folder_may_stay_empty_if_asked(tmp_path: Path) -> None:
    assert open_reader(source(tmp_path, options={"wait": True})).plan(None, None, 1) == ()


def test_files_that_change(tmp_path: Path) -> None:
    src = source(tmp_path)
    write(tmp_path / "a.parquet", [1, 2, 3], row_group_size=1)
    reader = open_reader(src)
    (split,) = reader.plan(1, None, 1)
    write(tmp_path / "a.parquet", [4, 5])
    with pytest.raises(SourceError, match="changed since it was planned"):
        read(split, SCHEMA)
    with pytest.raises(SourceError, match=r"a\.parquet' changed after it was read"):
        reader.plan(None, None, 1)
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(SourceError, match="is gone"):
        read(split, SCHEMA)
    with pytest.raises(SourceError, match="is gone"):
        reader.plan(None, None, 1)


def test_a_file_that_changes_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.parquet", [1, 2])
    (split,) = open_reader(source(tmp_path)).plan(None, None, 1)
    whole = pq.ParquetFile.read_row_groups

    def meddle(self: Any, *args: Any, **more: Any) -> Any:
        table = whole(self, *args, **more)
        write(tmp_path / "a.parquet", [1, 3])
        return table

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", meddle)
    with pytest.raises(SourceError, match="changed while it was read"):
        read(split, SCHEMA)


def test_damage_inside_a_file(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", list(range(5000)))
    data = bytearray((tmp_path / "a.parquet").read_bytes())
    data[4:2000] = b"\xff" * 1996
    (tmp_path / "a.parquet").write_bytes(data)
    (split,) = open_reader(source(tmp_path)).plan(None, None, 1)
    with pytest.raises(SourceError, match="cannot be read"):
        read(split, SCHEMA)


def one(tmp_path: Path, table: pa.Table, schema: Schema, promises: tuple[Promise, ...] = (), **more: Any) -> Any:
    pq.write_table(table, tmp_path / "a.parquet")
    (split,) = open_reader(source(tmp_path, promises=promises, schema=schema)).plan(None, None, 1)
    return read(split, schema, promises=promises, **more)


def test_schema_drift(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no column 'v'") as caught:
        one(tmp_path, pa.table({"ts": [1], "V2": [1.0]}), SCHEMA)
    assert "a.parquet" in str(caught.value)
    with pytest.raises(SchemaError, match="column 'v' is string, declared double"):
        one(tmp_path, pa.table({"ts": [1], "v": ["x"]}), SCHEMA)


def test_types_are_widened_and_misfits_set_aside(tmp_path: Path) -> None:
    schema = Schema.parse("ts timestamp, small smallint, wide double, name string", time="ts")
    moments = [
        datetime(2020, 1, 1, 1, tzinfo=UTC),
        None,
        datetime(2020, 1, 2, tzinfo=UTC),
        datetime(2020, 1, 3, tzinfo=UTC),
    ]
    table = pa.table(
        {
            "extra": [1, 2, 3, 4],
            "name": pa.array(["a", "b", "c", "d"]).dictionary_encode(),
            "ts": pa.array(moments, pa.timestamp("ns", tz="Europe/Berlin")),
            "small": pa.array([1, 2, 70_000, -5], pa.int64()),
            "wide": pa.array([1, 2, 3, 4], pa.int32()),
        }
    )
    batch = one(tmp_path, table, schema)
    assert batch.table.schema == schema.arrow
    assert batch.table.column("small").to_pylist() == [1, -5]
    assert batch.table.column("ts").to_pylist()[0] == datetime(2020, 1, 1, 1)
    assert batch.row_numbers(pa.array([0, 1]).to_numpy()) == [0, 3]
    letters = batch.malformed.to_pylist()
    assert [(m["row"], m["detail"]) for m in letters] == [
        (1, "time attribute 'ts' is null"),
        (2, "'small' does not fit smallint"),
    ]
    assert json.loads(letters[1]["event"])["small"] == 70_000


def test_only_needed_columns_are_read_but_letters_are_whole(tmp_path: Path) -> None:
    from penstock.engine.source import Checker, Known

    promises = (Disorder("ts", 0),)
    pq.write_table(pa.table({"ts": [5, 3], "v": [1.0, 2.5]}), tmp_path / "a.parquet")
    (split,) = open_reader(source(tmp_path, promises=promises)).plan(None, None, 1)
    batch = read(split, SCHEMA, [], promises)
    assert batch.table.column_names == ["ts"]
    checked = Checker(promises, SCHEMA).check(batch, split, Known())
    assert json.loads(checked.rejected.column("event")[0].as_py()) == {"ts": 3, "v": 2.5}
    pq.write_table(pa.table({"ts": [5, 3], "v": [7.0, 7.5]}), tmp_path / "a.parquet")
    os.utime(tmp_path / "a.parquet", (1, 1))
    with pytest.raises(SourceError, match="changed since it was planned"):
        batch.events(np.array([1]))  # another file by now: nobody must be shown what was not read


def test_punctuation_in_band(tmp_path: Path) -> None:
    table = pa.table(
        {"ts": [1, None, 2, None], "v": [1.0, None, 2.0, None], "punctuation": [None, "[< 2, *]", None, "[oops"]}
    )
    batch = one(tmp_path, table, SCHEMA, (InBand(),))
    assert batch.table.column("ts").to_pylist() == [1, 2]
    assert [(i, str(p)) for i, p in batch.punctuations] == [(1, "[< 2, *]")]
    assert batch.malformed.column("row").to_pylist() == [3]


def test_statistics_are_given_only_where_they_are_sure(tmp_path: Path) -> None:
    def high(table: pa.Table, schema: Schema = SCHEMA, *promises: Promise) -> int | None:
        pq.write_table(table, tmp_path / "a.parquet")
        promised = (Disorder("ts", 1), *promises)
        (split,) = open_reader(source(tmp_path, promises=promised, schema=schema)).plan(None, None, 1)
        return split.high

    assert high(pa.table({"ts": [1, 9], "v": [1.0, 2.0]})) == 9
    assert high(pa.table({"ts": [1, 9], "v": [1.0, 2.0]}), SCHEMA, Bounds("ts", 0, 8)) is None
    assert high(pa.table({"ts": [1, 9], "v": [1.0, 2.0]}), SCHEMA, Bounds("ts", 0, 9)) == 9
    narrow = Schema.parse("ts bigint, v int", time="ts")
    assert high(pa.table({"ts": [1, 9], "v": pa.array([1, 2], pa.int64())}), narrow) == 9
    assert high(pa.table({"ts": [1, 9], "v": pa.array([1, 2**31], pa.int64())}), narrow) is None
    assert high(pa.table({"ts": [1, 9], "v": pa.array([1, 2], pa.uint64())}), narrow) == 9
    listed = Domain("v", (1, 2, 3, 7))
    assert high(pa.table({"ts": [1, 9], "v": pa.array([1, 3])}), narrow, listed) == 9
    assert high(pa.table({"ts": [1, 9], "v": pa.array([3, 7])}), narrow, listed) is None
    assert high(pa.table({"ts": [1, 9], "v": pa.array([3, None])}), narrow, listed) is None
    stamp = Schema.parse("ts timestamp, v double", time="ts")
    nanos = pa.table({"ts": pa.array([-1, -1001], pa.timestamp("ns")), "v": [1.0, 1.0]})
    assert high(nanos, stamp) is None  # what lies between two microseconds is no event
