"""Aggregate over landmark windows, which all begin at the origin: results accumulate and nothing is forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.errors import FailingError
from penstock.operators.landmark_aggregate import operator
from penstock.operators.window.reference import complete_landmarks, possible_times, to_labels
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import ANY, Range, Restriction
from penstock.reference.grouping import GroupsReference, check_arguments, results
from penstock.reference.item import Assertion, Event, Item
from penstock.reference.moment import from_tick, to_tick


class LandmarkAggregateReference(GroupsReference):
    """For every window end that is newly complete, every group with events in the period before that end.

    An event is in infinitely many windows, so Bucket and Aggregate are one here. Windows end for all groups together: a
    punctuation that restricts a key as well closes nothing.
    """

    def __init__(self, declared: operator.LandmarkAggregate) -> None:
        (bucket,) = declared.inputs
        (source,) = bucket.inputs
        window = declared.window
        assert window.on is not None, "the builder says which attribute is the time"
        super().__init__(declared, source, declared.without_label, (window.on,))
        self.declared, self.window, self.on = declared, window, window.on
        self.label_type = declared.schema.type_of(window.label)
        self.times = possible_times(window, source)
        self.given: list[Restriction] = []
        #: The latest window end that was emitted.
        self.emitted = window.origin

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        moment = event.row[self.on]
        if moment is not None and to_tick(moment) % self.window.granularity:
            raise FailingError(f"'{self.on}' is off the grid of {self.window!r}")
        if moment is not None and to_tick(moment) >= self.window.origin:
            check_arguments(self.declared, event.row, self.schema)
            self.group_of(event.row).rows.append(event.row)
        return []

    def close(self, pattern: Pattern) -> list[Item]:
        self.given.append(pattern[self.on])
        ends = Range(None, None) if ANY in self.given else complete_landmarks(self.window, self.given, self.times)
        if not isinstance(ends, Range):
            return []
        if ends.high is not None:
            labels = to_labels(ends, self.label_type)
            passed = Pattern.by_name(self.declared.schema, {self.window.label: labels})
            return [*self._emit_up_to(ends.high), Assertion(passed)]
        out = self._emit_up_to(None)
        self.groups.clear()
        return [*out, Assertion(Pattern.all(self.declared.schema))]

    def _emit_up_to(self, last: int | None) -> list[Item]:
        out: list[Item] = []
        ends = {self._end(row) for group in self.groups.values() for row in group.rows}
        for end in sorted(e for e in ends if e > self.emitted and (last is None or e <= last)):
            for group in self.groups.values():
                if any(self._end(row) == end for row in group.rows):
                    key = {**dict(zip(self.keys, group.key)), self.window.label: from_tick(end, self.label_type)}
                    before = [row for row in group.rows if self._end(row) <= end]
                    out += results(self.declared, key, before, self.schema, self.on_failure)
            self.emitted = end
        return out

    def _end(self, row: Mapping[str, Any]) -> int:
        """The end of the period of an event."""
        origin, every = self.window.origin, self.window.every
        return origin + ((to_tick(row[self.on]) - origin) // every + 1) * every
