"""Latest, one event at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.operators.latest import operator
from penstock.pattern.pattern import Pattern
from penstock.plan.weight import WEIGHT
from penstock.reference.domain import domains
from penstock.reference.grouping import group_key
from penstock.reference.item import Assertion, Event, Item
from penstock.reference.promises import Promises


class LatestReference:
    """A dictionary of rows by key."""

    def __init__(self, declared: operator.Latest) -> None:
        (below,) = declared.inputs
        self.keys = declared.keys
        self.promised = Promises(below.schema, domains(below, but=declared.keys))
        self.rows: dict[tuple[Any, ...], Mapping[str, Any]] = {}

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        key = group_key(event.row, self.keys)
        before = self.rows.pop(key, None)
        row = {n: v for n, v in event.row.items() if n != WEIGHT}
        if event.row[WEIGHT] > 0:
            self.rows[key] = row
        after = self.rows.get(key)
        if before == after:
            return []
        told = ((-1, before), (1, after))
        return [Event({**row, WEIGHT: weight}) for weight, row in told if row is not None]

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        return [item for known in self.promised.add(pattern) for item in self._close(known)]

    def _close(self, pattern: Pattern) -> Iterable[Item]:
        if not set(pattern.restricted) <= set(self.keys):
            return []
        self.rows = {key: row for key, row in self.rows.items() if not pattern.matches_row(row)}
        return [Assertion(pattern)]

    def state(self) -> list[Any]:
        return list(self.rows.values())
