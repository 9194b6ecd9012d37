"""Settle, one event at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.operators.settle import operator
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import SYNC
from penstock.plan.weight import WEIGHT
from penstock.reference.item import Assertion, Event, Item
from penstock.reference.moment import from_tick, to_tick
from penstock.reference.summary import identity


class SettleReference:
    """Adds and takes back rows; tells those that a punctuation matches."""

    def __init__(self, declared: operator.Settle) -> None:
        self.schema = declared.schema
        self.holding: list[tuple[tuple[Any, ...], Event]] = []

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        row = {n: event.row[n] for n in self.schema.names}
        if self.schema.lifetime:
            # Of rows that hold for a time it is the last moment at which they do that has to be final.
            end = row[self.schema.lifetime[1]]
            row[SYNC] = None if end is None else from_tick(to_tick(end) - 1, self.schema.type_of(SYNC))
        same = tuple(map(identity, row.values()))
        for _ in range(abs(event.row[WEIGHT])):
            if event.row[WEIGHT] > 0:
                self.holding.append((same, Event(row)))
            else:
                del self.holding[[known for known, _ in self.holding].index(same)]
        return []

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        final = [event for _, event in self.holding if pattern.matches_row(event.row)]
        self.holding = [(same, event) for same, event in self.holding if not pattern.matches_row(event.row)]
        return [*final, Assertion(Pattern.by_name(self.schema, {n: pattern[n] for n in pattern.restricted}))]

    def state(self) -> list[Any]:
        return [event for _, event in self.holding]
