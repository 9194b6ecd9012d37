"""Revised aggregate, one event at a time: computes a group again whenever it changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.operators.revised_aggregate import operator
from penstock.pattern.pattern import Pattern
from penstock.plan.weight import NEVER_CAME, WEIGHT
from penstock.reference.failure import Note, ignore
from penstock.reference.grouping import Group, GroupsReference, Unweighted, check_arguments, group_key, results
from penstock.reference.item import Event, Item


class RevisedAggregateReference(GroupsReference):
    """Takes back what it has told of a group, and tells what the group comes to now."""

    def __init__(self, declared: operator.RevisedAggregate) -> None:
        super().__init__(declared, declared.inputs[0], declared.keys)
        self.declared = declared
        #: What was taken back before it came.
        self.early: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        row = {n: v for n, v in event.row.items() if n != WEIGHT}
        check_arguments(self.declared, row, self.schema)
        group, key = self.group_of(row), group_key(row, self.keys)
        before = self._results(group, ignore)
        weight = event.row.get(WEIGHT, 1)
        early = self.early.setdefault(key, [])
        for _ in range(abs(weight)):
            # A row may be taken back before it comes.
            there, awaited = (group.rows, early) if weight > 0 else (early, group.rows)
            if row in awaited:
                awaited.remove(row)
            else:
                there.append(row)
        if not group.rows:
            del self.groups[key]
        after = self._results(group, self.on_failure)
        if before == after:
            return []
        return [Event({**r, WEIGHT: w}) for w, rows in ((-1, before), (1, after)) for r in rows]

    def _results(self, group: Group, note: Note) -> list[Mapping[str, Any]]:
        if not group.rows:
            return []
        key = dict(zip(self.keys, group.key, strict=True))
        plain = Unweighted(self.declared)
        return [e.row for e in results(plain, key, group.rows, self.schema, note)]

    def close(self, pattern: Pattern) -> list[Item]:
        for key, early in list(self.early.items()):
            if early and all(pattern[attribute].matches(early[0][attribute]) for attribute in pattern.restricted):
                for row in early:
                    self.on_failure(dict(row), NEVER_CAME)
                del self.early[key]
        return super().close(pattern)
