"""Windows of one length, one every so often."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any

import pyarrow as pa

from penstock.errors import UserError
from penstock.pattern.duration import format_duration
from penstock.pattern.restriction import ANY, Restriction, one_of, values_of
from penstock.pattern.schema import Schema
from penstock.plan.window.base import Window
from penstock.plan.window.extent import OVERLAPPING, Extent, check_overlap, read_extent, read_grain, read_origin
from penstock.plan.window.on_attribute import LABEL_TYPES, on_attribute, onto_grid, shown
from penstock.plan.window.ticks import Interval, Unit, from_tick, intervals_of, range_of


@dataclass(frozen=True, repr=False)
class TimeWindow(Window):
    """Windows of `size` ticks, one every `slide` ticks.

    Times lie on multiples of `granularity`: after `<= 09:59:59` nothing more comes before 10:00:00 if times are whole
    seconds, but a lot may come if they are microseconds.

    >>> w = Window.sliding(10, 3, on="n")
    >>> [w.start(number) for number in range(4)]
    [0, 3, 6, 9]
    """

    on: str | None
    size: int
    slide: int
    origin: int = 0
    granularity: int = 1
    unit: Unit = "us"
    phase: int = 0
    """Times lie so far behind multiples of the granularity, if they are themselves labels of windows."""

    def start(self, number: int) -> int:
        """The first tick of window `number`: its label."""
        return self.origin + number * self.slide

    @property
    def pane(self) -> int:
        """The longest stretch that no window ever cuts: events of one pane share all their windows."""
        return gcd(self.size, self.slide)

    @property
    def is_tumbling(self) -> bool:
        return self.size == self.slide

    def on_grid(self, step: int, phase: int) -> TimeWindow:
        return onto_grid(self, step, phase)

    def resolve(self, schema: Schema) -> TimeWindow:
        self._check_label(schema)
        return on_attribute(self, schema, ("size", "slide", "origin"))

    def label_type(self, schema: Schema) -> pa.DataType:
        return LABEL_TYPES[on_attribute(self, schema, ("size", "slide", "origin")).unit]

    def closed_by(self, *times: Restriction, of: pa.DataType | None = None) -> tuple[Restriction, ...]:
        """
        >>> from penstock.pattern.restriction import at_most, between, less
        >>> def labels(window: TimeWindow, *times: Restriction) -> list[str]:
        ...     return [str(piece) for piece in window.closed_by(*times)]
        >>> labels(Window.tumbling(10), less(25)), labels(Window.tumbling(10), at_most(9))
        (['<= 10'], ['<= 0'])

        Several close what neither closes alone:

        >>> labels(Window.tumbling(10), between(6, 12), less(7), between(20, 50))
        ['<= 0', '[20, 40]']
        """
        if ANY in times:
            return (ANY,)
        labels: list[Interval] = []
        for low, high in intervals_of(times, self.unit, self.granularity, self.phase, of):
            # The first possible event is >= low, and the last one, which is > end - 1 - granularity, is <= high.
            first = None if low is None else -((self.origin + self.granularity - 1 - low) // self.slide)
            last = None if high is None else (high + self.granularity - self.size - self.origin) // self.slide
            if first is None or last is None or first <= last:
                labels.append((first, last))
        return self._labels(labels)

    def confined_to(self, label: Restriction) -> tuple[Restriction, ...]:
        """
        >>> from penstock.pattern.restriction import at_least, equal, less
        >>> def times(window: TimeWindow, label: Restriction) -> list[str]:
        ...     return [str(piece) for piece in window.confined_to(label)]
        >>> times(Window.tumbling(10), equal(20)), times(Window.tumbling(10), one_of([0, 10, 30]))
        (['[20, 30)'], ['[0, 20)', '[30, 40)'])

        With windows that overlap, an event may go only if all of its windows may:

        >>> times(Window.sliding(10, 3), less(30)), times(Window.sliding(10, 3), at_least(30))
        (['< 30'], ['>= 37'])
        """
        if label is ANY:
            return (ANY,)
        times: list[Interval] = []
        for first, last in self._numbers(label):
            # After the end of the window before the first, and before the start of the window after the last.
            low = None if first is None else self.start(first - 1) + self.size
            high = None if last is None else self.start(last + 1)
            if low is None or high is None or low < high:
                times.append((low, high))
        # An event's windows follow each other without a gap, so they lie within one piece or in none.
        pieces = (range_of(t, self.unit, high_closed=False, beyond=False) for t in times)
        return tuple(p for p in pieces if p is not None)

    def labels_in(self, label: Restriction, most: int) -> list[Any] | None:
        """The labels that match, if there are not too many.

        >>> from penstock.pattern.restriction import at_most, between
        >>> w = Window.tumbling(10)
        >>> w.labels_in(between(11, 40, high_closed=True), 9), w.labels_in(at_most(40), 9)
        ([20, 30, 40], None)
        """
        found: list[Any] = []
        for first, last in self._numbers(label):
            if first is None or last is None or last - first >= most - len(found):
                return None
            found += [from_tick(self.start(w), self.unit) for w in range(first, last + 1)]
        return found

    def _numbers(self, label: Restriction) -> list[Interval]:
        """The numbers of the windows whose labels match, neighbours joined."""
        numbers: list[Interval] = []
        for low, high in intervals_of((label,), self.unit):
            first = None if low is None else -((self.origin - low) // self.slide)
            last = None if high is None else (high - self.origin) // self.slide
            if first is not None and last is not None and first > last:
                continue
            if numbers and first is not None and numbers[-1][1] == first - 1:
                numbers[-1] = (numbers[-1][0], last)
            else:
                numbers.append((first, last))
        return numbers

    def _labels(self, numbers: list[Interval]) -> tuple[Restriction, ...]:
        """Windows in a row as ranges, and those that stand alone as one list."""
        alone = [first for first, last in numbers if first is not None and first == last]
        rows = [(first, last) for first, last in numbers if first is None or first != last]
        ends = ((None if a is None else self.start(a), None if b is None else self.start(b)) for a, b in rows)
        pieces = [range_of(e, self.unit, high_closed=True) for e in ends]
        # A single window that begins beyond the calendar has no label.
        labels = (range_of((self.start(w), self.start(w)), self.unit, high_closed=True) for w in alone)
        if listed := [v for r in labels if r is not None for v in values_of(r)]:
            pieces.append(one_of(listed))
        return tuple(p for p in pieces if p is not None)

    def __repr__(self) -> str:
        kind = "tumbling" if self.is_tumbling else "sliding" if self.slide < self.size else "hopping"
        lengths = [self.size] if self.is_tumbling else [self.size, self.slide]
        return shown(self, kind, lengths)


def time_window(size: Extent, slide: Extent, on: str | None, origin: Any, granularity: Extent) -> TimeWindow:
    length, unit = read_extent(size, "window size")
    step, step_unit = read_extent(slide, "window slide")
    if unit != step_unit:
        raise UserError(f"window size {size!r} and slide {slide!r} differ in kind", hint="write both as durations")
    least = -(-length // OVERLAPPING)
    check_overlap(length, step, repr(size), repr(slide), repr(format_duration(least) if unit == "us" else least))
    start, counted = read_origin(origin, unit)
    return TimeWindow(on, length, step, start, read_grain(granularity, unit), counted)
