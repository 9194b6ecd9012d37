"""Buckets: a function of the key values alone, the same in every run, version and cut into chunks."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.epoch.submitting import sweep_depots
from penstock.engine.tasks.exchange import LARGE, buckets_of, decode, encode, hash_column, scatter

KEYS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int": (pa.int32(), st.integers(-5, 5)),
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "text": (pa.string(), st.text(max_size=3)),
    "double": (pa.float64(), st.floats()),
    "bool": (pa.bool_(), st.booleans()),
    "date": (pa.date32(), st.dates()),
    "time": (pa.timestamp("us"), st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1))),
    "decimal": (pa.decimal128(10, 2), st.decimals(-1000, 1000, places=2)),
    "binary": (pa.binary(), st.binary(max_size=3)),
}

# A checkpoint's buckets depend on these: if one changes, old checkpoints can no longer be continued.
GOLDEN: list[tuple[pa.DataType, list[Any], str]] = [
    (
        pa.int32(),
        [0, 1, -1, 42, None],
        "e220a8397b1dcdaf 910a2dec89025cc1 e4d971771b652c20 bdd732262feb6e95 6a09e667f3bcc909",
    ),
    (
        pa.int64(),
        [0, 1, -1, 42, None],
        "e220a8397b1dcdaf 910a2dec89025cc1 e4d971771b652c20 bdd732262feb6e95 6a09e667f3bcc909",
    ),
    (
        pa.float64(),
        [0.0, 1.5, float("nan"), float("inf"), None],
        "e220a8397b1dcdaf d6dab18e1392608a c72971d82e15bb46 249e5410c2f97d99 6a09e667f3bcc909",
    ),
    (pa.bool_(), [True, False, None], "910a2dec89025cc1 e220a8397b1dcdaf 6a09e667f3bcc909"),
    (
        pa.timestamp("us"),
        [dt.datetime(2013, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59), None],
        "8d6361c2fbea4cef a095d63c0ebaccd2 6a09e667f3bcc909",
    ),
    (
        pa.date32(),
        [dt.date(2013, 1, 1), dt.date(1969, 12, 31), None],
        "c2d4b737258faae5 e4d971771b652c20 6a09e667f3bcc909",
    ),
]


@pytest.mark.parametrize(("kind", "values", "hashes"), GOLDEN, ids=[str(t) for t, _, _ in GOLDEN])
def test_hashes_never_change(kind: pa.DataType, values: list[Any], hashes: str) -> None:
    assert " ".join(f"{h:016x}" for h in hash_column(pa.chunked_array([pa.array(values, kind)]))) == hashes


@given(st.data())
def test_a_bucket_depends_on_the_key_alone(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(KEYS)), min_size=1, max_size=3, unique=True))
    size = data.draw(st.integers(1, 12))
    columns = {}
    for name in names:
        kind, values = KEYS[name]
        columns[name] = pa.array(data.draw(st.lists(st.none() | values, min_size=size, max_size=size)), kind)
    table = pa.table(columns)
    buckets = data.draw(st.integers(1, 7))
    place = buckets_of(table, names, buckets)
    assert place.min() >= 0 and place.max() < buckets
    cut = data.draw(st.integers(0, size))
    chunked = pa.concat_tables([table.slice(0, cut), table.slice(cut)])
    assert (buckets_of(chunked, names, buckets) == place).all()
    order = np.array(data.draw(st.permutations(range(size))))
    assert (buckets_of(table.take(pa.array(order)), names, buckets) == place[order]).all()


def test_values_that_are_one_group_share_a_bucket() -> None:
    zeros = pa.chunked_array([pa.array([0.0, -0.0])])
    assert len(set(hash_column(zeros).tolist())) == 1
    quiet, other = np.array([0x7FF8000000000000, 0xFFF8000000000001], np.uint64).view(np.float64)
    assert len(set(hash_column(pa.chunked_array([pa.array([quiet, other])])).tolist())) == 1
    text = ["a", "b", None, "a"]
    coded = pa.chunked_array([pa.array(text).dictionary_encode()])
    assert hash_column(coded).tolist() == hash_column(pa.chunked_array([text])).tolist()
    wide = pa.chunked_array([pa.array(text, pa.large_string())])
    assert hash_column(wide).tolist() == hash_column(pa.chunked_array([text])).tolist()


def test_keys_spread_evenly() -> None:
    table = pa.table({"a": np.arange(10_000) // 100, "b": np.arange(10_000) % 100})
    counts = np.bincount(buckets_of(table, ["a", "b"], 8), minlength=8)
    assert counts.min() > 1000 and counts.max() < 1500


@given(st.lists(st.tuples(st.integers(0, 9), st.integers()), max_size=30), st.integers(1, 5))
def test_scatter_parts_every_row_once_in_order(rows: list[tuple[int, int]], buckets: int) -> None:
    table = pa.table(
        {"k": pa.array([k for k, _ in rows], pa.int32()), "n": pa.array(range(len(rows)), pa.int64())},
    )
    parts = dict(scatter(table, ["k"], buckets))
    assert sorted(n for part in parts.values() for n in part["n"].to_pylist()) == list(range(len(rows)))
    for bucket, part in parts.items():
        numbers = part["n"].to_pylist()
        assert numbers and numbers == sorted(numbers)
        assert set(buckets_of(part, ["k"], buckets).tolist()) == {bucket}
        assert decode(encode(part)).equals(part)


def test_a_large_parcel_is_a_file_where_there_is_a_depot(tmp_path: Path) -> None:
    small, large = pa.table({"x": range(10)}), pa.table({"x": range(LARGE // 8)})
    assert not isinstance(encode(small, str(tmp_path)), str)
    assert not isinstance(encode(large), str)
    path = encode(large, str(tmp_path))
    assert [str(p) for p in tmp_path.iterdir()] == [path]
    rows = decode(path)
    Path(path).unlink()  # Whoever has it open need not mind.
    assert rows.equals(large)


def test_parcels_of_a_driver_that_was_killed_are_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True
    ).stdout
    names = [f"penstock-parcels-{gone.strip()}-a", f"penstock-parcels-{os.getpid()}-b", "penstock-parcels-mine"]
    for name in names:
        (tmp_path / name).mkdir()
    sweep_depots()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(names[1:])


def test_without_room_on_the_disk_a_parcel_stays_in_memory(tmp_path: Path) -> None:
    table = pa.table({"x": range(1 << 18)})
    assert isinstance(encode(table, str(tmp_path)), str)
    payload = encode(table, str(tmp_path / "there is no such folder"))
    assert not isinstance(payload, str) and decode(payload).equals(table)
