"""Time in whole ticks: of values, of restrictions on them, and back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.pattern.restriction import EDGES, Range, Restriction, between, values_of

Ticks = npt.NDArray[np.int64]
Unit = Literal["us", "day", "unit"]
Interval = tuple[int | None, int | None]
_EPOCH = datetime(1970, 1, 1)


def to_tick(value: Any, unit: Unit) -> int:
    """The tick of a value in its canonical form.

    >>> from datetime import date
    >>> to_tick(datetime(1969, 12, 31, 23, 59, 59), "us"), to_tick(date(1970, 1, 3), "day")
    (-1000000, 2)
    """
    if unit == "us":
        return int((value - _EPOCH) // timedelta(microseconds=1))
    return int((value - _EPOCH.date()).days) if unit == "day" else int(value)


def from_tick(tick: int, unit: Unit) -> Any:
    """The value of a tick; OverflowError beyond the years 1 to 9999."""
    if unit == "us":
        return _EPOCH + timedelta(microseconds=tick)
    return _EPOCH.date() + timedelta(days=tick) if unit == "day" else tick


def intervals_of(
    times: Sequence[Restriction], unit: Unit, grain: int = 1, phase: int = 0, t: pa.DataType | None = None
) -> list[Interval]:
    """The ticks that one of them matches, as closed intervals between points of the grid, neighbours joined."""
    found: list[Interval] = []
    for restriction in times:
        if isinstance(restriction, Range):
            low = high = None
            if restriction.low is not None:
                low = to_tick(restriction.low, unit) + (0 if restriction.low_closed else 1)
                low += (phase - low) % grain
            if restriction.high is not None:
                high = to_tick(restriction.high, unit) - (0 if restriction.high_closed else 1)
                high -= (high - phase) % grain
            if low is None or high is None or low <= high:
                found.append((low, high))
        else:
            # No event ever has a time that is not on the grid.
            ticks = (to_tick(v, unit) for v in values_of(restriction))
            found += [(t, t) for t in ticks if (t - phase) % grain == 0]
    found.sort(key=lambda ends: (ends[0] is not None, ends[0] or 0))
    joined: list[Interval] = []
    for low, high in found:
        if joined and (joined[-1][1] is None or low is None or low <= joined[-1][1] + grain):
            first, last = joined[-1]
            joined[-1] = (first, None if last is None or high is None else max(last, high))
        else:
            joined.append((low, high))
    if joined and t in EDGES:
        least, most = (to_tick(edge, unit) for edge in EDGES[t])
        (low, _), (_, high) = joined[0], joined[-1]
        if low is not None and low - grain < least:
            joined[0] = (None, joined[0][1])
        if high is not None and high + grain > most:
            joined[-1] = (joined[-1][0], None)
    return joined


def range_of(ends: Interval, unit: Unit, *, high_closed: bool, beyond: bool = True) -> Restriction | None:
    """A range from ticks. An end beyond the calendar is no end, or, on the wrong side, leaves nothing.

    There may be events beyond the calendar too. A range that must not hold them ends with it, unless it has no end.
    """
    values: list[Any] = []
    for tick, wrong_side in zip(ends, (1, -1), strict=True):
        try:
            values.append(None if tick is None else from_tick(tick, unit))
        except OverflowError:
            if (tick or 0) * wrong_side > 0:
                return None
            kind = date if unit == "day" else datetime
            values.append(None if beyond else kind.min if wrong_side > 0 else kind.max)
            high_closed = high_closed or (wrong_side < 0 and not beyond)
    return between(values[0], values[1], values[0] is not None, high_closed and values[1] is not None)
