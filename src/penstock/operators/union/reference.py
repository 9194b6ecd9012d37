"""Union, one event at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.pattern.pattern import Pattern
from penstock.plan import operator
from penstock.reference.agreement import Agreement
from penstock.reference.item import Assertion, Event, Item


class UnionReference:
    """Passes events at once, and a punctuation when every input has given it."""

    def __init__(self, declared: operator.Operator) -> None:
        self.schema = declared.schema
        self.agreement = Agreement(range(len(declared.inputs)))

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        return [Event({name: event.row[name] for name in self.schema.names})]

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        moved = pattern.onto(self.schema, {name: name for name in pattern.restricted})
        return [Assertion(p) for p in self.agreement.give(input, moved)]

    def state(self) -> list[Any]:
        """Punctuations that wait for other inputs; events are never held."""
        return self.agreement.pending()
