"""Pace: a union whose inputs may not fall behind each other."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyarrow.types import is_timestamp

from penstock.pattern.duration import format_duration
from penstock.plan.operator import Operator


@dataclass(frozen=True, eq=False)
class Pace(Operator):
    """A union of inputs that may not fall behind each other: events more than `bound` behind the latest are dropped.

    The latest is the greatest `on` that any input has brought in the epochs before. `bound` is in ticks of `on`. An
    event without a time passes.
    """

    on: str = field(kw_only=True)
    bound: int = field(kw_only=True)

    @property
    def detail(self) -> str:
        timed = is_timestamp(self.schema.type_of(self.on))
        extent = format_duration(self.bound) if timed else f"{self.bound:,}"
        return f"{len(self.inputs)} input{'s' * (len(self.inputs) != 1)}, {self.on} at most {extent} behind the latest"
