"""Lengths and origins of windows as they are written, in ticks; and those that make no sense refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa

from penstock.errors import UserError
from penstock.pattern.duration import parse_duration
from penstock.pattern.types import coerce_value
from penstock.plan.window.ticks import Unit, to_tick

Extent = str | int | timedelta
#: In how many windows an event may be: each is a row of state and of results for every group that the event is in.
OVERLAPPING = 10_000


def check_overlap(size: int, slide: int, wide: str, step: str, least: str) -> None:
    """Refuse windows so many of which an event would be in that no run could hold them."""
    if (overlapping := -(-size // slide)) > OVERLAPPING:
        raise UserError(
            f"window size {wide} and slide {step}: every event would be in {overlapping:,} windows, "
            f"and at most {OVERLAPPING:,} are possible",
            hint=f"a slide of at least {least}",
        )


def read_extent(value: Extent, what: str) -> tuple[int, Unit]:
    if isinstance(value, int) and not isinstance(value, bool):
        if value <= 0:
            raise UserError(f"{what}: {value} is not positive", hint="write a positive number")
        return value, "unit"
    return parse_duration(value, where=what, allow_zero=False), "us"


def read_grain(value: Extent, unit: Unit) -> int:
    ticks, grain_unit = read_extent(value, "window granularity")
    if grain_unit != unit and value != 1:
        raise UserError(f"window granularity {value!r} differs in kind from the size", hint="write both as durations")
    return ticks


def read_origin(value: Any, unit: Unit) -> tuple[int, Unit]:
    """The tick of the origin, and what a tick is: a number that counts from a date counts days."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value, unit
    if unit == "unit":
        try:
            return to_tick(coerce_value(value, pa.date32()), "day"), "day"
        except UserError:
            raise UserError(
                f"window origin {value!r} is neither a whole number nor a date",
                hint="a size in whole numbers counts from a number, or, on dates, from a date",
            ) from None
    return to_tick(coerce_value(value, pa.timestamp("us")), "us"), unit
