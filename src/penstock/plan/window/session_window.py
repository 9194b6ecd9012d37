"""Windows that last as long as events come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from penstock.pattern.restriction import ANY, Restriction
from penstock.pattern.schema import Schema
from penstock.plan.window.base import Window
from penstock.plan.window.extent import Extent, read_extent, read_grain
from penstock.plan.window.on_attribute import LABEL_TYPES, on_attribute, onto_grid, shown
from penstock.plan.window.ticks import Unit, intervals_of, range_of


@dataclass(frozen=True, repr=False)
class SessionWindow(Window):
    """Of each group, events none of which is more than `gap` after the one before it; named by their ends.

    An event at t makes a session [t, t + gap); sessions that overlap or touch are one. Later events move the start and
    the end of a session, so only the end tells when it is over: no promise about time speaks of a start.

    >>> from penstock.pattern.restriction import at_most, between, less
    >>> [str(p) for w in (Window.session(10),) for t in (less(25), at_most(25), between(5, 25)) for p in w.closed_by(t)]
    ['<= 24', '<= 25']
    """

    on: str | None
    gap: int
    granularity: int = 1
    unit: Unit = "us"
    phase: int = 0
    origin: ClassVar[int] = 0

    @property
    def label(self) -> str:
        return "window_end"

    @property
    def start(self) -> str:
        """The name of the attribute that holds the time of the first event."""
        return "window_start"

    def on_grid(self, step: int, phase: int) -> SessionWindow:
        return onto_grid(self, step, phase)

    def resolve(self, schema: Schema) -> SessionWindow:
        for name in (self.start, self.label):
            self._check_label(schema, name)
        return on_attribute(self, schema, ("gap",))

    def label_type(self, schema: Schema) -> pa.DataType:
        return LABEL_TYPES[on_attribute(self, schema, ("gap",)).unit]

    def closed_by(self, *times: Restriction, of: pa.DataType | None = None) -> tuple[Restriction, ...]:
        """Those before whose ends nothing more comes, nor at them: a session that starts there would touch.

        From where events may still come at all, sessions may still grow backwards: only what has no beginning counts.
        """
        if ANY in times:
            return (ANY,)
        for low, high in intervals_of(times, self.unit, self.granularity, self.phase, of):
            if low is None:
                # The next event that is possible comes a step later.
                last = None if high is None else high + self.granularity - 1
                ends = range_of((None, last), self.unit, high_closed=True)
                return () if ends is None else (ends,)
        return ()

    def confined_to(self, label: Restriction) -> tuple[Restriction, ...]:
        return (ANY,) if label is ANY else ()  # Any event may make any session longer.

    def __repr__(self) -> str:
        return shown(self, "session", [self.gap])


def session_window(gap: Extent, on: str | None, granularity: Extent) -> SessionWindow:
    length, unit = read_extent(gap, "session gap")
    return SessionWindow(on, length, read_grain(granularity, unit), unit)
