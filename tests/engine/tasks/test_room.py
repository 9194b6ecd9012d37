"""A join with more results than a task may hold: passed on in slices, or an error that says whose they are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.engine.tasks.room import RoomError
from penstock.portal.testing import local_session

SIDE = 1_500


def joined(home: Path) -> ps.Stream:
    """A join of one large key, and of many that occur once."""
    sides = []
    for name in ("a", "b"):
        folder = home / name
        folder.mkdir()
        keys = pa.array([7] * SIDE + list(range(100, 200)), pa.int32())
        pq.write_table(pa.table({"k": keys, name: pa.array(range(SIDE + 100), pa.int64())}), folder / "0.parquet")
        sides.append(ps.stream(name, f"k int, {name} bigint").read_parquet(str(folder)).ends())
    return sides[0].join(sides[1], "k")


def run(query: ps.Stream, sink: ps.Target, home: Path, memory: str) -> ps.Run:
    options = {"trigger": "available_now", "checkpoint": str(home / "checkpoint"), "buckets": 1}
    return query.start(sink, spark=local_session(), memory=memory, **options).wait()


def test_results_are_written_in_slices(tmp_path: Path) -> None:
    run(joined(tmp_path), ps.parquet(str(tmp_path / "out")), tmp_path, "16MB")
    files = sorted((tmp_path / "out").glob("part-*.parquet"))
    assert len(files) > 1
    found = ds.dataset(files).to_table()
    assert found.num_rows == SIDE * SIDE + 100
    assert found.group_by(["a", "b"]).aggregate([]).num_rows == SIDE * SIDE + 100  # Each pair once.


def test_an_aggregate_takes_them_in_slices(tmp_path: Path) -> None:
    target = ps.memory()
    run(joined(tmp_path).group_by("k").agg(n="count(*)", s="sum(a + b)"), target, tmp_path, "16MB")
    (large,) = (row for row in target.rows() if row["k"] == 7)
    assert large == {"k": 7, "n": SIDE * SIDE, "s": SIDE * SIDE * (SIDE - 1)}
    assert len(target.rows()) == 101


def test_what_must_be_held_and_does_not_fit_is_told_with_its_key(tmp_path: Path) -> None:
    with pytest.raises(
        RoomError, match=r"^join-1: k 7 alone makes 2,250,000 pairs in one epoch, more than memory='16MB'"
    ):
        run(joined(tmp_path).distinct(), ps.memory(), tmp_path, "16MB")
    # Nothing is lost: with more room it goes on from there.
    target = ps.memory()
    sides = [ps.stream(n, f"k int, {n} bigint").read_parquet(str(tmp_path / n)).ends() for n in ("a", "b")]
    run(sides[0].join(sides[1], "k").distinct(), target, tmp_path, "2GB")
    assert target.table().num_rows == SIDE * SIDE + 100


def test_running_out_of_memory_is_no_raw_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Arrow says it when the machine has no more."""

    def full(*_: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 3200000000 failed")

    monkeypatch.setattr("penstock.operators.join.kernel.JoinKernel._joined", full)
    with pytest.raises(RoomError, match=r"^join-1: k 7 alone makes 2,250,000 pairs"):
        run(joined(tmp_path), ps.memory(), tmp_path, "2GB")
