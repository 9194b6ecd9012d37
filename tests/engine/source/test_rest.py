"""A folder that stays as it was is not listed anew, and nothing is missed for it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.engine.source import folder
from penstock.engine.source.folder import Folder
from penstock.engine.source.listing import SourceReader, open_reader
from penstock.errors import SourceError
from penstock.operators.source.operator import Source
from penstock.pattern.schema import Schema
from penstock.plan.promise import Files

SCHEMA = Schema.parse("k int")


def write(path: Path, rows: int) -> None:
    pq.write_table(pa.table({"k": pa.array(range(rows), pa.int32())}), path)


def settled(path: Path) -> None:
    """As if nothing had happened in a folder for a while."""
    past = time.time_ns() - 10**9
    for at in (path, *(p for p in path.rglob("*") if p.is_dir())):
        os.utime(at, ns=(past, past))


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One for each listing."""
    seen: list[int] = []
    before = Folder.listing

    def listing(self: Folder) -> folder.Listing:
        seen.append(1)
        return before(self)

    monkeypatch.setattr(Folder, "listing", listing)
    monkeypatch.setattr(folder, "RELIST", 3600)
    return seen


def reader(path: Path) -> SourceReader:
    return open_reader(Source((), SCHEMA, name="s", reader=Files(str(path), "parquet", order="name")))


def rows(found: SourceReader) -> int:
    return sum(s.stop - s.start for s in found.plan(None, None, 1))


def test_it_is_listed_when_something_came_or_went(tmp_path: Path, listings: list[int]) -> None:
    (tmp_path / "p=1").mkdir()
    write(tmp_path / "p=1" / "a", 2)
    settled(tmp_path)
    found = reader(tmp_path)
    assert [rows(found) for _ in range(9)] == [2] + 8 * [0]
    assert len(listings) == 1
    write(tmp_path / "p=1" / "b", 3)
    assert rows(found) == 3 and len(listings) == 2
    assert rows(found) == 0 and len(listings) == 3  # It has changed too recently: another file may have come since.
    settled(tmp_path)
    assert [rows(found) for _ in range(5)] == 5 * [0]
    assert len(listings) == 4


def test_of_those_still_to_be_read_each_is_looked_at_again(tmp_path: Path, listings: list[int]) -> None:
    for name in "abc":
        write(tmp_path / name, 2)
    settled(tmp_path)
    found = reader(tmp_path)
    assert sum(s.stop - s.start for s in found.plan(2, None, 1)) == 2
    write(tmp_path / "b", 5)  # In place: the folder does not change.
    assert [sum(s.stop - s.start for s in found.plan(5, None, 1)) for _ in range(3)] == [5, 2, 0]
    assert len(listings) == 1


def test_that_a_file_was_rewritten_after_it_was_read_is_found_out_later(
    tmp_path: Path, listings: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a", 2)
    settled(tmp_path)
    found = reader(tmp_path)
    assert rows(found) == 2
    write(tmp_path / "a", 3)
    assert rows(found) == 0
    monkeypatch.setattr(folder, "RELIST", 0)
    with pytest.raises(SourceError, match="changed after it was read"):
        rows(found)
