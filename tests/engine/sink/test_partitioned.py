"""Results in folders by value: as Spark lays them out, exactly once, and nothing else is touched."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.checkpoint.fault import Crash, hooked
from penstock.checkpoint.storage import seal, unseal
from penstock.engine.sink.hive import NOTHING, cut, escaped
from penstock.errors import CheckpointError, UserError
from penstock.portal.testing import local_session

TEXTS = [
    "plain",
    "two words",
    "a/b",
    "k=v",
    "50%",
    "..",
    "",
    None,
    "ä{[]}^",
    "tab\tnew\nline",
    "q'\"",
    "\\",
    "\x7f",
    "a:b",
]


def feed(home: Path, number: int, texts: list[str | None] = TEXTS) -> None:
    (home / "in").mkdir(exist_ok=True)
    rows = {
        "t": pa.array(range(len(texts) * number, len(texts) * (number + 1)), pa.int64()),
        "day": pa.array([20_000 + k % 2 for k in range(len(texts))], pa.date32()),
        "text": pa.array(texts, pa.string()),
    }
    pq.write_table(pa.table(rows), home / "in" / f"{number}.parquet")


def run(home: Path, by: Any = "text", kind: str = "parquet", **options: Any) -> ps.Run:
    query = ps.stream("rows", "t bigint, day date, text string", time="t").read_parquet(str(home / "in"), order="name")
    sink = getattr(ps, kind)(str(home / "out"), partition_by=by)
    given = {"checkpoint": str(home / "ck"), "trigger": "once", "spark": local_session(2), **options}
    return query.disorder(0).where("t >= 0").start(sink, **given).wait()


def parts(home: Path) -> list[Path]:
    return sorted(p for p in (home / "out").rglob("part-*") if "_penstock" not in p.parts)


def read(home: Path) -> list[int]:
    return sorted(t for p in parts(home) for t in pq.ParquetFile(p).read()["t"].to_pylist())


def test_each_value_has_its_folder_and_readers_find_it(tmp_path: Path) -> None:
    feed(tmp_path, 0)
    run(tmp_path)
    folders = {p.parent.name for p in parts(tmp_path)}
    assert folders == {f"text={escaped(t) if t else NOTHING}" for t in TEXTS}
    assert all(pq.ParquetFile(p).schema_arrow.names == ["t", "day"] for p in parts(tmp_path))
    expected = sorted(((k, t or None) for k, t in enumerate(TEXTS)), key=repr)
    found = ds.dataset(str(tmp_path / "out"), partitioning="hive", format="parquet").to_table()
    assert sorted(zip(found["t"].to_pylist(), found["text"].to_pylist()), key=repr) == expected
    glob = f"{tmp_path}/out/*/*.parquet"
    ducks = duckdb.sql(f"SELECT t, text FROM read_parquet('{glob}', hive_partitioning=true, hive_types_autocast=0)")
    assert sorted(ducks.fetchall(), key=repr) == expected


def test_several_columns_nest_in_their_order(tmp_path: Path) -> None:
    feed(tmp_path, 0, ["x", "y", "x"])
    run(tmp_path, ["DAY", "text"])
    assert [str(p.parent.relative_to(tmp_path / "out")) for p in parts(tmp_path)] == [
        "day=2024-10-04/text=x",
        "day=2024-10-05/text=y",
    ]
    feed(tmp_path, 1, ["x", "x", "y"])
    run(tmp_path, ["day", "text"])
    assert read(tmp_path) == list(range(6)) and len(parts(tmp_path)) == 5


def test_lines_go_into_folders_too(tmp_path: Path) -> None:
    feed(tmp_path, 0, ["x", "y"])
    run(tmp_path, ["text"], "json_lines")
    assert {p.parent.name: json.loads(p.read_text()) for p in parts(tmp_path)} == {
        "text=x": {"t": 0, "day": "2024-10-04"},
        "text=y": {"t": 1, "day": "2024-10-05"},
    }


def test_values_of_all_types_are_written_as_spark_casts_them() -> None:
    moment = pa.array([1_700_000_000_500_000, 0], pa.timestamp("us"))
    for values, folders in (
        (moment, ["v=1970-01-01 00%3A00%3A00", "v=2023-11-14 22%3A13%3A20.5"]),
        (pa.array([True, False]), ["v=false", "v=true"]),
        (pa.array([-1, 7], pa.int8()), ["v=-1", "v=7"]),
        (pa.array([Decimal("1.50"), Decimal("-0.05")], pa.decimal128(5, 2)), ["v=-0.05", "v=1.50"]),
        (pa.array([1e10, float("nan")]), ["v=1.0E10", "v=NaN"]),
    ):
        assert [folder for folder, _ in cut(pa.table({"v": values, "n": [1, 2]}), ["v"], "sink-1")] == folders


@pytest.mark.parametrize(
    ("by", "said"),
    [
        (["dya"], r"partition_by=\['dya'\]\): the results have no column 'dya'.*did you mean 'day'"),
        (["day", "Day"], r"'day' is named twice.*name each column once"),
        (["day", "t", "text"], r"all columns of the results.*leave one out"),
    ],
)
def test_a_layout_that_cannot_be_is_refused(tmp_path: Path, by: list[str], said: str) -> None:
    feed(tmp_path, 0)
    with pytest.raises(UserError, match=said):
        run(tmp_path, by)
    assert not (tmp_path / "out").exists() and not (tmp_path / "ck").exists()


@pytest.mark.parametrize("by", [5, [1], [""], None])
def test_names_that_are_none_are_refused(by: Any) -> None:
    with pytest.raises(UserError, match=r"parquet\(partition_by=.*not names of columns.*partition_by=\['day'\]"):
        ps.parquet("out", partition_by=by)


def test_a_value_that_no_folder_can_be_named_after_stops_the_run(tmp_path: Path) -> None:
    feed(tmp_path, 0, ["x", "y" * 300])
    with pytest.raises(UserError, match=r"sink .*the folder .*is too long.*shorter values"):
        run(tmp_path)
    assert not parts(tmp_path) and not list((tmp_path / "out/_penstock/staging").iterdir())


def test_the_layout_of_a_folder_stays(tmp_path: Path) -> None:
    feed(tmp_path, 0)
    run(tmp_path)
    feed(tmp_path, 1)
    for by, now in ((["day"], "day"), ((), "nothing")):
        with pytest.raises(UserError, match=rf"laid out by text, not by {now}.*keep the layout"):
            run(tmp_path, by)
    run(tmp_path)
    assert read(tmp_path) == list(range(2 * len(TEXTS)))


@pytest.mark.parametrize("by", ["text", ()])
def test_a_folder_with_results_of_others_is_refused_at_first(tmp_path: Path, by: Any) -> None:
    feed(tmp_path, 0)
    theirs = tmp_path / "out/text=x/part-000777-b1000.parquet"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("mine")
    with pytest.raises(UserError, match=r"did not write, such as text=x/part-000777-b1000\.parquet"):
        run(tmp_path, by)
    theirs.rename(theirs.with_name("theirs.parquet"))
    run(tmp_path, by)


def test_a_file_in_the_way_is_not_overwritten(tmp_path: Path) -> None:
    feed(tmp_path, 0, ["x", "y"])
    run(tmp_path)
    feed(tmp_path, 1, ["x", "y"])
    mine = next(p for p in parts(tmp_path) if p.parent.name == "text=x")
    theirs = mine.with_name(mine.name.replace("000001", "000002"))
    theirs.write_text("mine")
    for _ in range(2):
        with pytest.raises(CheckpointError, match=r"text=x/part-000002-.* already, which is not by this query"):
            run(tmp_path)
        assert theirs.read_text() == "mine"
    theirs.unlink()
    run(tmp_path)
    assert read(tmp_path) == [0, 1, 2, 3]


def test_something_else_in_place_of_a_folder_is_told(tmp_path: Path) -> None:
    feed(tmp_path, 0, ["x"])
    run(tmp_path)
    (tmp_path / "out/text=y").write_text("mine")
    feed(tmp_path, 1, ["y"])
    for _ in range(2):
        with pytest.raises(CheckpointError, match=r"cannot make the folder text=y.*results of epoch 2 are kept"):
            run(tmp_path)
    (tmp_path / "out/text=y").unlink()
    run(tmp_path)
    assert read(tmp_path) == [0, 1]


def test_no_link_is_followed(tmp_path: Path) -> None:
    feed(tmp_path, 0, ["x"])
    run(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "out/text=y").symlink_to(elsewhere)
    feed(tmp_path, 1, ["y"])
    for _ in range(2):
        with pytest.raises(CheckpointError, match=r"text=y' is a symbolic link.*not followed"):
            run(tmp_path)
    assert not list(elsewhere.iterdir())
    (tmp_path / "out/text=y").unlink()
    run(tmp_path)
    assert read(tmp_path) == [0, 1]


def test_results_of_an_epoch_whose_manifest_is_damaged_are_replaced(tmp_path: Path) -> None:
    """In other folders the second time, as if cut into other tasks: what the first left would be counted twice."""
    feed(tmp_path, 0, ["x"])
    run(tmp_path)
    feed(tmp_path, 1, ["x"])
    run(tmp_path)
    manifest = tmp_path / "ck/epochs/000002.commit.json"
    manifest.write_bytes(manifest.read_bytes()[:-30])
    second = next(p for p in parts(tmp_path) if "000002" in p.name)
    moved = tmp_path / "out/text=z" / second.name
    moved.parent.mkdir()
    second.rename(moved)
    note = next((tmp_path / "ck/published").glob("sink*.json"))
    note.write_bytes(seal({**unseal(note.read_bytes(), "x"), "2": [f"text=z/{second.name}"]}))
    run(tmp_path)
    assert read(tmp_path) == [0, 1] and not moved.exists()


@pytest.mark.parametrize(
    "name", ["../part-1", "text=x/../../part-1", "/part-1", "a/part-1", "text=x/b/part-1", "text=x/y"]
)
def test_a_record_that_names_other_places_is_refused(tmp_path: Path, name: str) -> None:
    feed(tmp_path, 0, ["x"])
    run(tmp_path)
    manifest = tmp_path / "ck/epochs/000001.commit.json"
    body = unseal(manifest.read_bytes(), "x")
    body["outputs"] = [{**body["outputs"][0], "final": name}]
    manifest.write_bytes(seal(body))
    with pytest.raises(CheckpointError, match="restore the checkpoint from a backup; nothing has been changed"):
        run(tmp_path)


def test_a_crash_between_two_folders_loses_nothing(tmp_path: Path) -> None:
    feed(tmp_path, 0)
    seen: list[str] = []

    def hook(point: str) -> None:
        if point.startswith("publish ") and point not in seen:
            seen.append(point)
            raise Crash

    for _ in range(len(TEXTS) - 1):  # Null and the empty text share a folder.
        with pytest.raises(Crash), hooked(hook):
            run(tmp_path)
    run(tmp_path)
    assert read(tmp_path) == list(range(len(TEXTS)))
