"""How far, in the ticks of an attribute: a duration on a time, a whole number on an integer."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa

from penstock.errors import UserError
from penstock.pattern.duration import parse_duration
from penstock.plan.policy import Extent

_DAY = 86_400_000_000


def declared_ticks(extent: Extent, attribute: str, t: pa.DataType, call: str) -> int:
    """The ticks of an extent that a declaration names for an attribute of type `t`; parts of days are whole days.

    >>> declared_ticks("36 h", "day", pa.date32(), "disorder")
    2
    """
    if _is_negative(extent):
        raise UserError(f"{call}: {extent!r} is negative", hint="write 0 or more")
    if pa.types.is_integer(t):
        if not isinstance(extent, int) or isinstance(extent, bool):
            raise UserError(f"{call}: '{attribute}' is an integer, {extent!r} is not", hint="write a whole number")
        return extent
    if isinstance(extent, int) and not isinstance(extent, bool):
        if extent == 0 or pa.types.is_date(t):
            return extent
        # Seconds, milliseconds, microseconds? Whoever writes a bare number means one of them.
        raise UserError(f"{call}: '{attribute}' is a timestamp, {extent} has no unit", hint=f"for example '{extent} s'")
    micros = parse_duration(extent, where=call)
    return -(-micros // _DAY) if pa.types.is_date(t) else micros


def _is_negative(extent: Extent) -> bool:
    if isinstance(extent, str):
        return extent.strip().startswith("-")
    return extent < timedelta(0) if isinstance(extent, timedelta) else isinstance(extent, int) and extent < 0
