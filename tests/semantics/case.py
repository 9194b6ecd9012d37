"""A case: what streams bring, a query over them, and the ways in which files and epochs may cut them.

Everything is text and plain values, so that a failing case can be read, and pasted into a test.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import cloudpickle
import pyarrow as pa
import pyarrow.parquet as pq

import penstock as ps
from penstock.engine.source.formats.lasting import as_written
from penstock.pattern.pattern import Pattern

#: Every event has an `id`, so that dead letters can be told apart.
SCHEMA = "ts int, k string, id int, v double, n bigint, d decimal(9,2)"

Item = tuple[str, Mapping[str, Any] | str]


def twice(rows: pa.Table) -> pa.Table:
    """Each event, and a copy of it with another value."""
    copy = rows.set_column(rows.schema.get_field_index("n"), "n", pa.array([7] * rows.num_rows, pa.int64()))
    return pa.concat_tables([rows, copy])


def odd_only(rows: pa.Table) -> pa.Table:
    return rows.filter(pa.array([bool(i % 2) for i in rows["id"].to_pylist()], pa.bool_()))


FUNCTIONS = {"twice": twice, "odd_only": odd_only, "ps": ps}
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # Spark's workers do not know the folder of the tests.


@dataclass(frozen=True)
class Feed:
    """One source: items in order of arrival, each with its partition; text is a punctuation."""

    name: str
    items: tuple[Item, ...]
    promises: str = ".ends()"
    format: str = "parquet"
    schema: str = SCHEMA
    #: The attributes with the ends of lifetimes, if events have these; then there is no other time.
    lifetime: tuple[str, str] | None = None

    @property
    def partitions(self) -> list[str]:
        return list(dict.fromkeys(p for p, _ in self.items))

    @cached_property
    def declared(self) -> ps.Stream:
        time = self.schema.split()[0] if self.lifetime is None else None
        stream = ps.stream(self.name, self.schema, time=time, lifetime=self.lifetime)
        made: ps.Stream = eval(f"s{self.promises}", {"s": stream, "ps": ps})
        return made

    @property
    def in_band(self) -> bool:
        return "punctuated" in self.promises

    def row(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {name: given.get(name) for name in as_written(self.declared.schema).names}

    def arrivals(self) -> list[tuple[str, Any]]:
        schema = self.declared.schema
        return [
            (p, Pattern.parse(item, schema)) if isinstance(item, str) else (p, self.row(item)) for p, item in self.items
        ]

    def rows(self) -> list[dict[str, Any]]:
        return [self.row(item) for _, item in self.items if not isinstance(item, str)]


@dataclass(frozen=True)
class Cut:
    """How the same input is laid out in files and worked off: must never change a result."""

    file_rows: int = 1000
    group_rows: int = 1000
    max_rows: int | None = None
    buckets: int = 2
    parallelism: int = 2
    overlap: bool = True
    restart: bool = False
    batch_rows: int = 1000
    empty_file: bool = False
    as_if_large: bool = False
    fuse_below: int = 4 << 20
    rewrite_above: float = 0.5
    merge_above: int = 8
    on_error: str = "reject"

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "max_rows": self.max_rows,
            "buckets": self.buckets,
            "overlap": self.overlap,
            "batch_rows": self.batch_rows,
            "fuse_below": self.fuse_below,
            "rewrite_above": self.rewrite_above,
            "merge_above": self.merge_above,
            "on_error": self.on_error,
        }


WHOLE = Cut()


@dataclass(frozen=True)
class Case:
    """Feeds and a query over them, as Python text in which each feed goes by its name."""

    query: str
    feeds: tuple[Feed, ...]

    def stream(self, sources: Mapping[str, ps.Stream] | None = None) -> ps.Stream:
        sources = sources or {f.name: f.declared for f in self.feeds}
        made: ps.Stream = eval(self.query, {**FUNCTIONS, **sources})
        return made

    def ending(self) -> Case:
        """The same case with sources that say when they are over."""
        feeds = (f if ".ends()" in f.promises else replace(f, promises=f.promises + ".ends()") for f in self.feeds)
        return replace(self, feeds=tuple(feeds))

    def on_files(self, home: Path, cut: Cut) -> ps.Stream:
        """The query over files that hold the feeds."""
        sources = {}
        for feed in self.feeds:
            folder = home / feed.name
            write(feed, folder, cut)
            many = "directory" if len(feed.partitions) > 1 else "single"
            read = getattr(feed.declared, f"read_{feed.format}")
            sources[feed.name] = read(str(folder), order="name", partitions=many)
        return self.stream(sources)


def write(feed: Feed, folder: Path, cut: Cut) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if cut.empty_file and feed.format == "parquet":
        _write_file(feed, [], folder / f"{(feed.partitions or [''])[0] or '.'}/000.parquet", cut)
    # Written last to first: the order of names counts, not that of writing.
    for partition, number, items in reversed(list(_files(feed, cut))):
        _write_file(feed, items, folder / (partition or ".") / f"{number:03d}.{feed.format}", cut)


def _files(feed: Feed, cut: Cut) -> Iterator[tuple[str, int, list[Any]]]:
    for partition in feed.partitions or [""]:
        items = [item for p, item in feed.items if p == partition]
        for number, start in enumerate(range(0, max(1, len(items)), cut.file_rows), start=1):
            yield partition, number, items[start : start + cut.file_rows]


def _write_file(feed: Feed, items: list[Any], path: Path, cut: Cut) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = as_written(feed.declared.schema)
    records = [
        {**dict.fromkeys(schema.names), "punctuation": i}
        if isinstance(i, str)
        else {**feed.row(i), "punctuation": None}
        for i in items
    ]
    if feed.format == "json":
        path.write_text("".join(json.dumps(r, default=str) + "\n" for r in records) or "\n")
        return
    fields = [*schema.arrow, pa.field("punctuation", pa.string())] if feed.in_band else list(schema.arrow)
    table = pa.Table.from_pylist(records, schema=pa.schema(fields))
    pq.write_table(table, path, row_group_size=cut.group_rows)


def at(seconds: float) -> datetime:
    """A timestamp by its distance from the epoch."""
    return datetime(1970, 1, 1) + timedelta(seconds=seconds)
