"""Aggregate over landmark windows, which all begin at the origin: results accumulate and nothing is forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.errors import FailingError
from penstock.operators.landmark_aggregate import operator
from penstock.operators.window.reference import complete_landmarks, possible_times, to_labels
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import ANY, Range, Restriction
from penstock.reference.domain import domains
from penstock.reference.failure import Note, ignore
from penstock.reference.grouping import Group, check_arguments, group_key, results
from penstock.reference.item import Event, Item, Punctuate
from penstock.reference.moment import from_tick, to_tick
from penstock.reference.promises import Promises, has_end


class LandmarkAggregate:
    """For every window end that is newly complete, every group with events before that end.

    An event is in infinitely many windows, so Bucket and Aggregate are one here. There are windows as far as time is
    told to have come, and when nothing more can come, those up to the latest event. It may be told later that time has
    come further, so only the end of the input is the end. Windows end for all groups together: a punctuation that
    restricts a key as well closes nothing.
    """

    def __init__(self, declared: operator.LandmarkAggregate) -> None:
        (bucket,) = declared.inputs
        (source,) = bucket.inputs
        window = declared.window
        assert window.on is not None, "the builder says which attribute is the time"
        self.declared, self.schema, self.window, self.on = declared, source.schema, window, window.on
        self.keys = tuple(k for k in declared.keys if k != window.label)
        self.label_type = declared.schema.type_of(window.label)
        self.promised = Promises(source.schema, domains(source, but=[window.on]))
        self.times = possible_times(window, source)
        self.given: list[Restriction] = []
        #: Whether nothing at all can come, and whether that was passed on. Who runs the plan knows if that is the end.
        self.idle = self.done = False
        self.is_over: Callable[[], bool] = lambda: True
        self.groups: dict[tuple[Any, ...], Group] = {}
        self.on_failure: Note = ignore
        #: Per group, the latest window end that was emitted.
        self.emitted: dict[tuple[Any, ...], int] = {}

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        moment = event.row[self.on]
        if moment is not None and to_tick(moment) % self.window.granularity:
            raise FailingError(f"'{self.on}' is off the grid of {self.window!r}")
        if moment is not None and to_tick(moment) >= self.window.origin:
            check_arguments(self.declared, event.row, self.schema)
            identity = group_key(event.row, self.keys)
            group = self.groups.setdefault(identity, Group(tuple(event.row[k] for k in self.keys), []))
            group.rows.append(event.row)
        return []

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        out = [item for known in self.promised.add(pattern) for item in self._close(known)]
        return [*out, *self.end()]

    def _close(self, pattern: Pattern) -> Iterable[Item]:
        if not set(pattern.restricted) <= {self.on}:
            return []
        self.given.append(pattern[self.on])
        self.idle = self.idle or ANY in self.given
        out: list[Item] = []
        come = complete_landmarks(self.window, [g for g in self.given if has_end(g)], self.times)
        if isinstance(come, Range) and come.high is not None:
            out += self._emit_up_to(come.high)
            labels = to_labels(come, self.label_type)
            out.append(Punctuate(Pattern.by_name(self.declared.schema, {self.window.label: labels})))
        if self.idle or complete_landmarks(self.window, self.given, self.times) == Range(None, None):
            out += self._emit_up_to(self._end_of_latest())
        return out

    def end(self) -> list[Item]:
        """The last word, when nothing can come because the input is over."""
        if self.done or not self.idle or not self.is_over():
            return []
        self.done = True
        self.groups.clear()
        return [Punctuate(Pattern.all(self.declared.schema))]

    def state(self) -> list[Any]:
        return [group.copy() for group in self.groups.values()]

    def _end_of_latest(self) -> int:
        """The end of the first window that holds the latest event."""
        end = self.window.origin
        while any(to_tick(row[self.on]) >= end for group in self.groups.values() for row in group.rows):
            end += self.window.every
        return end

    def _emit_up_to(self, last: int) -> list[Item]:
        out: list[Item] = []
        end = self.window.origin + self.window.every
        while end <= last:
            for identity, group in self.groups.items():
                key = dict(zip(self.keys, group.key))
                before = [row for row in group.rows if to_tick(row[self.on]) < end]
                new = end > self.emitted.get(identity, self.window.origin)
                if before and new:
                    key[self.window.label] = from_tick(end, self.label_type)
                    out += results(self.declared, key, before, self.schema, self.on_failure)
                    self.emitted[identity] = end
            end += self.window.every
        return out
