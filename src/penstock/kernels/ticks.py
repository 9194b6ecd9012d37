"""Time values as int64 ticks: microseconds of a timestamp, days of a date, an integer as it is."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

Ticks = np.ndarray[Any, np.dtype[np.int64]]
_EPOCH = datetime(1970, 1, 1)
_FIRST_DAY = date(1970, 1, 1)


def column_ticks(column: pa.ChunkedArray | pa.Array) -> Ticks:
    """The ticks of a time column without nulls, without a copy where Arrow allows it.

    >>> column_ticks(pa.chunked_array([pa.array([0, 1500], pa.timestamp("us"))])).tolist()
    [0, 1500]
    """
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # combine_chunks gives a chunked array again when there is no chunk
        array = pa.array([], array.type)
    if pa.types.is_timestamp(array.type):
        array = array.view(pa.int64())
    elif pa.types.is_date32(array.type):
        array = array.view(pa.int32())
    values: Ticks = np.asarray(array.to_numpy(zero_copy_only=False)).astype(np.int64, copy=False)
    return values


def to_tick(value: Any) -> int:
    """The tick of one Python time value.

    >>> to_tick(datetime(1970, 1, 1, 0, 0, 1)), to_tick(date(1970, 1, 3)), to_tick(7)
    (1000000, 2, 7)
    """
    if isinstance(value, datetime):
        naive = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        return (naive - _EPOCH) // timedelta(microseconds=1)
    if isinstance(value, date):
        return (value - _FIRST_DAY).days
    return int(value)


def from_tick(tick: int, t: pa.DataType) -> Any:
    """The Python value of a tick, clipped to what Python's calendar can show.

    >>> from_tick(1_000_000, pa.timestamp("us")), from_tick(7, pa.int32())
    (datetime.datetime(1970, 1, 1, 0, 0, 1), 7)
    """
    if pa.types.is_timestamp(t):
        low, high = calendar(t)
        return _EPOCH + timedelta(microseconds=min(max(tick, low), high))
    if pa.types.is_date(t):
        low, high = calendar(t)
        return _FIRST_DAY + timedelta(days=min(max(tick, low), high))
    half = 1 << (t.bit_width - 1)
    return min(max(tick, -half), half - 1)


def calendar(t: pa.DataType) -> tuple[int, int]:
    """The first and the last tick of Python's calendar, the years 1 to 9999.

    >>> calendar(pa.date32())
    (-719162, 2932896)
    """
    first, last = (datetime.min, datetime.max) if pa.types.is_timestamp(t) else (date.min, date.max)
    return to_tick(first), to_tick(last)
