"""Revised top, one event at a time: all rows of a group, and after each which of them are the best."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.operators.revised_top import operator
from penstock.operators.top.reference import in_order
from penstock.pattern.pattern import Pattern
from penstock.plan.weight import NEVER_CAME, WEIGHT
from penstock.reference.domain import domains
from penstock.reference.failure import Note, ignore
from penstock.reference.grouping import group_key
from penstock.reference.item import Assertion, Event, Item
from penstock.reference.promises import Promises

Rows = list[Mapping[str, Any]]


class RevisedTopReference:
    """Tells which rows have left the best, and which have come to them."""

    def __init__(self, declared: operator.RevisedTop) -> None:
        (below,) = declared.inputs
        self.declared = declared
        self.promised = Promises(below.schema, domains(below, but=declared.per))
        self.groups: dict[tuple[Any, ...], Rows] = {}
        #: What was taken back before it came.
        self.early: dict[tuple[Any, ...], Rows] = {}
        self.on_failure: Note = ignore

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        row = {n: v for n, v in event.row.items() if n != WEIGHT}
        key, weight = group_key(row, self.declared.per), event.row.get(WEIGHT, 1)
        group, early = self.groups.setdefault(key, []), self.early.setdefault(key, [])
        before = self._best(group)
        for _ in range(abs(weight)):
            there, awaited = (group, early) if weight > 0 else (early, group)
            if row in awaited:
                awaited.remove(row)
            else:
                there.append(row)
        after = self._best(group)
        gone = _without(before, after)
        return [Event({**r, WEIGHT: w}) for w, rows in ((-1, gone), (1, _without(after, before))) for r in rows]

    def _best(self, rows: Rows) -> Rows:
        found = in_order([Event(r) for r in rows], self.declared.order)
        return [e.row for e in found[: self.declared.count]]

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        return [item for known in self.promised.add(pattern) for item in self._close(known)]

    def _close(self, pattern: Pattern) -> Iterable[Item]:
        if not set(pattern.restricted) <= set(self.declared.per):
            return []
        for held in (self.early, self.groups):
            for key in [k for k, rows in held.items() if rows and pattern.matches_row(rows[0])]:
                for row in held.pop(key) if held is self.early else ():
                    self.on_failure(dict(row), NEVER_CAME)
        return [Assertion(pattern)]

    def state(self) -> list[Any]:
        return [row for rows in self.groups.values() for row in rows]


def _without(rows: Rows, others: Rows) -> Rows:
    """Those of the rows that are not among the others, each as often."""
    left = list(others)
    found = []
    for row in rows:
        if row in left:
            left.remove(row)
        else:
            found.append(row)
    return found
