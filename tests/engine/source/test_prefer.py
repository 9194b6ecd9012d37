"""A wish changes which rows are read first, never which rows are read; where promises speak of order, not even that."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.source import Split, open_reader, read, turns
from penstock.engine.source.inbox import MARKER, InboxReader, batch_folder
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Schema
from penstock.plan.promise import (
    After,
    Bounds,
    Disorder,
    Domain,
    EndOfSource,
    Files,
    Generated,
    InBand,
    Monitored,
    Once,
    Promise,
    WhenAll,
    WithinRows,
)

SCHEMA = Schema.parse("ts bigint, key int", time="ts")
Wish = tuple[Pattern, ...]


def wish(*texts: str) -> Wish:
    return tuple(Pattern.parse(text, SCHEMA) for text in texts)


def write(path: Path, groups: Sequence[Sequence[int]], first: int = 0) -> int:
    """A file with row groups of the given keys; times count up from `first`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, SCHEMA.arrow) as writer:
        for keys in groups:
            times = range(first, first + len(keys))
            first += len(keys)
            columns = [pa.array(times, pa.int64()), pa.array(keys, pa.int32())]
            writer.write_table(pa.table(columns, schema=SCHEMA.arrow))
    return first


def source(path: Path, *promises: Promise) -> Source:
    return Source((), SCHEMA, name="t", promises=promises, reader=Files(str(path), "parquet", order="name"))


def times(splits: Sequence[Split]) -> list[int]:
    return [t for s in splits for t in read(s, SCHEMA).table.column("ts").to_pylist()]


@settings(max_examples=25)
@given(
    files=st.lists(
        st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=4), max_size=4),
        min_size=1,
        max_size=4,
    ),
    wishes=st.lists(
        st.sampled_from(["[*, 2]", "[*, >= 3]", "[*, {0, 4}]", "[[5, 20), *]", "[< 9, 1]", "[> 99, *]"]), max_size=3
    ),
    promises=st.sampled_from([(), (EndOfSource(),), (Bounds("key", 0, 3), Domain("key", (0, 1, 2)))]),
    max_rows=st.one_of(st.none(), st.integers(1, 6)),
    parallelism=st.integers(1, 3),
    begin=st.integers(0, 2),
    crashes=st.sets(st.integers(0, 8)),
)
def test_every_row_is_read_once_and_the_wanted_ones_first(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[list[int]]],
    wishes: list[str],
    promises: tuple[Promise, ...],
    max_rows: int | None,
    parallelism: int,
    begin: int,
    crashes: set[int],
) -> None:
    folder = tmp_path_factory.mktemp("in")
    first, group_of = 0, {}
    for i, groups in enumerate(files):
        at = first
        for keys in groups:
            group_of.update({at + n: (i, keys, range(at, at + len(keys))) for n in range(len(keys))})
            at += len(keys)
        first = write(folder / f"{i}.parquet", groups, first)
    src = source(folder, *promises)
    prefer = wish(*wishes)
    reader = open_reader(src)
    deltas: list[Any] = []
    epochs: list[list[int]] = []
    ordinals: list[int] = []
    # The wish may come when something is read already.
    while splits := reader.plan(max_rows, None, parallelism, prefer=prefer if len(epochs) >= begin else ()):
        if len(epochs) in crashes:
            reader = open_reader(src)
            reader.restore(None, deltas)
            reader.advance([Split.from_json(json.loads(json.dumps(s.to_json()))) for s in splits])
        if len(epochs) % 3 == 2:
            deltas = [json.loads(json.dumps(reader.snapshot()))]
            reader.position()
        else:
            deltas.append(json.loads(json.dumps(reader.position())))
        epochs.append(times(splits))
        ordinals += [s.ordinal for s in splits]
        if max_rows is not None and len(splits) > 1:
            assert len(epochs[-1]) <= max_rows
    assert reader.exhausted
    assert sorted(t for epoch in epochs for t in epoch) == list(range(first))
    assert ordinals == list(range(len(ordinals)))

    def rank(t: int) -> int:
        """The first wish that the row group of a row may meet, by what its least and greatest values say."""
        _, keys, span = group_of[t]
        hull = Pattern.parse(f"[[{span[0]}, {span[-1]}], [{min(keys)}, {max(keys)}]]", SCHEMA)
        return next((i for i, p in enumerate(prefer) if not p.intersect(hull).is_empty), len(prefer))

    ranks = [[rank(t) for t in epoch] for epoch in epochs[begin:]]
    for earlier, later in itertools.pairwise(ranks):
        assert max(earlier, default=0) <= min(later, default=len(prefer))


@pytest.mark.parametrize(
    "promise",
    [
        Disorder("ts", 5),
        WithinRows("ts", 5),
        Monitored("ts"),
        InBand(),
        After("key", "ts", 5),
        Once("key"),
        WhenAll("key", (1, 2, 3), "ts"),
    ],
)
def test_where_promises_speak_of_order_it_stays(tmp_path: Path, promise: Promise) -> None:
    write(tmp_path / "a.parquet", [[1], [2], [3]])
    promises = (promise, Disorder("ts", 5)) if isinstance(promise, After) else (promise,)
    reader = open_reader(source(tmp_path, *promises))
    found = [times(reader.plan(1, None, 1, prefer=wish("[*, 3]"))) for _ in range(3)]
    assert found == [[0], [1], [2]]


def test_the_newest_wish_comes_before_older_ones(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [[1], [2], [3], [4]])
    reader = open_reader(source(tmp_path))
    prefer = wish("[*, 4]", "[*, 2]")
    assert [times(reader.plan(1, None, 1, prefer=prefer)) for _ in range(5)] == [[3], [1], [0], [2], []]


def test_a_file_that_is_begun_waits_for_what_is_preferred(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [[1, 1], [1, 1]])
    write(tmp_path / "b.parquet", [[1, 1], [2, 2, 2]], 4)
    src = source(tmp_path)
    reader = open_reader(src)
    assert times(reader.plan(1, None, 1)) == [0]
    assert times(reader.plan(2, None, 1, prefer=wish("[*, 2]"))) == [6, 7]
    position = reader.position()
    assert [[name, taken] for name, taken, *_ in position["begun"]] == [
        ["a.parquet", [[0, 1]]],
        ["b.parquet", [[2, 4]]],
    ]
    again = open_reader(src)
    again.restore(None, [position])
    assert times(again.plan(2, None, 1, prefer=wish("[*, 2]"))) == [8, 1]
    assert again.position()["begun"] != position["begun"]
    rest = again.plan(None, None, 1)
    assert [(s.start, s.stop, s.last) for s in rest] == [(2, 4, True), (0, 2, True)]
    assert times(rest) == [2, 3, 4, 5]
    assert again.position()["begun"] == []
    assert again.snapshot()["begun"] == []


def test_neighbours_that_are_taken_together_are_one_split(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [[1], [2], [1], [2], [2]])
    reader = open_reader(source(tmp_path))
    splits = reader.plan(4, None, 1, prefer=wish("[*, 2]"))
    assert [(s.start, s.stop) for s in splits] == [(0, 2), (3, 5)]
    assert [(s.start, s.stop, s.last) for s in reader.plan(4, None, 1, prefer=wish("[*, 2]"))] == [(2, 3, True)]


def test_a_wish_looks_into_so_many_files_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_LOOKED_AHEAD", 2)
    for i in range(4):
        write(tmp_path / f"{i}.parquet", [[i]], i)
    reader = open_reader(source(tmp_path))
    found = [times(reader.plan(1, None, 1, prefer=wish("[*, {1, 3}]"))) for _ in range(4)]
    assert found == [[1], [0], [3], [2]]


def test_files_that_are_not_whole_are_named_once_and_read_later(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [[1]])
    write(tmp_path / "b.parquet", [[2]], 1)
    whole = (tmp_path / "b.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(whole[:-3])
    reader = open_reader(source(tmp_path))
    assert times(reader.plan(None, None, 1, prefer=wish("[*, 2]"))) == [0]
    assert [Path(name).name for name, _ in reader.waiting] == ["b.parquet"]
    (tmp_path / "b.parquet").write_bytes(whole)
    assert times(reader.plan(None, None, 1, prefer=wish("[*, 2]"))) == [1]


def test_guard_and_wish_together(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [[1], [2], [3], [4]])
    reader = open_reader(source(tmp_path))
    splits = reader.plan(1, None, 1, guard=wish("[*, {2, 3}]"), prefer=wish("[*, >= 3]"))
    assert [(s.start, s.stop, s.spared) for s in splits] == [(2, 3, True), (3, 4, False)]
    splits = reader.plan(None, None, 1, guard=wish("[*, {2, 3}]"), prefer=wish("[*, >= 3]"))
    assert [(s.start, s.stop, s.spared, s.last) for s in splits] == [(0, 1, False, False), (1, 2, True, True)]


def test_text_generators_and_inboxes_keep_their_order(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c/a.csv").write_text("ts,key\n0,1\n")
    (tmp_path / "c/b.csv").write_text("ts,key\n1,2\n")
    text = Source((), SCHEMA, name="t", reader=Files(str(tmp_path / "c"), "csv", order="name"))
    prefer = wish("[*, 2]")
    assert [Path(s.path).name for s in open_reader(text).plan(1, None, 1, True, prefer=prefer)] == ["a.csv"]
    columns = (("ts", "serial", ()), ("key", "key", (3,)))
    made = Source((), SCHEMA, name="t", reader=Generated(9, None, 3, 0, columns=columns))
    assert [(s.start, s.stop) for s in open_reader(made).plan(4, None, 1, prefer=prefer)] == [(0, 4)]
    for batch in range(2):
        folder = tmp_path / "inbox" / batch_folder(batch)
        write(folder / "p.parquet", [[batch + 1]], batch)
        (folder / MARKER).write_text(json.dumps({"batch": batch, "files": ["p.parquet"]}))
    inbox = InboxReader(Source((), SCHEMA, name="t"), str(tmp_path / "inbox"))
    assert [times(inbox.plan(1, None, 1, prefer=prefer)) for _ in range(2)] == [[0], [1]]
