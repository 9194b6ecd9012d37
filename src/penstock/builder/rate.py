"""Rates of events as they are written: a number a second, or text such as `500/min`."""

from __future__ import annotations

import pyarrow as pa

from penstock.errors import UserError
from penstock.pattern.duration import parse_duration


def unit_of_rate(t: pa.DataType) -> str:
    """What a bare number counts events in, for a time of type `t`."""
    return "s" if pa.types.is_timestamp(t) else "day" if pa.types.is_date(t) else "tick"


def events_a_tick(rate: float | str, t: pa.DataType) -> float:
    """Events a tick of a time of type `t`.

    >>> events_a_tick("864/day", pa.date32()), events_a_tick(5, pa.int64())
    (864.0, 5.0)
    """
    timed = not pa.types.is_integer(t)
    tick = 86_400_000_000 if pa.types.is_date(t) else 1
    if isinstance(rate, str):
        count, slash, unit = rate.replace(",", "").partition("/")
        try:
            found = float(count)
            over = parse_duration(unit.strip() if unit.strip()[:1].isdigit() else f"1 {unit.strip()}", where="expect")
        except ValueError:
            found, over = 0.0, 0
        if slash and timed and found > 0 and over:
            return found / over * tick
    elif isinstance(rate, int | float) and not isinstance(rate, bool) and rate > 0:
        return rate / 1_000_000 if pa.types.is_timestamp(t) else float(rate)
    hint = "events a second, or text such as '500/min'" if timed else "a number of events a tick"
    raise UserError(f"expect(rate={rate!r}) is not possible", hint=hint)
