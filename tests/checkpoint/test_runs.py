"""Runs and units: what is written comes back, damage is told, and changes add up."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow.fs import SubTreeFileSystem

from penstock.checkpoint.intact import DamagedError, damage
from penstock.checkpoint.runs import (
    Change,
    StoredRun,
    UnitKey,
    apply,
    read_run,
    run_names,
    units_from_json,
    units_to_json,
    write_run,
)
from penstock.checkpoint.storage import Storage
from penstock.errors import CheckpointError

KEY = UnitKey("aggregate-1", 3, -2)
TABLE = pa.table({"label": [1, 2, 3, 4], "n": [10, 20, 30, 40]})


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage.at(str(tmp_path))


def test_a_run_comes_back_without_what_is_done(storage: Storage) -> None:
    run = write_run(storage, KEY, 7, TABLE, 1, 4)
    assert run.bytes == storage.size(run.name) and (run.rows, run.low, run.high) == (4, 1, 4)
    assert read_run(storage, KEY, run).equals(TABLE)
    assert read_run(storage, KEY, replace(run, skip=3))["n"].to_pylist() == [40]


def test_a_long_run_is_mapped_in_one_piece(storage: Storage) -> None:
    """A lookup in a column of several pieces would copy all of it, in every epoch."""
    pieces = pa.chunked_array([list(range(50_000)), list(range(150_000))])
    run = write_run(storage, KEY, 1, pa.table({"a": pieces}), None, None)
    found = read_run(storage, KEY, run)
    assert found["a"].num_chunks == 1
    assert found["a"].equals(pieces)


def test_two_attempts_write_two_files(storage: Storage) -> None:
    assert write_run(storage, KEY, 1, TABLE, 1, 4).name != write_run(storage, KEY, 1, TABLE, 1, 4).name


@pytest.mark.parametrize("damage", ["deleted", "cut", "emptied", "shorter"])
def test_a_damaged_run_is_told_by_name(storage: Storage, damage: str) -> None:
    run = write_run(storage, KEY, 7, TABLE, 1, 4)
    path = Path(storage.path(run.name))
    if damage == "deleted":
        path.unlink()
    elif damage == "shorter":
        run = replace(run, rows=5)
    else:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 if damage == "cut" else 0])
    with pytest.raises(CheckpointError, match=rf"aggregate-1, bucket 3.*{path.name}.*Hint: restore the file"):
        read_run(storage, KEY, run)


@pytest.mark.parametrize("remote", [False, True])
def test_no_flipped_bit_and_no_empty_page_of_a_run_goes_unnoticed(storage: Storage, remote: bool) -> None:
    if remote:
        storage = Storage(storage.url, SubTreeFileSystem("/", storage.filesystem), storage.base)
    rng = random.Random(1)
    table = pa.table({"label": list(range(2000)), "n": [rng.random() for _ in range(2000)]})
    run = write_run(storage, KEY, 7, table, 1, 4)
    path = Path(storage.path(run.name))
    whole, beside = path.read_bytes(), path.with_name("beside")
    assert read_run(storage, KEY, run).equals(table)  # That it was whole once is no excuse.
    for attempt in range(40):
        data = bytearray(whole)
        at = rng.randrange(len(data))
        if attempt % 2:
            data[at] ^= 1 << rng.randrange(8)
        else:
            at = at // 4096 * 4096
            data[at : at + 4096] = bytes(len(data[at : at + 4096]))
        beside.write_bytes(data)
        beside.replace(path)  # Not in place: within a moment, the file system would give both the same time.
        with pytest.raises(DamagedError, match=r"missing or damaged: .*checksum") as caught:
            read_run(storage, KEY, run)
        assert caught.value.name == run.name
        assert damage(storage, run.file) and not damage(storage, run.file, deep=False)
    path.write_bytes(whole)
    assert read_run(storage, KEY, run).equals(table) and damage(storage, run.file) is None


def test_a_run_that_cannot_be_written_leaves_nothing(storage: Storage) -> None:
    class Full:
        def __getattr__(self, name: str) -> object:
            return getattr(storage.filesystem, name)

        def open_output_stream(self, path: str) -> object:
            Path(path).write_bytes(b"half")
            raise OSError(28, "No space left on device")

    full = Storage(storage.url, Full(), storage.base)  # type: ignore[arg-type]
    with pytest.raises(CheckpointError, match=r"bucket 3: cannot write state .*No space left.*nothing is lost"):
        write_run(full, KEY, 1, TABLE, 1, 4)
    assert storage.tree() == []


@given(
    st.dictionaries(
        st.builds(UnitKey, st.sampled_from(["aggregate-1", "a:b/c-2"]), st.integers(0, 9), st.integers(-9, 9)),
        st.lists(st.builds(StoredRun, st.text(max_size=3), *[st.integers(1, 9)] * 3), min_size=1, max_size=3).map(
            tuple
        ),
    )
)
def test_units_survive_the_manifest(units: dict[UnitKey, tuple[StoredRun, ...]]) -> None:
    assert units_from_json(units_to_json(units)) == units


@given(st.data())
def test_changes_of_different_buckets_commute(data: st.DataObject) -> None:
    """Tasks report in any order: each has units of its own, so what comes out is the same."""
    units = {UnitKey("a", b): tuple(StoredRun(f"{b}-{i}", 4, 1, 1) for i in range(3)) for b in range(4)}
    changes = []
    for key, runs in units.items():
        fates = data.draw(st.lists(st.sampled_from(["keep", "drop", "skip", "all"]), min_size=3, max_size=3))
        changes.append(
            Change(
                key,
                tuple(r.name for r, f in zip(runs, fates) if f == "drop"),
                tuple((r.name, 4 if f == "all" else 1) for r, f in zip(runs, fates) if f in ("skip", "all")),
                (StoredRun(f"{key.bucket}-new", 2, 1, 2),) if data.draw(st.booleans()) else (),
            )
        )
    after = apply(units, changes)
    assert after == apply(units, data.draw(st.permutations(changes)))
    live = {r.name: r.live for runs in after.values() for r in runs}
    for change in changes:
        gone, skipped = set(change.dropped), dict(change.skipped)
        for run in units[change.key]:
            left = 0 if run.name in gone else run.live - skipped.get(run.name, 0)
            assert live.get(run.name, 0) == left
        assert all(live[r.name] == r.live for r in change.added)
    assert all(runs for runs in after.values())
    assert run_names(after) == set(live)
