"""Select, one event at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.operators.select import operator
from penstock.pattern.pattern import Pattern
from penstock.reference.item import Assertion, Event, Item
from penstock.sql.expression import evaluate_row


class SelectReference:
    """Keeps the events for which the predicate is true; false and null both drop.

    What holds of all events holds of some of them, so every punctuation passes.
    """

    def __init__(self, declared: operator.Select) -> None:
        self.declared = declared

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        return [event] if evaluate_row(self.declared.predicate, event.row) is True else []

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        return [Assertion(pattern)]

    def state(self) -> list[Any]:
        return []
