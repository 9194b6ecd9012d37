"""Cuts: the gaps between neighbouring values of a type, on which restrictions are compared.

`< 5` ends at the cut before 5, `<= 5` at the cut behind it. Where the type has a next value (integers, dates,
timestamps, decimals), the cut behind a value is the cut before the next one. So `> 3` and `>= 4` are the same for an
integer, and (3, 4) is empty.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from functools import cache
from typing import Any

import pyarrow as pa

from penstock.pattern.types import TIMESTAMP, integer_range

#: (rank, value, side): rank -1 lies before and 1 behind everything; side 0 lies before the value and 1 behind it.
Cut = tuple[int, Any, int]
#: The cut before (0) or behind (1) a value.
Cutter = Callable[[Any, int], Cut]

BEFORE_ALL: Cut = (-1, None, 0)
BEHIND_ALL: Cut = (1, None, 0)
_WIDE = Context(prec=80)


def plain_cut(value: Any, side: int) -> Cut:
    """The cut for a type without next values."""
    return (0, value, side)


@cache
def cutter(t: pa.DataType | None) -> Cutter:
    """What cuts the values of a type; given a next value, always before some value.

    >>> cutter(pa.int8())(4, 1) == cutter(pa.int8())(5, 0), cutter(pa.string())("a", 1)
    (True, (0, 'a', 1))
    """
    if t is None:
        return plain_cut
    if t == TIMESTAMP or pa.types.is_date(t):
        step = timedelta(microseconds=1) if t == TIMESTAMP else timedelta(days=1)
        first, last = (datetime.min, datetime.max) if t == TIMESTAMP else (date.min, date.max)

        def cut(value: Any, side: int) -> Cut:
            if side:
                return BEHIND_ALL if value >= last else (0, value + step, 0)
            return BEFORE_ALL if value <= first else (0, value, 0)

        return cut
    if pa.types.is_decimal(t):
        unit = Decimal(1).scaleb(-t.scale, _WIDE)
        top = Decimal(10**t.precision - 1).scaleb(-t.scale, _WIDE)
        return lambda value, side: _clipped(_WIDE.add(value, unit if side else 0), top.copy_negate(), top)
    if pa.types.is_integer(t) or t == pa.bool_():
        low, high = (0, 1) if t == pa.bool_() else integer_range(t)
        return lambda value, side: _clipped(value + side, low, high)
    return plain_cut


def _clipped(value: Any, low: Any, high: Any) -> Cut:
    return BEFORE_ALL if value <= low else BEHIND_ALL if value > high else (0, value, 0)


def merged(intervals: list[tuple[Cut, Cut]]) -> list[tuple[Cut, Cut]]:
    """Without empty intervals; neighbours that touch joined. The intervals come sorted by their low cuts."""
    joined: list[tuple[Cut, Cut]] = []
    for low, high in intervals:
        if low < high:
            if joined and joined[-1][1] >= low:
                joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
            else:
                joined.append((low, high))
    return joined


def encloses(outer: list[tuple[Cut, Cut]], inner: list[tuple[Cut, Cut]]) -> bool:
    """Whether each interval of `inner` lies inside one of `outer`; both sorted, with gaps."""
    position = 0
    for low, high in inner:
        while position < len(outer) and outer[position][1] < high:
            position += 1
        if position == len(outer) or outer[position][0] > low:
            return False
    return True
