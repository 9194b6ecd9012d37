"""Aggregate over windows of a number of events, counted per group in order of arrival."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.operators.count_aggregate import operator
from penstock.reference.grouping import Group, GroupsReference, check_arguments, results
from penstock.reference.item import Event, Item


class CountAggregateReference(GroupsReference):
    """A window is emitted as soon as it has all its events; an unfinished one when its group is complete.

    Positions count within a group, so Bucket and Aggregate are one here. A punctuation closes groups if it restricts
    no attribute but the keys: the position of an event says nothing about its values.
    """

    def __init__(self, declared: operator.CountAggregate) -> None:
        (bucket,) = declared.inputs
        super().__init__(declared, bucket.inputs[0], declared.without_label)
        self.declared, self.window = declared, declared.window

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        check_arguments(self.declared, event.row, self.schema)
        group = self.group_of(event.row)
        group.rows.append(event.row)
        # The window that ends with this event, if there is one.
        start = len(group.rows) - self.window.size
        return self._window(group, start) if start >= 0 and start % self.window.slide == 0 else []

    def complete(self, group: Group, key: dict[str, Any]) -> Iterable[Item]:
        starts = range(0, len(group.rows), self.window.slide)
        return [w for s in starts if s + self.window.size > len(group.rows) for w in self._window(group, s)]

    def _window(self, group: Group, start: int) -> list[Event]:
        rows = group.rows[start : start + self.window.size]
        key = {**dict(zip(self.keys, group.key)), self.window.label: start}
        return results(self.declared, key, rows, self.schema, self.on_failure)
