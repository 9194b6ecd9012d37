"""What a Parquet footer tells before anything is read: row groups, their sizes, exact least and greatest ticks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.algebra.schema import Schema
from penstock.algebra.source import Bounds, Disorder, Domain, Promise
from penstock.engine.source.fit import Fit, fit
from penstock.engine.source.ticks import to_tick

# Ticks per unit are a ratio: (multiply, divide).
_TO_MICROSECONDS = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}
_LIMIT = 1 << 63


@dataclass(frozen=True)
class RowGroup:
    rows: int
    bytes: int
    low: int | None
    high: int | None


@dataclass(frozen=True)
class Footer:
    groups: tuple[RowGroup, ...]

    @property
    def rows(self) -> int:
        return sum(g.rows for g in self.groups)


def read_footer(metadata: pq.FileMetaData, schema: Schema, promises: Sequence[Promise]) -> Footer:
    """The row groups of a file.

    The least and greatest tick stand in for the events themselves when the next part of the file is read by another
    task. So they are given only where every row counted by the statistics is sure to become an event that raises
    the maximum: no row that may be malformed, none outside promised bounds.
    """
    arrow = metadata.schema.to_arrow_schema()
    leaves = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    attribute = measured_attribute(schema, promises)
    usable = attribute is not None and all(
        name in leaves and fit(arrow.field(name).type, schema.type_of(name)) is Fit.SURE for name in schema.names
    )
    groups = []
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        span = None
        if usable and attribute is not None:
            span = _span(group, leaves, arrow, attribute)
            others = [t for t in schema.times if t != attribute]
            if any(_nulls(group, leaves[t]) != 0 for t in others) or not _inside(group, leaves, arrow, promises):
                span = None
        low, high = span or (None, None)
        groups.append(RowGroup(group.num_rows, group.total_byte_size, low, high))
    return Footer(tuple(groups))


def measured_attribute(schema: Schema, promises: Sequence[Promise]) -> str | None:
    """The attribute whose ticks a split carries: the first promised disorder, else the first time attribute."""
    for promise in promises:
        if isinstance(promise, Disorder):
            return promise.attribute
    return schema.times[0] if schema.times else None


def _span(group: Any, leaves: dict[str, int], arrow: pa.Schema, name: str) -> tuple[int, int] | None:
    """Least and greatest tick of a column in a row group, None if the footer does not say."""
    statistics = group.column(leaves[name]).statistics
    if statistics is None or not statistics.has_min_max:
        return None
    t = arrow.field(name).type
    if pa.types.is_timestamp(t):
        times, over = _TO_MICROSECONDS[t.unit]
        low, high = statistics.min_raw * times // over, statistics.max_raw * times // over
    elif pa.types.is_date32(t) or pa.types.is_signed_integer(t):
        low, high = statistics.min_raw, statistics.max_raw
    elif pa.types.is_unsigned_integer(t):
        low, high = statistics.min, statistics.max
    else:
        return None
    return (low, high) if -_LIMIT <= low <= high < _LIMIT else None


def _nulls(group: Any, leaf: int) -> int | None:
    statistics = group.column(leaf).statistics
    return int(statistics.null_count) if statistics is not None and statistics.has_null_count else None


def _inside(group: Any, leaves: dict[str, int], arrow: pa.Schema, promises: Sequence[Promise]) -> bool:
    for promise in promises:
        if isinstance(promise, Domain):
            return False  # an event whose value is not listed raises no maximum, and statistics do not tell of it
        if not isinstance(promise, Bounds):
            continue
        span = _span(group, leaves, arrow, promise.attribute) if promise.attribute in leaves else None
        if span is None:
            return False
        try:
            if promise.low is not None and span[0] < to_tick(promise.low):
                return False
            if promise.high is not None and span[1] > to_tick(promise.high):
                return False
        except (TypeError, ValueError):
            return False
    return True
