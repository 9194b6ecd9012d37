"""Bucket, one event at a time: windows by testing membership, punctuation by asking what could still come."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from penstock.errors import FailingError, UserError
from penstock.operators.window import operator
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Range, Restriction, at_most, between, values_of
from penstock.plan.operator import Operator
from penstock.plan.window import LandmarkWindow, SessionWindow, TimeWindow
from penstock.reference.domain import grid_of
from penstock.reference.item import Assertion, Event, Item
from penstock.reference.moment import from_tick, to_tick
from penstock.reference.promises import widest


class BucketReference:
    """One output event per window of the event, with the start of the window as its label.

    A punctuation passes as it is, with `*` for the label. Where it restricts the time, it also says which windows are
    complete: those all of whose possible events match it or an earlier one. That is another punctuation, on the label.
    """

    def __init__(self, declared: operator.Bucket) -> None:
        (source,) = declared.inputs
        window = declared.window.resolve(source.schema)
        if not isinstance(window, TimeWindow) or window.on is None:
            raise UserError(
                f"{window!r}: its windows exist only in an aggregate", hint="call .group_by(…).agg(…) right after it"
            )
        self.declared, self.window, self.on = declared, window, window.on
        self.label_type = declared.schema.type_of(window.label)
        self.times = possible_times(window, source)
        self.given: list[Pattern] = []

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        if event.row[self.on] is None:
            return []  # An event without a time is in no window.
        tick = to_tick(event.row[self.on])
        if tick % self.window.granularity:
            raise FailingError(f"'{self.on}' is off the grid of {self.window!r}")
        starts = (start for start in _starts(self.window, tick, tick) if start <= tick < start + self.window.size)
        return [Event(self._labelled(from_tick(start, self.label_type), event.row)) for start in starts]

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        restrictions = {attribute: pattern[attribute] for attribute in pattern.restricted}
        found: list[Pattern] = []
        if self.on in restrictions:
            self.given.append(pattern)
            for others in self._overlaps(pattern):
                # What holds for all events with such values, whatever their time.
                times = [p[self.on] for p in self.given if _beside(p, self.on).contains(others)]
                for complete in self.complete(times):
                    labels = to_labels(complete, self.label_type)
                    beside = {a: others[a] for a in others.restricted}
                    found.append(Pattern.by_name(self.declared.schema, {self.window.label: labels, **beside}))
        return [*map(Assertion, widest(found)), Assertion(Pattern.by_name(self.declared.schema, restrictions))]

    def complete(self, times: Sequence[Restriction]) -> Iterable[Range]:
        """The labels, as ticks, of the windows all of whose possible events match one of the restrictions."""
        return complete_windows(self.window, times, self.times)

    def _overlaps(self, pattern: Pattern) -> list[Pattern]:
        """What a punctuation has in common with any of the others, the time left aside."""
        found = [_beside(pattern, self.on)]
        for other in self.given:
            met = [known.intersect(_beside(other, self.on)) for known in found]
            found += [m for m in dict.fromkeys(met) if not m.is_empty and m not in found]
        return found

    def state(self) -> list[Any]:
        return []

    def _labelled(self, label: Any, row: Any) -> dict[str, Any]:
        return {name: label if name == self.window.label else row[name] for name in self.declared.schema.names}


def _beside(pattern: Pattern, on: str) -> Pattern:
    return Pattern.by_name(pattern.schema, {a: pattern[a] for a in pattern.restricted if a != on})


def _starts(window: TimeWindow, low: int, high: int) -> Iterator[int]:
    """Starts of all windows that could touch [low, high], and one more on either side."""
    start = window.origin + (low - window.size - window.origin) // window.slide * window.slide
    while start <= high + window.slide:
        yield start
        start += window.slide


@dataclass(frozen=True)
class Times:
    """The ticks that events can have: `first` plus multiples of `step`, from the least to the greatest of the type."""

    step: int = 1
    first: int = 0
    least: int = -(2**63)
    most: int = 2**63 - 1

    def within(self, begin: int, end: int) -> range:
        """Those in [begin, end).

        >>> list(Times(10).within(5, 31)), list(Times(10, 3).within(5, 31))
        ([10, 20, 30], [13, 23])
        """
        return range(begin + (self.first - begin) % self.step, end, self.step)


def possible_times(window: TimeWindow | LandmarkWindow | SessionWindow, below: Operator) -> Times:
    """What is declared of the window's attribute, or follows from its being a label of other windows."""
    assert window.on is not None
    step, first = grid_of(below, window.on)
    if step % window.granularity:
        step, first = window.granularity, 0
    kind = below.schema.type_of(window.on)
    if pa.types.is_integer(kind):
        least, most = -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1
    else:
        calendar = date if pa.types.is_date(kind) else datetime
        least, most = to_tick(calendar.min), to_tick(calendar.max)
    return Times(step, first, least, most)


def stretches(restrictions: Sequence[Restriction], times: Times) -> list[Range]:
    """The ticks that match one of the restrictions, as ranges of ticks that no possible tick lies between.

    >>> from penstock.pattern.restriction import less, one_of
    >>> [str(r) for r in stretches([between(6, 12), less(7), one_of([15, 30, 35])], Times(5))]
    ['<= 15', '[30, 35]']
    """
    ends: list[tuple[float, float]] = []
    for r in restrictions:
        if isinstance(r, Range):
            low = -math.inf if r.low is None else to_tick(r.low) + (not r.low_closed)
            high = math.inf if r.high is None else to_tick(r.high) - (not r.high_closed)
            low = low if r.low is None else times.within(int(low), int(low) + times.step)[0]
            high = high if r.high is None else times.within(int(high) - times.step + 1, int(high) + 1)[0]
            ends += [(low, high)] if low <= high else []
        else:
            listed = map(to_tick, values_of(r))
            ends += [(t, t) for t in listed if times.within(t, t + 1)]
    found: list[tuple[float, float]] = []
    for low, high in sorted(ends):
        if found and low <= found[-1][1] + times.step:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    # Nothing is possible beyond the first and the last of all.
    lows = [None if low - times.step < times.least else int(low) for low, _ in found]
    highs = [None if high + times.step > times.most else int(high) for _, high in found]
    return [Range(low, high, True, True) for low, high in zip(lows, highs, strict=True)]


def _in_range(ticks: range, r: Range) -> bool:
    """Whether each of these ticks lies in a range between ticks; it is convex, so the ends speak for the rest."""
    return not ticks or ((r.low is None or ticks[0] >= r.low) and (r.high is None or ticks[-1] <= r.high))


def complete_windows(window: TimeWindow, restrictions: Sequence[Restriction], times: Times) -> list[Range]:
    """The starts (as ticks) of the windows all of whose possible events match one of the restrictions.

    >>> from penstock.plan.window import Window
    >>> from penstock.pattern.restriction import at_most
    >>> minutes = Window.tumbling(60)
    >>> print(*complete_windows(minutes, [at_most(90)], Times(30)), *complete_windows(minutes, [at_most(90)], Times()))
    <= 60 <= 0
    """
    found: list[Range] = []
    for stretch in stretches(restrictions, times):
        # The complete windows follow each other. The outermost ones are near the ends of the stretch.
        first = last = None
        margin = times.step + window.slide
        if stretch.low is not None:
            near = _starts(window, stretch.low - margin, stretch.low + window.size + margin)
            first = min(s for s in near if _is_in(window, s, Range(stretch.low, None, True), times))
        if stretch.high is not None:
            near = _starts(window, stretch.high - window.size - margin, stretch.high + margin)
            last = max(s for s in near if _is_in(window, s, Range(None, stretch.high, high_closed=True), times))
        if first is None or last is None or first <= last:
            found.append(Range(first, last, True, True))
    return found


def _is_in(window: TimeWindow, start: int, r: Range, times: Times) -> bool:
    ticks = times.within(start, start + window.size)
    return len(ticks) > 0 and _in_range(ticks, r)


def complete_landmarks(window: LandmarkWindow, restrictions: Sequence[Restriction], times: Times) -> Restriction | None:
    """The ends (as ticks) of the landmark windows all of whose possible events match one of the restrictions.

    >>> from penstock.plan.window import Window
    >>> from penstock.pattern.restriction import at_least, less
    >>> print(complete_landmarks(Window.landmark(10), [less(7), at_least(3)], Times()))
    (, )
    >>> print(complete_landmarks(Window.landmark(10), [less(35)], Times()))
    <= 30
    """
    first = times.within(window.origin, window.origin + times.step)
    for stretch in stretches(restrictions, times):
        if not _in_range(first, stretch):
            continue
        if stretch.high is None:
            return Range(None, None)
        end, found = window.origin + window.every, None
        while end <= stretch.high + window.every + times.step:
            if _in_range(times.within(window.origin, end), stretch):
                found = end
            end += window.every
        return None if found is None else at_most(found)
    return None


def to_labels(ticks: Range, kind: Any) -> Restriction:
    """A range of ticks as one of labels of a type."""
    low, high = (None if end is None else from_tick(end, kind) for end in (ticks.low, ticks.high))
    return between(low, high, ticks.low_closed, ticks.high_closed)
