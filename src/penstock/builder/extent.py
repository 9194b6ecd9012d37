"""Distances in time and rates of events, as they are written, in the ticks of a time attribute."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa

from penstock.errors import UserError
from penstock.pattern.duration import parse_duration
from penstock.pattern.schema import Schema
from penstock.pattern.types import type_text
from penstock.plan.policy import Extent

_DAY = 86_400_000_000


def measurable(schema: Schema, name: str, call: str) -> str:
    """An attribute, unless it has a type in which no distances are measured."""
    t = schema.type_of(name)
    if not (pa.types.is_integer(t) or pa.types.is_date(t) or pa.types.is_timestamp(t)):
        raise UserError(
            f"{call}: '{name}' is {type_text(t)}", hint="time is an integer, a date or a timestamp; cast it first"
        )
    return name


def ticks_of(extent: Extent, t: pa.DataType, call: str, what: str = "the time") -> int:
    """A signed extent in ticks of a time of type `t`: a duration on a time, a whole number on an integer.

    >>> ticks_of("-5 s", pa.timestamp("us"), "join"), ticks_of("2 d", pa.date32(), "join")
    (-5000000, 2)
    """
    if pa.types.is_integer(t):
        if not isinstance(extent, int) or isinstance(extent, bool):
            raise UserError(f"{call}: {what} is an integer, {extent!r} is not", hint="write a whole number")
        return extent
    if isinstance(extent, int) and not isinstance(extent, bool):
        if extent == 0 or pa.types.is_date(t):
            return extent
        # Seconds, milliseconds, microseconds? Whoever writes a bare number means one of them.
        raise UserError(f"{call}: {what} is a timestamp, {extent} has no unit", hint=f"for example '{extent} s'")
    sign: int = 1
    size: str | int | timedelta = extent
    if _is_negative(extent):
        sign, size = -1, extent.strip()[1:] if isinstance(extent, str) else -extent
    if isinstance(size, str) and size.strip() == "0":
        return 0
    ticks = sign * parse_duration(size, where=call)
    if pa.types.is_date(t):
        ticks, rest = divmod(ticks, _DAY)
        if rest:
            raise UserError(f"{call}: {what} is a date, {extent!r} is not whole days", hint="for example '2 d'")
    return ticks


def declared_ticks(extent: Extent, attribute: str, t: pa.DataType, call: str) -> int:
    """The ticks of an extent that a declaration names for an attribute of type `t`; parts of days are whole days.

    >>> declared_ticks("36 h", "day", pa.date32(), "disorder")
    2
    """
    if _is_negative(extent):
        raise UserError(f"{call}: {extent!r} is negative", hint="write 0 or more")
    if pa.types.is_date(t) and not isinstance(extent, int):
        return -(-parse_duration(extent, where=call) // _DAY)
    return ticks_of(extent, t, call, f"'{attribute}'")


def _is_negative(extent: Extent) -> bool:
    if isinstance(extent, str):
        return extent.strip().startswith("-")
    return extent < timedelta(0) if isinstance(extent, timedelta) else isinstance(extent, int) and extent < 0


def unit_of_rate(t: pa.DataType) -> str:
    """What a bare number counts events in, for a time of type `t`."""
    return "s" if pa.types.is_timestamp(t) else "day" if pa.types.is_date(t) else "tick"


def events_a_tick(rate: float | str, t: pa.DataType) -> float:
    """Events a tick of a time of type `t`, of a number a second or text such as `500/min`.

    >>> events_a_tick("864/day", pa.date32()), events_a_tick(5, pa.int64())
    (864.0, 5.0)
    """
    timed = not pa.types.is_integer(t)
    tick = _DAY if pa.types.is_date(t) else 1
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
