"""Changes, one event at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.operators.changes import operator
from penstock.pattern.pattern import Pattern
from penstock.plan.promise import Lifetime
from penstock.plan.weight import GONE, WEIGHT
from penstock.reference.item import Assertion, Event, Item


def takes_back(life: Lifetime, row: Any) -> bool:
    """Whether an event is a retraction."""
    if life.kind:
        return str(row[life.kind]).strip().lower() in GONE
    return bool(life.new_end) and row[life.new_end] is not None


def ends_at(life: Lifetime, row: Any) -> Any:
    """From when on what a retraction is about no longer holds."""
    new = row[life.new_end] if life.new_end else None
    return row[life.start] if new is None else new


class ChangesReference:
    """A retraction takes back the row as it was, and tells the part of it that still holds."""

    def __init__(self, declared: operator.Changes) -> None:
        self.schema, self.life = declared.schema, declared.lifetime

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        row, life = event.row, self.life
        if not takes_back(life, row):
            return [Event({**row, WEIGHT: 1})]
        gone, new = Event({**row, WEIGHT: -1}), ends_at(life, row)
        return [gone] if new == row[life.start] else [gone, Event({**row, life.end: new, WEIGHT: 1})]

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        if self.life.end in pattern.restricted:
            return []
        return [Assertion(Pattern.by_name(self.schema, {n: pattern[n] for n in pattern.restricted}))]

    def state(self) -> list[Any]:
        return []
