"""Windows over so many events."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import pyarrow as pa

from penstock.errors import UserError
from penstock.pattern.restriction import ANY, Restriction
from penstock.pattern.schema import Schema
from penstock.plan.window.base import Window
from penstock.plan.window.extent import OVERLAPPING, check_overlap


@dataclass(frozen=True, repr=False)
class CountWindow(Window):
    """Windows over the positions 0, 1, 2, … of the events of each group, named by their first position.

    >>> [Window.count(3, 2).start(number) for number in range(3)]
    [0, 2, 4]
    """

    size: int
    slide: int
    on: None = None

    def start(self, number: int) -> int:
        return number * self.slide

    @property
    def pane(self) -> int:
        return gcd(self.size, self.slide)

    def resolve(self, schema: Schema) -> CountWindow:
        self._check_label(schema)
        return self

    def label_type(self, schema: Schema) -> pa.DataType:
        return pa.int64()

    def closed_by(self, *times: Restriction, of: pa.DataType | None = None) -> tuple[Restriction, ...]:
        return (ANY,) if ANY in times else ()  # Positions say nothing about values.

    def confined_to(self, label: Restriction) -> tuple[Restriction, ...]:
        return (ANY,) if label is ANY else ()  # Nobody knows an event's positions before it is counted.

    def __repr__(self) -> str:
        return f"Window.count({self.size}{'' if self.slide == self.size else f', {self.slide}'})"


def count_window(size: int, slide: int | None) -> CountWindow:
    for what, value in (("size", size), ("slide", slide if slide is not None else size)):
        if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
            raise UserError(f"count window {what}: {value!r} is not positive", hint="write a number of events")
    step = slide if slide is not None else size
    check_overlap(size, step, f"{size:,} rows", f"{step:,} rows", f"{-(-size // OVERLAPPING):,} rows")
    return CountWindow(size, step)
