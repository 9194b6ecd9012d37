"""A Spark stream through its inbox: every row once, also when Spark delivers a batch again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.engine.source import SourceReader, open_reader, read
from penstock.engine.source.inbox import MARKER, InboxReader, batch_folder, start_inbox, write_batch
from penstock.errors import UserError
from penstock.operators.source.operator import Source
from penstock.pattern.schema import Schema
from penstock.plan.promise import Disorder, Inbox

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = Schema.parse("ts timestamp, id bigint", time="ts")


def source(frame: object = None) -> Source:
    return Source((), SCHEMA, name="s", reader=Inbox(frame), promises=(Disorder("ts", 10),))


def ids(reader: SourceReader, rows: int | None = None) -> list[int]:
    return [i for s in reader.plan(rows, None, 2) for i in read(s, SCHEMA).table.column("id").to_pylist()]


def write(folder: Path, name: str, numbers: list[int]) -> None:
    folder.mkdir(exist_ok=True)
    rows = (json.dumps({"ts": f"2020-01-01T00:00:{i:02}", "id": i}) for i in numbers)
    (folder / f".{name}").write_text("\n".join(rows))
    (folder / f".{name}").rename(folder / name)


def test_a_spark_stream_is_read_once(spark: SparkSession, tmp_path: Path) -> None:
    incoming, inbox = tmp_path / "in", str(tmp_path / "inbox")
    write(incoming, "a.json", [0, 1, 2])

    def run() -> None:
        frame = spark.readStream.schema("ts timestamp, id bigint").json(str(incoming))
        handle = start_inbox(frame, inbox, str(tmp_path / "checkpoint"))
        assert handle.wait(120)
        handle.check()

    run()
    reader = open_reader(source(), inbox)
    assert ids(reader, 2) + ids(reader) == [0, 1, 2]
    deltas = [reader.position()]
    assert reader.exhausted
    write(incoming, "b.json", [3, 4])
    run()
    again = open_reader(source(), inbox)
    again.restore(None, json.loads(json.dumps(deltas)))
    splits = again.plan(None, None, 2)
    assert [i for s in splits for i in read(s, SCHEMA).table.column("id").to_pylist()] == [3, 4]
    assert all(s.high is not None for s in splits)  # timestamps with statistics, not INT96
    assert again.exhausted
    fresh = open_reader(source(), inbox)
    fresh.restore(json.loads(json.dumps(again.snapshot())), [])
    assert len(again.snapshot()["delta"]) == 1  # done batches need no list of their files
    assert fresh.exhausted


def test_a_batch_delivered_again(spark: SparkSession, tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    frame = spark.createDataFrame([(i,) for i in range(4)], "id bigint").selectExpr("timestamp_seconds(id) AS ts", "id")
    write_batch(frame.where("id < 2"), 0, str(inbox))
    before = {p.name: p.stat().st_mtime_ns for p in (inbox / batch_folder(0)).iterdir()}
    write_batch(frame.where("id < 2"), 0, str(inbox))  # complete: left as it is
    assert {p.name: p.stat().st_mtime_ns for p in (inbox / batch_folder(0)).iterdir()} == before
    write_batch(frame.where("id >= 2"), 1, str(inbox))
    (inbox / batch_folder(1) / MARKER).unlink()  # a crash before the marker
    reader = open_reader(source(), str(inbox))
    assert isinstance(reader, InboxReader)
    first = reader.plan(None, None, 1)
    assert {batch_folder(0)} == {Path(s.path).parent.name for s in first}
    assert reader.exhausted
    write_batch(frame.where("id >= 2"), 1, str(inbox))
    assert sorted(ids(reader)) == [2, 3]
    reader.discard(first)
    assert (inbox / batch_folder(0)).exists()
    write_batch(frame.where("id < 0"), 2, str(inbox))  # an empty batch
    assert ids(reader) == []
    assert reader.exhausted


def test_only_streams_have_an_inbox(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="streaming DataFrame"):
        start_inbox(spark.range(1), str(tmp_path), str(tmp_path))
    with pytest.raises(UserError, match="no inbox"):
        open_reader(source())
