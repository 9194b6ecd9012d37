"""Events that hold for a time: when each begins to matter, and which of them cannot be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.source.formats.rows import RowsRead
from penstock.pattern.schema import SYNC, Schema
from penstock.plan.promise import Lifetime
from penstock.plan.weight import GONE, HOLDS


def as_written(schema: Schema) -> Schema:
    """The schema of what stands in files: without what is computed of it."""
    return schema.select([n for n in schema.names if n != SYNC]) if SYNC in schema else schema


def with_sync(rows: RowsRead, promise: Lifetime) -> RowsRead:
    """The rows with the moment at which each begins to matter; those that cannot be are malformed."""
    table = rows.table
    start, end = table[promise.start], table[promise.end]
    reasons: dict[int, str] = {}
    gone = np.zeros(table.num_rows, dtype=bool)
    if promise.kind:
        said = pc.utf8_lower(pc.utf8_trim_whitespace(table[promise.kind].cast(pa.string())))
        gone = _true(pc.is_in(said, pa.array(GONE)))
        _note(reasons, ~gone & ~_true(pc.is_in(said, pa.array(HOLDS))), "no kind of change: {}", table[promise.kind])
    elif promise.new_end:
        gone = ~_true(pc.is_null(table[promise.new_end]))
    _note(reasons, _true(pc.is_null(start)), f"its lifetime has no start: '{promise.start}' is null")
    empty = _true(pc.less_equal(end, start))
    _note(reasons, empty, "its lifetime ends before it begins: from {} to {}", start, end)
    sync = start
    if gone.any():
        new = pc.coalesce(table[promise.new_end], start) if promise.new_end else start
        outside = gone & (_true(pc.less(new, start)) | _true(pc.greater_equal(new, end)))
        _note(reasons, outside, "its new end {} is not from {} to before {}", new, start, end)
        sync = pc.if_else(pa.array(gone), new, start)
    table = table.append_column(SYNC, sync)
    if not reasons:
        return replace(rows, table=table)
    bad = np.zeros(table.num_rows, dtype=bool) if rows.bad is None else rows.bad.copy()
    bad[list(reasons)] = True
    return replace(rows, table=table, bad=bad, reasons={**reasons, **rows.reasons})


def _true(mask: pa.Array | pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    found = pc.fill_null(mask, False)
    return np.asarray(found.to_numpy() if isinstance(found, pa.ChunkedArray) else found.to_numpy(zero_copy_only=False))


def _note(
    reasons: dict[int, str], where: np.ndarray[Any, np.dtype[np.bool_]], text: str, *columns: pa.ChunkedArray
) -> None:
    at = np.flatnonzero(where)
    values = [column.take(pa.array(at)).to_pylist() for column in columns]
    for k, position in enumerate(at.tolist()):
        shown = ("null" if v[k] is None else v[k] for v in values)
        reasons.setdefault(position, text.format(*shown))
