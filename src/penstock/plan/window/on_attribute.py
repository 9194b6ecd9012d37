"""A window on an attribute of a stream: in its ticks, on its grid, and shown as it is written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from penstock.errors import UserError, a
from penstock.pattern.duration import format_duration
from penstock.pattern.schema import Schema
from penstock.pattern.types import type_text
from penstock.plan.window.ticks import Unit, from_tick

if TYPE_CHECKING:
    from penstock.plan.window.landmark_window import LandmarkWindow
    from penstock.plan.window.session_window import SessionWindow
    from penstock.plan.window.time_window import TimeWindow

_W = TypeVar("_W", "TimeWindow", "LandmarkWindow", "SessionWindow")
_DAY = 86_400_000_000


def on_attribute(window: _W, schema: Schema, lengths: tuple[str, ...]) -> _W:
    """The window on an attribute of a stream, all lengths in the ticks of that attribute."""
    on = window.on
    if on is None:
        if len(schema.times) != 1:
            known = ", ".join(schema.times) or "none"
            raise UserError(f"{window!r}: which time? The stream's time attributes: {known}", hint="say on='…'")
        (on,) = schema.times
    kind = schema.type_of(on)
    if pa.types.is_timestamp(kind):
        if window.unit == "us":
            return replace(window, on=on)
        hint = "write a duration such as '10 s'"
    elif pa.types.is_date(kind):
        if window.unit != "us":
            return replace(window, on=on, unit="day")
        parts: dict[str, int] = {name: getattr(window, name) for name in lengths}
        grain = max(window.granularity, _DAY) if window.granularity == 1 else window.granularity
        if not any(ticks % _DAY for ticks in (*parts.values(), grain)):
            days = {name: ticks // _DAY for name, ticks in parts.items()}
            return replace(window, on=on, unit="day", granularity=grain // _DAY, **days)
        hint = "write whole days such as '1 day'"
    elif pa.types.is_integer(kind):
        if window.unit == "unit":
            return replace(window, on=on)
        hint = "write whole numbers such as 10"
    else:
        hint = "a window needs a timestamp, a date or an integer"
    raise UserError(f"{window!r} does not fit attribute '{on}', {a(type_text(kind))}", hint=hint)


def onto_grid(window: _W, step: int, phase: int) -> _W:
    return replace(window, granularity=step, phase=phase) if step % window.granularity == 0 else window


#: Windows of small integers may start or end beyond the small type.
LABEL_TYPES: dict[Unit, pa.DataType] = {"us": pa.timestamp("us"), "day": pa.date32(), "unit": pa.int64()}


def shown(window: TimeWindow | LandmarkWindow | SessionWindow, kind: str, lengths: list[int]) -> str:
    def length(ticks: int) -> str:
        return {"us": repr(format_duration(ticks)), "day": f"'{ticks} day'", "unit": str(ticks)}[window.unit]

    parts = [length(ticks) for ticks in lengths]
    if window.on is not None:
        parts.append(f"on={window.on!r}")
    if window.origin:
        origin = window.origin if window.unit == "unit" else str(from_tick(window.origin, window.unit))
        parts.append(f"origin={origin!r}")
    if window.granularity != 1:
        parts.append(f"granularity={length(window.granularity)}")
    return f"Window.{kind}({', '.join(parts)})"
