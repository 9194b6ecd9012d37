"""Pace: which events are too far behind, and how far time has got."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True)
class Paced:
    """What passes, what is dropped, and the greatest time among all of it, in ticks; None without one."""

    passed: pa.Table
    dropped: pa.Table
    high: int | None


def pace(rows: pa.Table, on: str, floor: int | None) -> Paced:
    """Drop the rows whose time is below `floor` ticks. One without a time passes.

    >>> found = pace(pa.table({"ts": [7, None, 3, 5]}), "ts", 5)
    >>> found.passed["ts"].to_pylist(), found.dropped["ts"].to_pylist(), found.high
    ([7, None, 5], [3], 7)
    """
    column = rows[on]
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    ticks = column.cast(pa.int64())
    high = pc.max(ticks).as_py()
    if floor is None:
        return Paced(rows, rows.slice(0, 0), high)
    below = pc.fill_null(pc.less(ticks, pa.scalar(floor, pa.int64())), False)
    if not pc.any(below).as_py():
        return Paced(rows, rows.slice(0, 0), high)
    return Paced(rows.filter(pc.invert(below)), rows.filter(below), high)
