"""Distinct, one event at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.operators.distinct import operator
from penstock.pattern.pattern import Pattern
from penstock.reference.item import Assertion, Event, Item
from penstock.reference.summary import identity


class DistinctReference:
    """Each event at its first appearance; remembered until a punctuation says that it cannot come again."""

    def __init__(self, declared: operator.Distinct) -> None:
        self.seen: dict[tuple[Any, ...], Event] = {}

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        key = tuple(map(identity, event.row.values()))
        if key in self.seen:
            return []
        self.seen[key] = event
        return [event]

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        self.seen = {key: event for key, event in self.seen.items() if not pattern.matches_row(event.row)}
        return [Assertion(pattern)]

    def state(self) -> list[Any]:
        return list(self.seen.values())
