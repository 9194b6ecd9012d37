"""Windows that all begin at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.pattern.restriction import ANY, Range, Restriction
from penstock.pattern.schema import Schema
from penstock.plan.window.base import Window
from penstock.plan.window.extent import Extent, read_extent, read_grain, read_origin
from penstock.plan.window.on_attribute import LABEL_TYPES, on_attribute, onto_grid, shown
from penstock.plan.window.ticks import Unit, intervals_of, range_of


@dataclass(frozen=True, repr=False)
class LandmarkWindow(Window):
    """Windows [origin, origin + k * every) for k = 1, 2, …, named by their ends. Nothing before the origin counts."""

    on: str | None
    every: int
    origin: int = 0
    granularity: int = 1
    unit: Unit = "us"
    phase: int = 0

    @property
    def label(self) -> str:
        return "window_end"

    def end(self, number: int) -> int:
        """The end of window `number`: its label."""
        return self.origin + number * self.every

    def on_grid(self, step: int, phase: int) -> LandmarkWindow:
        return onto_grid(self, step, phase)

    def resolve(self, schema: Schema) -> LandmarkWindow:
        self._check_label(schema)
        return on_attribute(self, schema, ("every", "origin"))

    def label_type(self, schema: Schema) -> pa.DataType:
        return LABEL_TYPES[on_attribute(self, schema, ("every", "origin")).unit]

    def closed_by(self, *times: Restriction, of: pa.DataType | None = None) -> tuple[Restriction, ...]:
        if ANY in times:
            return (ANY,)
        for low, high in intervals_of(times, self.unit, self.granularity, self.phase, of):
            if low is not None and low - self.granularity >= self.origin:
                continue  # Events between the origin and this restriction may still come.
            if high is None:
                return (Range(None, None),)
            last = (high + self.granularity - self.origin) // self.every
            if last >= 1:
                ends = range_of((None, self.end(last)), self.unit, high_closed=True)
                return () if ends is None else (ends,)
        return ()

    def confined_to(self, label: Restriction) -> tuple[Restriction, ...]:
        if label is ANY:
            return (ANY,)
        for low, high in intervals_of((label,), self.unit):
            if high is None:  # An event is in all windows from some end on, so only these can hold all of its windows.
                number = 1 if low is None else max(1, -((self.origin - low) // self.every))
                piece = range_of((self.end(number - 1), None), self.unit, high_closed=False, beyond=False)
                return () if piece is None else (piece,)
        return ()

    def __repr__(self) -> str:
        return shown(self, "landmark", [self.every])


def landmark_window(every: Extent, on: str | None, origin: Any, granularity: Extent) -> LandmarkWindow:
    length, unit = read_extent(every, "landmark period")
    start, counted = read_origin(origin, unit)
    return LandmarkWindow(on, length, start, read_grain(granularity, unit), counted)
