"""Moments as whole numbers, so that time, dates and plain counters are one thing to the operators.

A tick is a microsecond of a timestamp, a day of a date, and one of an integer.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa

_EPOCH = datetime(1970, 1, 1)  # Timestamps are UTC throughout and carry no zone.


def to_tick(value: Any) -> int:
    """The number of a moment.

    >>> to_tick(datetime(1970, 1, 1, 0, 0, 2)), to_tick(date(1970, 1, 3)), to_tick(7)
    (2000000, 2, 7)
    """
    if isinstance(value, datetime):
        return (value - _EPOCH) // timedelta(microseconds=1)
    if isinstance(value, date):
        return (value - _EPOCH.date()).days
    return int(value)


def from_tick(tick: int, kind: pa.DataType) -> Any:
    """The moment of a number, as a value of an attribute's type.

    >>> from_tick(2, pa.date32()), from_tick(7, pa.int64())
    (datetime.date(1970, 1, 3), 7)
    """
    if pa.types.is_timestamp(kind):
        return _EPOCH + timedelta(microseconds=tick)
    if pa.types.is_date(kind):
        return _EPOCH.date() + timedelta(days=tick)
    return tick
