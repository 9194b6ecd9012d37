"""Fold, one event at a time: the table in one part, told again whenever it changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.operators.fold import operator
from penstock.operators.settle.reference import SettleReference
from penstock.pattern.pattern import Pattern
from penstock.plan.weight import PART, WEIGHT, without_weight
from penstock.reference.item import Assertion, Event, Item


class FoldReference(SettleReference):
    """Adds and takes back rows, and tells all that hold."""

    def __init__(self, declared: operator.Fold) -> None:
        self.told, self.by = declared.schema, declared.by
        self.schema = without_weight(declared.inputs[0].schema)
        self.holding = []

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        super().on_event(event)
        return [Event({**e.row, WEIGHT: w, PART: 0}) for w, e in ((0, event), *((1, e) for _, e in self.holding))]

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        if pattern.describes(self.by):
            super().on_punctuation(pattern)
        return [Assertion(Pattern.by_name(self.told, {n: pattern[n] for n in pattern.restricted}))]

    def state(self) -> list[Any]:
        return [event for _, event in self.holding]
