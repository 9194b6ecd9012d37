"""Aggregate over windows of a number of events, counted per group in order of arrival."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.operators.count_aggregate import operator
from penstock.pattern.pattern import Pattern
from penstock.reference.domain import domains
from penstock.reference.failure import Note, ignore
from penstock.reference.grouping import Group, check_arguments, group_key, results
from penstock.reference.item import Assertion, Event, Item
from penstock.reference.promises import Promises


class CountAggregateReference:
    """A window is emitted as soon as it has all its events; an unfinished one when its group is complete.

    Positions count within a group, so Bucket and Aggregate are one here. A punctuation closes groups if it restricts
    no attribute but the keys: the position of an event says nothing about its values.
    """

    def __init__(self, declared: operator.CountAggregate) -> None:
        (bucket,) = declared.inputs
        (source,) = bucket.inputs
        self.declared, self.schema, self.window = declared, source.schema, declared.window
        self.keys = tuple(k for k in declared.keys if k != declared.window.label)
        self.promised = Promises(source.schema, domains(source, but=self.keys))
        self.groups: dict[tuple[Any, ...], Group] = {}
        self.on_failure: Note = ignore

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        check_arguments(self.declared, event.row, self.schema)
        identity = group_key(event.row, self.keys)
        group = self.groups.setdefault(identity, Group(tuple(event.row[k] for k in self.keys), []))
        group.rows.append(event.row)
        # The window that ends with this event, if there is one.
        start = len(group.rows) - self.window.size
        return self._window(group, start) if start >= 0 and start % self.window.slide == 0 else []

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        return [item for known in self.promised.add(pattern) for item in self._close(known)]

    def _close(self, pattern: Pattern) -> Iterable[Item]:
        if not set(pattern.restricted) <= set(self.keys):
            return []
        out: list[Item] = []
        for identity, group in list(self.groups.items()):
            key = dict(zip(self.keys, group.key))
            if all(pattern[attribute].matches(key[attribute]) for attribute in pattern.restricted):
                starts = range(0, len(group.rows), self.window.slide)
                out += [w for s in starts if s + self.window.size > len(group.rows) for w in self._window(group, s)]
                del self.groups[identity]
        restrictions = {attribute: pattern[attribute] for attribute in pattern.restricted}
        return [*out, Assertion(Pattern.by_name(self.declared.schema, restrictions))]

    def state(self) -> list[Any]:
        return [group.copy() for group in self.groups.values()]

    def _window(self, group: Group, start: int) -> list[Event]:
        rows = group.rows[start : start + self.window.size]
        key = {**dict(zip(self.keys, group.key)), self.window.label: start}
        return results(self.declared, key, rows, self.schema, self.on_failure)
