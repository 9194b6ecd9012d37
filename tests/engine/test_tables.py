"""Tables in the engine: read again when they change, kept as they were when they cannot be read, swept when unused."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.checkpoint.storage import Storage
from penstock.engine import tables as engine
from penstock.engine.tables import TableKeeper, load, load_all
from penstock.errors import CheckpointError, PenstockError, SchemaError, SourceError, UserError
from penstock.plan.table import Table, table

ITEMS = table("items", "sku string, price int", key="sku")
VERSIONED = table("items", "sku string, price int, since int", key="sku", version="since")


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage.at(str(tmp_path / "checkpoint"))


class Clock:
    """Gives files times that differ, however fast a test writes them."""

    now = 0


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        names = list(rows[0])
        lines = [",".join("" if r[n] is None else str(r[n]) for n in names) for r in rows]
        path.write_text("\n".join([",".join(names), *lines, ""]))
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)
    touch(path)


def touch(path: Path) -> None:
    Clock.now += 1
    os.utime(path, (Clock.now, Clock.now))


def prices(storage: Storage, names: dict[str, str]) -> dict[str, int]:
    return {r["sku"]: r["price"] for r in load(storage, names["items"]).to_pylist()}


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_a_table_is_read_again_when_it_changes(format: str, tmp_path: Path, storage: Storage) -> None:
    file = tmp_path / "in" / f"items.{format}"
    read: Callable[..., Table] = getattr(ITEMS, f"read_{format}")
    write(file, [{"sku": "a", "price": 1}])
    keeper = TableKeeper({"items": read(str(tmp_path / "in"))})
    first = keeper.refresh(storage)
    assert prices(storage, first) == {"a": 1}
    assert keeper.refresh(storage) == first
    write(file, [{"sku": "a", "price": 2}, {"sku": "b", "price": 3}])
    second = keeper.refresh(storage)
    assert prices(storage, second) == {"a": 2, "b": 3}
    assert prices(storage, first) == {"a": 1}
    write(tmp_path / "in" / f"more.{format}", [{"sku": "c", "price": 4}])
    assert prices(storage, keeper.refresh(storage)) == {"a": 2, "b": 3, "c": 4}
    os.remove(tmp_path / "in" / f"more.{format}")
    assert keeper.refresh(storage) == second
    assert keeper.warnings == []


def test_an_unchanged_table_is_not_read(tmp_path: Path, storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "items.parquet", [{"sku": "a", "price": 1}])
    keeper = TableKeeper({"items": ITEMS.read_parquet(str(tmp_path / "items.parquet"))})
    first = keeper.refresh(storage)
    monkeypatch.setattr(engine, "read", None)
    assert keeper.refresh(storage) == first
    touch(tmp_path / "items.parquet")
    with pytest.raises(TypeError):
        keeper.refresh(storage)


def test_the_same_content_is_the_same_snapshot(tmp_path: Path, storage: Storage) -> None:
    write(tmp_path / "items.csv", [{"sku": "a", "price": 1}])
    declared = {"items": ITEMS.read_csv(str(tmp_path / "items.csv"))}
    keeper = TableKeeper(declared)
    first = keeper.refresh(storage)
    touch(tmp_path / "items.csv")
    assert keeper.refresh(storage) == first
    assert TableKeeper(declared).refresh(storage) == first
    assert storage.tree("tables") == list(first.values())


def damage_text(file: Path) -> None:
    write(file, [{"sku": "a", "price": "dear"}])


def lose_column(file: Path) -> None:
    write(file, [{"sku": "a", "cost": 1}])


def empty(file: Path) -> None:
    file.write_text("")
    touch(file)


def remove(file: Path) -> None:
    file.unlink()


def duplicate(file: Path) -> None:
    write(file, [{"sku": "a", "price": p, "since": 5} for p in (1, 2)])


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (damage_text, "table 'items': 1 row does not fit in '.*items.csv', for example .*dear.*'price'"),
        (lose_column, "table 'items': file '.*items.csv' has no column 'price'"),
        (empty, "table 'items': file 'items.csv' is empty"),
        (remove, "table 'items': path '.*items.csv' does not exist"),
        (duplicate, "table 'items': several rows of one version: sku a, since 5"),
    ],
)
def test_a_bad_table_stays_as_it_was(
    damage: Callable[[Path], None], said: str, tmp_path: Path, storage: Storage
) -> None:
    file = tmp_path / "items.csv"
    good = [{"sku": "a", "price": 1, "since": 0}]
    declared = (VERSIONED if damage is duplicate else ITEMS).read_csv(str(file))
    write(file, good)
    warnings: list[str] = []
    keeper = TableKeeper({"items": declared}, warnings)
    before = keeper.refresh(storage)
    damage(file)
    assert keeper.refresh(storage) == keeper.refresh(storage) == before
    assert len(warnings) == 1
    assert re.match(f"{said}.*: it stays as it was", warnings[0])
    with pytest.raises((UserError, SourceError, SchemaError), match=said):
        TableKeeper({"items": declared}).refresh(storage)
    write(file, [{"sku": "a", "price": 9, "since": 0}])
    assert prices(storage, keeper.refresh(storage)) == {"a": 9}


def test_a_parquet_file_that_is_not_whole_is_not_taken(tmp_path: Path, storage: Storage) -> None:
    file = tmp_path / "items.parquet"
    write(file, [{"sku": "a", "price": 1}])
    keeper = TableKeeper({"items": ITEMS.read_parquet(str(file))})
    before = keeper.refresh(storage)
    write(file, [{"sku": "b", "price": 2}])
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    assert keeper.refresh(storage) == before
    assert "not whole" in keeper.warnings[0]
    file.write_bytes(whole)
    assert prices(storage, keeper.refresh(storage)) == {"b": 2}


def test_text_is_left_alone_until_it_has_settled(tmp_path: Path, storage: Storage) -> None:
    file = tmp_path / "items.csv"
    write(file, [{"sku": "a", "price": 1}])
    keeper = TableKeeper({"items": ITEMS.read_csv(str(file), settle=3600)})
    before = keeper.refresh(storage)
    write(file, [{"sku": "a", "price": 2}])
    os.utime(file)  # written just now
    assert keeper.refresh(storage) == before
    again = TableKeeper({"items": ITEMS.read_csv(str(file), settle=3600)})
    again.restore(before)
    assert again.refresh(storage) == before
    assert prices(storage, again.refresh(storage, settled=True)) == {"a": 2}
    touch(file)  # written long ago
    assert prices(storage, keeper.refresh(storage)) == {"a": 2}
    assert keeper.warnings == []


def test_a_table_that_changes_while_it_is_read(
    tmp_path: Path, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "items.csv"
    write(file, [{"sku": "a", "price": 1}])
    read, busy = engine.read, 2

    def meddling(*given: Any, **named: Any) -> Any:
        nonlocal busy
        batch = read(*given, **named)
        if busy:
            busy -= 1
            write(file, [{"sku": "a", "price": 10 + busy}])
        return batch

    monkeypatch.setattr(engine, "read", meddling)
    keeper = TableKeeper({"items": ITEMS.read_csv(str(file))})
    before = keeper.refresh(storage)
    assert prices(storage, before) == {"a": 10}
    busy = 1
    touch(file)
    assert keeper.refresh(storage) == before  # not now; at the next epoch
    write(file, [{"sku": "a", "price": 3}])
    assert prices(storage, keeper.refresh(storage)) == {"a": 3}
    busy = 1000
    with pytest.raises(SourceError, match="changes while it is read"):
        TableKeeper({"items": ITEMS.read_csv(str(file))}).refresh(storage)


def test_after_a_restart_the_last_good_version_stands(tmp_path: Path, storage: Storage) -> None:
    file = tmp_path / "items.csv"
    write(file, [{"sku": "a", "price": 1}])
    declared = {"items": ITEMS.read_csv(str(file))}
    planned = TableKeeper(declared).refresh(storage)
    file.unlink()
    keeper = TableKeeper(declared)
    keeper.restore({**planned, "gone": "tables/gone/1.arrow"})
    assert keeper.refresh(storage) == planned
    assert "does not exist" in keeper.warnings[0]


def test_snapshots_that_no_plan_names_are_swept(tmp_path: Path, storage: Storage) -> None:
    file = tmp_path / "items.csv"
    keeper = TableKeeper({"items": ITEMS.read_csv(str(file))})
    planned = []
    for price in range(4):
        write(file, [{"sku": "a", "price": price}])
        planned.append(keeper.refresh(storage))
    gone = keeper.sweep(storage, planned[1:3])
    assert gone == [planned[0]["items"]]
    assert storage.tree("tables") == sorted(p["items"] for p in planned[1:])
    assert keeper.live([]) == {planned[3]["items"]}


def test_snapshots_are_opened_once_and_not_for_ever(tmp_path: Path, storage: Storage) -> None:
    file = tmp_path / "items.csv"
    keeper = TableKeeper({"items": ITEMS.read_csv(str(file))})
    write(file, [{"sku": "a", "price": -1}])
    first = keeper.refresh(storage)
    opened = load_all(storage, first)["items"]
    assert load(storage, first["items"]) is opened
    for price in range(engine.OPEN):
        write(file, [{"sku": "a", "price": price}])
        load_all(storage, keeper.refresh(storage))
    assert load(storage, first["items"]) is not opened
    assert opened.to_pylist() == [{"sku": "a", "price": -1}]


def test_a_snapshot_that_is_gone_or_torn_is_named(storage: Storage) -> None:
    with pytest.raises(CheckpointError, match=r"tables/items/0\.arrow of a table is missing or damaged"):
        load(storage, "tables/items/0.arrow")
    storage.write("tables/items/1.arrow", b"ARROW1")
    with pytest.raises(CheckpointError, match="missing or damaged"):
        load(storage, "tables/items/1.arrow")


def test_a_torn_snapshot_is_written_again(tmp_path: Path, storage: Storage) -> None:
    write(tmp_path / "items.csv", [{"sku": "a", "price": 1}])
    declared = {"items": ITEMS.read_csv(str(tmp_path / "items.csv"))}
    names = TableKeeper(declared).refresh(storage)
    torn = storage.read(names["items"])[:50]
    shutil.rmtree(storage.path("tables"))
    storage.write(names["items"], torn)
    assert prices(storage, TableKeeper(declared).refresh(storage)) == {"a": 1}


class Frame:
    """Stands in for a Spark DataFrame."""

    def __init__(self, **columns: Any) -> None:
        self.columns = columns

    def toArrow(self) -> pa.Table:
        return pa.table(self.columns)


def test_a_data_frame_is_collected_once_or_every_so_often(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    now, price = 0.0, 1
    monkeypatch.setattr(engine.time, "monotonic", lambda: now)
    once = TableKeeper({"items": ITEMS.from_spark(Frame(sku=["a"], price=pa.array([7], pa.int64())))})
    again = TableKeeper({"items": ITEMS.from_spark(lambda: Frame(sku=["a"], price=[price]), every="10 s")})
    assert prices(storage, once.refresh(storage)) == {"a": 7}
    assert prices(storage, again.refresh(storage)) == {"a": 1}
    now, price = 9.0, 2
    assert prices(storage, again.refresh(storage)) == {"a": 1}
    now = 10.0
    assert prices(storage, again.refresh(storage)) == {"a": 2}
    price = "dear"  # type: ignore[assignment]
    now = 20.0
    assert prices(storage, again.refresh(storage)) == {"a": 2}
    assert "column 'price' of the DataFrame is string, declared int" in again.warnings[0]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"sku": ["a"]}, "the DataFrame has no column 'price'"),
        ({"sku": ["a"], "price": [1 << 40]}, "is int64, declared int, and a value does not fit"),
        ({"sku": ["a"], "price": [1, 2]}, "Spark could not collect it"),
    ],
)
def test_a_data_frame_that_does_not_fit(columns: dict[str, Any], said: str, storage: Storage) -> None:
    with pytest.raises(PenstockError, match=f"table 'items': .*{said}"):
        TableKeeper({"items": ITEMS.from_spark(Frame(**columns))}).refresh(storage)
