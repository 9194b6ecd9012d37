"""What a Parquet footer tells before anything is read: row groups, their sizes, exact least and greatest ticks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.engine.source.formats.fit import Fit, fit
from penstock.engine.source.pruning.statistics import TO_MICROSECONDS, FileStatistics
from penstock.kernels.ticks import calendar, to_tick
from penstock.pattern.restriction import one_of
from penstock.pattern.schema import Schema
from penstock.plan.promise import Bounds, Disorder, Domain, Promise

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
    statistics: FileStatistics = field(repr=False, compare=False)

    @property
    def rows(self) -> int:
        return sum(g.rows for g in self.groups)


def read_footer(metadata: pq.FileMetaData, schema: Schema, promises: Sequence[Promise]) -> Footer:
    """The row groups of a file.

    The least and greatest tick stand in for the events themselves when the next part of the file is read by another
    task, or when a guard spares the row group. So they are given only where every row counted by the statistics is
    sure to become an event that raises the maximum: no row that may be malformed, none outside promised bounds.
    """
    statistics = FileStatistics(metadata, schema)
    leaves, types = statistics.leaves, statistics.types
    attribute = measured_attribute(schema, promises)
    fits = {n: fit(types[n], schema.type_of(n)) if n in types else Fit.NEVER for n in schema.names}
    # Of a column that may hold values out of range, the row group's own values say whether it does.
    doubtful = [n for n, how in fits.items() if how is not Fit.SURE or pa.types.is_temporal(schema.type_of(n))]
    # What is computed of events has no column.
    attribute = attribute if attribute in schema else None
    usable = attribute is not None and all(_is_plain(types.get(n), schema.type_of(n)) for n in doubtful)
    groups = []
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        span = None
        if usable and attribute is not None:
            span = _span(group, leaves, types, attribute)
            others = [t for t in schema.times if t != attribute]
            if (
                any(_nulls(group, leaves[t]) != 0 for t in others)
                or any(not statistics.values(i, n).fits for n in doubtful)
                or not _inside(i, group, statistics, promises)
            ):
                span = None
        low, high = span or (None, None)
        groups.append(RowGroup(group.num_rows, group.total_byte_size, low, high))
    return Footer(tuple(groups), statistics)


def _is_plain(found: pa.DataType | None, wanted: pa.DataType) -> bool:
    """Whether all values of a column fit a type if its least and its greatest value do."""
    if found is None:
        return False
    if pa.types.is_date32(found) and found == wanted:
        return True
    whole, time = pa.types.is_integer, pa.types.is_timestamp
    # Between two whole microseconds there may be nanoseconds that are not.
    return bool((whole(found) and whole(wanted)) or (time(found) and time(wanted) and found.unit != "ns"))


def measured_attribute(schema: Schema, promises: Sequence[Promise]) -> str | None:
    """The attribute whose ticks a split carries: the first promised disorder, else the first time attribute."""
    for promise in promises:
        if isinstance(promise, Disorder):
            return promise.attribute
    return schema.times[0] if schema.times else None


def _span(group: Any, leaves: Mapping[str, int], types: Mapping[str, pa.DataType], name: str) -> tuple[int, int] | None:
    """Least and greatest tick of a column in a row group, None if the footer does not say."""
    statistics = group.column(leaves[name]).statistics
    if statistics is None or not statistics.has_min_max:
        return None
    t = types[name]
    least, most = (-_LIMIT, _LIMIT - 1)
    if pa.types.is_timestamp(t) or pa.types.is_date32(t):
        least, most = calendar(t)
    if pa.types.is_timestamp(t):
        times, over = TO_MICROSECONDS[t.unit]
        low, high = statistics.min_raw * times // over, statistics.max_raw * times // over
    elif pa.types.is_date32(t) or pa.types.is_signed_integer(t):
        low, high = statistics.min_raw, statistics.max_raw
    elif pa.types.is_unsigned_integer(t):
        low, high = statistics.min, statistics.max
    else:
        return None
    return (low, high) if least <= low <= high <= most else None


def _nulls(group: Any, leaf: int) -> int | None:
    statistics = group.column(leaf).statistics
    return int(statistics.null_count) if statistics is not None and statistics.has_null_count else None


def _inside(index: int, group: Any, statistics: FileStatistics, promises: Sequence[Promise]) -> bool:
    for promise in promises:
        if isinstance(promise, Domain):
            # An event whose value is not listed raises no maximum; nor does one without a value.
            t = statistics.schema.type_of(promise.attribute)
            if not statistics.values(index, promise.attribute).all_match(one_of(promise.values).coerced(t), t):
                return False
        if not isinstance(promise, Bounds):
            continue
        leaves, types = statistics.leaves, statistics.types
        span = _span(group, leaves, types, promise.attribute) if promise.attribute in leaves else None
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
