"""Limit, one event at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.operators.limit import operator
from penstock.pattern.pattern import Pattern
from penstock.reference.item import Assertion, Event, Item


class LimitReference:
    """The first events, and behind the last of them the end."""

    def __init__(self, declared: operator.Limit) -> None:
        self.declared = declared
        self.taken = 0
        self.over = False

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        if self.taken == self.declared.count:
            return []
        self.taken += 1
        if self.taken < self.declared.count:
            return [event]
        return [event, *self._end()]

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        if self.over:
            return []
        return [Assertion(pattern)] if pattern.restricted else self._end()

    def _end(self) -> list[Item]:
        self.over = True
        return [Assertion(Pattern.all(self.declared.schema))]

    def state(self) -> list[Any]:
        """No event is held; the count is all there is."""
        return []
