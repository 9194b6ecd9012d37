"""Windows: which stretches of a stream an answer is about.

Time counts in whole *ticks*: microseconds for a timestamp, days for a date, units for an integer attribute. A window
is half open, [start, start + size), and number w starts at `origin + w * slide`; w may be negative. All mathematics
here is closed form on integers and works on NumPy arrays alike, so nobody ever loops over windows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from math import gcd
from typing import Any, Literal, Self, TypeVar, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.errors import UserError, a
from penstock.pattern.arguments import worded
from penstock.pattern.duration import format_duration, parse_duration
from penstock.pattern.restriction import ANY, EDGES, Range, Restriction, between, one_of, values_of
from penstock.pattern.schema import Schema
from penstock.pattern.types import coerce_value, type_text

Ticks = npt.NDArray[np.int64]
Extent = str | int | timedelta
Unit = Literal["us", "day", "unit"]
_Interval = tuple[int | None, int | None]
_W = TypeVar("_W", "TimeWindow", "LandmarkWindow")

#: In how many windows an event may be: each is a row of state and of results for every group that the event is in.
OVERLAPPING = 10_000

_EPOCH = datetime(1970, 1, 1)
_DAY = 86_400_000_000


@worded
class Window(ABC):
    """How events are gathered into windows. Make one with a factory:

    >>> Window.tumbling("10 s", on="ts")
    Window.tumbling('10 s', on='ts')
    >>> Window.sliding("2 min", "0 s")
    Traceback (most recent call last):
    penstock.errors.UserError: window slide: '0 s' is not positive. Hint: write a positive duration such as '30 s'
    """

    on: str | None

    @staticmethod
    def tumbling(size: Extent, *, on: str | None = None, origin: Any = 0, granularity: Extent = 1) -> TimeWindow:
        """Windows side by side: every event is in exactly one."""
        return _time_window(size, size, on, origin, granularity)

    @staticmethod
    def sliding(
        size: Extent, slide: Extent, *, on: str | None = None, origin: Any = 0, granularity: Extent = 1
    ) -> TimeWindow:
        """A window of `size` every `slide`. With a slide longer than the size there are gaps: see `hopping`."""
        return _time_window(size, slide, on, origin, granularity)

    @staticmethod
    def hopping(
        size: Extent, slide: Extent, *, on: str | None = None, origin: Any = 0, granularity: Extent = 1
    ) -> TimeWindow:
        """The same as `sliding`; the name says that gaps are meant."""
        return _time_window(size, slide, on, origin, granularity)

    @staticmethod
    def landmark(every: Extent, *, on: str | None = None, origin: Any = 0, granularity: Extent = 1) -> LandmarkWindow:
        """Windows that all begin at the origin and end one period after the other; named by their ends.

        >>> Window.landmark("1 h", on="ts", origin="2026-01-01 00:00:00")
        Window.landmark('1 h', on='ts', origin='2026-01-01 00:00:00')
        """
        length, unit = _extent(every, "landmark period")
        start, counted = _origin(origin, unit)
        return LandmarkWindow(on, length, start, _grain(granularity, unit), counted)

    @staticmethod
    def count(size: int, slide: int | None = None) -> CountWindow:
        """Windows of `size` successive events of a group, a new one every `slide` events.

        >>> Window.count(100, 10)
        Window.count(100, 10)
        """
        for what, value in (("size", size), ("slide", slide if slide is not None else size)):
            if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
                raise UserError(f"count window {what}: {value!r} is not positive", hint="write a number of events")
        step = slide if slide is not None else size
        _check_overlap(size, step, f"{size:,} rows", f"{step:,} rows", f"{-(-size // OVERLAPPING):,} rows")
        return CountWindow(size, step)

    @property
    def label(self) -> str:
        """The name of the attribute that holds the label."""
        return "window_start"

    @abstractmethod
    def resolve(self, schema: Schema) -> Window:
        """This window in the ticks of a stream's attribute; a window that does not fit the stream is a UserError."""

    @abstractmethod
    def label_type(self, schema: Schema) -> pa.DataType:
        """The type of the label."""

    @abstractmethod
    def closed_by(self, *times: Restriction, of: pa.DataType | None = None) -> tuple[Restriction, ...]:
        """The labels of the windows all of whose possible events match one of the restrictions, in pieces.

        Of a type that has a least and a greatest value, no event lies beyond.
        """

    def on_grid(self, step: int, phase: int) -> Self:
        """The same over an attribute of which only every so many ticks occur, where that says more than is declared."""
        return self

    @abstractmethod
    def confined_to(self, label: Restriction) -> tuple[Restriction, ...]:
        """The times of events that belong to no window but those whose labels match, in pieces.

        Nobody misses such an event when nobody wants these windows. That holds for events of no window at all too;
        of gaps between windows, the pieces have those that they touch.
        """

    def _check_label(self, schema: Schema) -> None:
        if schema.resolve(self.label) is not None:
            raise UserError(
                f"{self!r}: the stream already has an attribute '{self.label}'", hint="rename it before the window"
            )


@dataclass(frozen=True, repr=False)
class TimeWindow(Window):
    """Windows of `size` ticks, one every `slide` ticks.

    Times lie on multiples of `granularity`: after `<= 09:59:59` nothing more comes before 10:00:00 if times are whole
    seconds, but a lot may come if they are microseconds.

    >>> w = Window.sliding(10, 3, on="n")
    >>> w.first_window(9), w.last_window(9)
    (0, 3)
    """

    on: str | None
    size: int
    slide: int
    origin: int = 0
    granularity: int = 1
    unit: Unit = "us"
    phase: int = 0
    """Times lie so far behind multiples of the granularity, if they are themselves labels of windows."""

    @overload
    def first_window(self, x: int) -> int: ...
    @overload
    def first_window(self, x: Ticks) -> Ticks: ...
    def first_window(self, x: int | Ticks) -> int | Ticks:
        """The number of the earliest window of a tick. Later than `last_window` if the tick lies in a gap."""
        return (x - self.origin - self.size) // self.slide + 1

    @overload
    def last_window(self, x: int) -> int: ...
    @overload
    def last_window(self, x: Ticks) -> Ticks: ...
    def last_window(self, x: int | Ticks) -> int | Ticks:
        """The number of the latest window of a tick."""
        return (x - self.origin) // self.slide

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
        return _on_grid(self, step, phase)

    def resolve(self, schema: Schema) -> TimeWindow:
        self._check_label(schema)
        return _resolved(self, schema, ("size", "slide"))

    def label_type(self, schema: Schema) -> pa.DataType:
        return _label_type(self, schema)

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
        labels: list[_Interval] = []
        for low, high in _intervals(times, self.unit, self.granularity, self.phase, of):
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
        times: list[_Interval] = []
        for first, last in self._numbers(label):
            # After the end of the window before the first, and before the start of the window after the last.
            low = None if first is None else self.start(first - 1) + self.size
            high = None if last is None else self.start(last + 1)
            if low is None or high is None or low < high:
                times.append((low, high))
        # An event's windows follow each other without a gap, so they lie within one piece or in none.
        pieces = (_range(t, self.unit, high_closed=False, beyond=False) for t in times)
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

    def _numbers(self, label: Restriction) -> list[_Interval]:
        """The numbers of the windows whose labels match, neighbours joined."""
        numbers: list[_Interval] = []
        for low, high in _intervals((label,), self.unit):
            first = None if low is None else -((self.origin - low) // self.slide)
            last = None if high is None else (high - self.origin) // self.slide
            if first is not None and last is not None and first > last:
                continue
            if numbers and first is not None and numbers[-1][1] == first - 1:
                numbers[-1] = (numbers[-1][0], last)
            else:
                numbers.append((first, last))
        return numbers

    def _labels(self, numbers: list[_Interval]) -> tuple[Restriction, ...]:
        """Windows in a row as ranges, and those that stand alone as one list."""
        alone = [first for first, last in numbers if first is not None and first == last]
        rows = [(first, last) for first, last in numbers if first is None or first != last]
        ends = ((None if a is None else self.start(a), None if b is None else self.start(b)) for a, b in rows)
        pieces = [_range(e, self.unit, high_closed=True) for e in ends]
        # A single window that begins beyond the calendar has no label.
        labels = (_range((self.start(w), self.start(w)), self.unit, high_closed=True) for w in alone)
        if listed := [v for r in labels if r is not None for v in values_of(r)]:
            pieces.append(one_of(listed))
        return tuple(p for p in pieces if p is not None)

    def __repr__(self) -> str:
        kind = "tumbling" if self.is_tumbling else "sliding" if self.slide < self.size else "hopping"
        lengths = [self.size] if self.is_tumbling else [self.size, self.slide]
        return _shown(self, kind, lengths)


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

    @overload
    def first_window(self, x: int) -> int: ...
    @overload
    def first_window(self, x: Ticks) -> Ticks: ...
    def first_window(self, x: int | Ticks) -> int | Ticks:
        """The number of the first window that an event is in; it is in all later ones too. Below 1: in none."""
        return (x - self.origin) // self.every + 1

    def end(self, number: int) -> int:
        """The end of window `number`: its label."""
        return self.origin + number * self.every

    def on_grid(self, step: int, phase: int) -> LandmarkWindow:
        return _on_grid(self, step, phase)

    def resolve(self, schema: Schema) -> LandmarkWindow:
        self._check_label(schema)
        return _resolved(self, schema, ("every",))

    def label_type(self, schema: Schema) -> pa.DataType:
        return _label_type(self, schema)

    def closed_by(self, *times: Restriction, of: pa.DataType | None = None) -> tuple[Restriction, ...]:
        if ANY in times:
            return (ANY,)
        for low, high in _intervals(times, self.unit, self.granularity, self.phase, of):
            if low is not None and low - self.granularity >= self.origin:
                continue  # Events between the origin and this restriction may still come.
            if high is None:
                return (Range(None, None),)
            last = (high + self.granularity - self.origin) // self.every
            if last >= 1:
                ends = _range((None, self.end(last)), self.unit, high_closed=True)
                return () if ends is None else (ends,)
        return ()

    def confined_to(self, label: Restriction) -> tuple[Restriction, ...]:
        if label is ANY:
            return (ANY,)
        for low, high in _intervals((label,), self.unit):
            if high is None:  # An event is in all windows from some end on, so only these can hold all of its windows.
                number = 1 if low is None else max(1, -((self.origin - low) // self.every))
                piece = _range((self.end(number - 1), None), self.unit, high_closed=False, beyond=False)
                return () if piece is None else (piece,)
        return ()

    def __repr__(self) -> str:
        return _shown(self, "landmark", [self.every])


@dataclass(frozen=True, repr=False)
class CountWindow(Window):
    """Windows over the positions 0, 1, 2, … of the events of each group, named by their first position.

    >>> w = Window.count(3, 2)
    >>> [(w.first_window(p), w.last_window(p)) for p in range(5)]
    [(0, 0), (0, 0), (0, 1), (1, 1), (1, 2)]
    """

    size: int
    slide: int
    on: None = None

    @overload
    def first_window(self, position: int) -> int: ...
    @overload
    def first_window(self, position: Ticks) -> Ticks: ...
    def first_window(self, position: int | Ticks) -> int | Ticks:
        number = (position - self.size) // self.slide + 1
        return max(0, number) if isinstance(number, int) else np.maximum(number, 0)

    @overload
    def last_window(self, position: int) -> int: ...
    @overload
    def last_window(self, position: Ticks) -> Ticks: ...
    def last_window(self, position: int | Ticks) -> int | Ticks:
        return position // self.slide

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


def to_tick(value: Any, unit: Unit) -> int:
    """The tick of a value in its canonical form.

    >>> from datetime import date
    >>> to_tick(datetime(1969, 12, 31, 23, 59, 59), "us"), to_tick(date(1970, 1, 3), "day")
    (-1000000, 2)
    """
    if unit == "us":
        return int((value - _EPOCH) // timedelta(microseconds=1))
    return int((value - _EPOCH.date()).days) if unit == "day" else int(value)


def from_tick(tick: int, unit: Unit) -> Any:
    """The value of a tick; OverflowError beyond the years 1 to 9999."""
    if unit == "us":
        return _EPOCH + timedelta(microseconds=tick)
    return _EPOCH.date() + timedelta(days=tick) if unit == "day" else tick


def _intervals(
    times: Sequence[Restriction], unit: Unit, grain: int = 1, phase: int = 0, t: pa.DataType | None = None
) -> list[_Interval]:
    """The ticks that one of them matches, as closed intervals between points of the grid, neighbours joined."""
    found: list[_Interval] = []
    for restriction in times:
        if isinstance(restriction, Range):
            low = high = None
            if restriction.low is not None:
                low = to_tick(restriction.low, unit) + (0 if restriction.low_closed else 1)
                low += (phase - low) % grain
            if restriction.high is not None:
                high = to_tick(restriction.high, unit) - (0 if restriction.high_closed else 1)
                high -= (high - phase) % grain
            if low is None or high is None or low <= high:
                found.append((low, high))
        else:
            # No event ever has a time that is not on the grid.
            ticks = (to_tick(v, unit) for v in values_of(restriction))
            found += [(t, t) for t in ticks if (t - phase) % grain == 0]
    found.sort(key=lambda ends: (ends[0] is not None, ends[0] or 0))
    joined: list[_Interval] = []
    for low, high in found:
        if joined and (joined[-1][1] is None or low is None or low <= joined[-1][1] + grain):
            first, last = joined[-1]
            joined[-1] = (first, None if last is None or high is None else max(last, high))
        else:
            joined.append((low, high))
    if joined and t in EDGES:
        least, most = (to_tick(edge, unit) for edge in EDGES[t])
        (low, _), (_, high) = joined[0], joined[-1]
        if low is not None and low - grain < least:
            joined[0] = (None, joined[0][1])
        if high is not None and high + grain > most:
            joined[-1] = (joined[-1][0], None)
    return joined


def _range(ends: _Interval, unit: Unit, *, high_closed: bool, beyond: bool = True) -> Restriction | None:
    """A range from ticks. An end beyond the calendar is no end, or, on the wrong side, leaves nothing.

    There may be events beyond the calendar too. A range that must not hold them ends with it, unless it has no end.
    """
    values: list[Any] = []
    for tick, wrong_side in zip(ends, (1, -1), strict=True):
        try:
            values.append(None if tick is None else from_tick(tick, unit))
        except OverflowError:
            if (tick or 0) * wrong_side > 0:
                return None
            kind = date if unit == "day" else datetime
            values.append(None if beyond else kind.min if wrong_side > 0 else kind.max)
            high_closed = high_closed or (wrong_side < 0 and not beyond)
    return between(values[0], values[1], values[0] is not None, high_closed and values[1] is not None)


def _time_window(size: Extent, slide: Extent, on: str | None, origin: Any, granularity: Extent) -> TimeWindow:
    length, unit = _extent(size, "window size")
    step, step_unit = _extent(slide, "window slide")
    if unit != step_unit:
        raise UserError(f"window size {size!r} and slide {slide!r} differ in kind", hint="write both as durations")
    least = -(-length // OVERLAPPING)
    _check_overlap(length, step, repr(size), repr(slide), repr(format_duration(least) if unit == "us" else least))
    start, counted = _origin(origin, unit)
    return TimeWindow(on, length, step, start, _grain(granularity, unit), counted)


def _check_overlap(size: int, slide: int, wide: str, step: str, least: str) -> None:
    """Refuse windows so many of which an event would be in that no run could hold them."""
    if (overlapping := -(-size // slide)) > OVERLAPPING:
        raise UserError(
            f"window size {wide} and slide {step}: every event would be in {overlapping:,} windows, "
            f"and at most {OVERLAPPING:,} are possible",
            hint=f"a slide of at least {least}",
        )


def _extent(value: Extent, what: str) -> tuple[int, Unit]:
    if isinstance(value, int) and not isinstance(value, bool):
        if value <= 0:
            raise UserError(f"{what}: {value} is not positive", hint="write a positive number")
        return value, "unit"
    return parse_duration(value, where=what, allow_zero=False), "us"


def _grain(value: Extent, unit: Unit) -> int:
    ticks, grain_unit = _extent(value, "window granularity")
    if grain_unit != unit and value != 1:
        raise UserError(f"window granularity {value!r} differs in kind from the size", hint="write both as durations")
    return ticks


def _origin(value: Any, unit: Unit) -> tuple[int, Unit]:
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


def _resolved(window: _W, schema: Schema, lengths: tuple[str, ...]) -> _W:
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
        parts: dict[str, int] = {name: getattr(window, name) for name in (*lengths, "origin")}
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


def _on_grid(window: _W, step: int, phase: int) -> _W:
    return replace(window, granularity=step, phase=phase) if step % window.granularity == 0 else window


def _label_type(window: TimeWindow | LandmarkWindow, schema: Schema) -> pa.DataType:
    # Windows of small integers may start or end beyond the small type.
    return {"us": pa.timestamp("us"), "day": pa.date32(), "unit": pa.int64()}[_resolved_unit(window, schema)]


def _resolved_unit(window: TimeWindow | LandmarkWindow, schema: Schema) -> Unit:
    if isinstance(window, LandmarkWindow):
        return _resolved(window, schema, ("every",)).unit
    return _resolved(window, schema, ("size", "slide")).unit


def _shown(window: TimeWindow | LandmarkWindow, kind: str, lengths: list[int]) -> str:
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
