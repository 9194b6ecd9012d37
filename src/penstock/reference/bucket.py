"""Bucket, one event at a time: windows by testing membership, punctuation by asking what could still come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from penstock.algebra import operator
from penstock.algebra.pattern import Pattern
from penstock.algebra.restriction import ANY, Range, Restriction, at_most, between, one_of, values_of
from penstock.algebra.window import LandmarkWindow, TimeWindow
from penstock.errors import UserError
from penstock.reference.item import Event, Item, Punctuate
from penstock.reference.moment import from_tick, to_tick


class Bucket:
    """One output event per window of the event, with the start of the window as its label.

    A punctuation passes as it is, with `*` for the label. Where it restricts the time, it also says which windows are
    complete: those all of whose possible events match. That is a second punctuation, on the label.
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

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        if event.row[self.on] is None:
            return []  # An event without a time is in no window.
        tick = to_tick(event.row[self.on])
        starts = (start for start in _starts(self.window, tick, tick) if start <= tick < start + self.window.size)
        return [Event(self._labelled(from_tick(start, self.label_type), event.row)) for start in starts]

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        restrictions = {attribute: pattern[attribute] for attribute in pattern.restricted}
        out: list[Item] = []
        if self.on in restrictions:
            complete = complete_windows(self.window, restrictions[self.on])
            if complete is not None:
                others = {a: r for a, r in restrictions.items() if a != self.on}
                labels = to_labels(complete, self.label_type)
                out.append(Punctuate(Pattern.by_name(self.declared.schema, {self.window.label: labels, **others})))
        return [*out, Punctuate(Pattern.by_name(self.declared.schema, restrictions))]

    def state(self) -> list[Any]:
        return []

    def _labelled(self, label: Any, row: Any) -> dict[str, Any]:
        return {name: label if name == self.window.label else row[name] for name in self.declared.schema.names}


def _starts(window: TimeWindow, low: int, high: int) -> Iterator[int]:
    """Starts of all windows that could touch [low, high], and one more on either side."""
    start = window.origin + (low - window.size - window.origin) // window.slide * window.slide
    while start <= high + window.slide:
        yield start
        start += window.slide


def possible(begin: int, end: int, grain: int) -> range:
    """The ticks that an event in [begin, end) can have: the multiples of the granularity.

    >>> list(possible(5, 31, 10))
    [10, 20, 30]
    """
    return range(-(-begin // grain) * grain, end, grain)


def all_match(ticks: range, restriction: Restriction) -> bool:
    """Whether each of these ticks matches, by definition; a range is convex, so its ends speak for what is between."""
    if not ticks or restriction is ANY:
        return True
    if isinstance(restriction, Range):
        return _in_range(ticks[0], restriction) and _in_range(ticks[-1], restriction)
    listed = {to_tick(v) for v in values_of(restriction)}
    return len(ticks) <= len(listed) and all(t in listed for t in ticks)


def _in_range(tick: int, r: Range) -> bool:
    above = r.low is None or (tick >= to_tick(r.low) if r.low_closed else tick > to_tick(r.low))
    below = r.high is None or (tick <= to_tick(r.high) if r.high_closed else tick < to_tick(r.high))
    return above and below


def complete_windows(window: TimeWindow, restriction: Restriction) -> Restriction | None:
    """The starts (as ticks) of the windows all of whose possible events match, or None if there are none.

    >>> from penstock.algebra.window import Window
    >>> from penstock.algebra.restriction import at_most
    >>> half_minutes = Window.tumbling(60, granularity=30)
    >>> print(complete_windows(half_minutes, at_most(90)), complete_windows(Window.tumbling(60), at_most(90)))
    <= 60 <= 0
    """

    def complete(start: int) -> bool:
        ticks = possible(start, start + window.size, window.granularity)
        return len(ticks) > 0 and all_match(ticks, restriction)

    if isinstance(restriction, Range):
        # The complete windows follow each other. The outermost ones are near the ends of the range.
        low, high = restriction.low, restriction.high
        first = last = None
        margin = window.granularity + window.slide
        if low is not None:
            least = Range(low, None, restriction.low_closed)
            near = _starts(window, to_tick(low) - margin, to_tick(low) + window.size + margin)
            first = min(s for s in near if all_match(_points(window, s), least) and _points(window, s))
        if high is not None:
            most = Range(None, high, high_closed=restriction.high_closed)
            near = _starts(window, to_tick(high) - window.size - margin, to_tick(high) + margin)
            last = max(s for s in near if all_match(_points(window, s), most) and _points(window, s))
        if first is not None and last is not None and first > last:
            return None
        return between(first, last, True, True)
    listed = sorted(to_tick(v) for v in values_of(restriction))
    starts = [s for v in listed for s in _starts(window, v, v) if complete(s)]
    return one_of(starts) if starts else None


def _points(window: TimeWindow, start: int) -> range:
    return possible(start, start + window.size, window.granularity)


def complete_landmarks(window: LandmarkWindow, restriction: Restriction) -> Restriction | None:
    """The ends (as ticks) of the landmark windows all of whose possible events match.

    >>> from penstock.algebra.window import Window
    >>> from penstock.algebra.restriction import at_least, less
    >>> print(complete_landmarks(Window.landmark(10), less(35)), complete_landmarks(Window.landmark(10), at_least(3)))
    <= 30 None
    """
    high = None if not isinstance(restriction, Range) else restriction.high
    if isinstance(restriction, Range) and high is None:
        first = possible(window.origin, window.origin + window.granularity, window.granularity)
        return Range(None, None) if all_match(first, restriction) else None
    top = to_tick(high) if high is not None else max(map(to_tick, values_of(restriction)), default=window.origin)
    end, found = window.origin + window.every, None
    while end <= top + window.every + window.granularity:
        if all_match(possible(window.origin, end, window.granularity), restriction):
            found = end
        end += window.every
    return None if found is None else at_most(found)


def to_labels(ticks: Restriction, kind: Any) -> Restriction:
    """A restriction on ticks as one on labels of a type."""
    if isinstance(ticks, Range):
        low, high = (None if end is None else from_tick(end, kind) for end in (ticks.low, ticks.high))
        return between(low, high, ticks.low_closed, ticks.high_closed)
    return one_of(from_tick(t, kind) for t in values_of(ticks))
