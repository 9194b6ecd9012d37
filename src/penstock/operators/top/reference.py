"""Top, one event at a time: the best events of each group so far, given out when the group is complete."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock.operators.top import operator
from penstock.pattern.pattern import Pattern
from penstock.reference.domain import domains
from penstock.reference.grouping import group_key
from penstock.reference.item import Assertion, Event, Item
from penstock.reference.promises import Promises


class TopReference:
    """As an aggregate: a punctuation that describes the grouping attributes closes the groups that it matches."""

    def __init__(self, declared: operator.Top) -> None:
        (source,) = declared.inputs
        self.declared = declared
        self.promised = Promises(source.schema, domains(source, but=declared.per))
        self.groups: dict[tuple[Any, ...], list[Event]] = {}

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        group = self.groups.setdefault(group_key(event.row, self.declared.per), [])
        group[:] = in_order([*group, event], self.declared.order)[: self.declared.count]
        return []

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        return [item for known in self.promised.add(pattern) for item in self._close(known)]

    def _close(self, pattern: Pattern) -> Iterable[Item]:
        if not set(pattern.restricted) <= set(self.declared.per):
            return []
        closed = [key for key, group in self.groups.items() if pattern.matches_row(group[0].row)]
        return [*(event for key in closed for event in self.groups.pop(key)), Assertion(pattern)]

    def state(self) -> list[Any]:
        return [event for group in self.groups.values() for event in group]


def in_order(events: Iterable[Event], order: Sequence[tuple[str, bool]]) -> list[Event]:
    """Events sorted, by the least significant attribute first: each sort keeps what those before it have done.

    Null comes last and NaN before it, ascending and descending.

    >>> rows = [{"a": 1, "b": 2.0}, {"a": None, "b": 1.0}, {"a": 3, "b": math.nan}, {"a": 3, "b": 0.0}]
    >>> [tuple(e.row.values()) for e in in_order(map(Event, rows), [("a", True), ("b", True)])]
    [(3, 0.0), (3, nan), (1, 2.0), (None, 1.0)]
    """
    listed = list(events)
    for name, down in reversed(order):
        known = [e for e in listed if not _is_null(e.row, name) and not _is_nan(e.row, name)]
        known.sort(key=lambda e: e.row[name], reverse=down)
        listed = [*known, *(e for e in listed if _is_nan(e.row, name)), *(e for e in listed if _is_null(e.row, name))]
    return listed


def _is_null(row: Mapping[str, Any], name: str) -> bool:
    return row[name] is None


def _is_nan(row: Mapping[str, Any], name: str) -> bool:
    return isinstance(row[name], float) and math.isnan(row[name])
