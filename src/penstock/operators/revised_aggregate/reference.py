"""Revised aggregate, one event at a time: computes a group again whenever it changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.operators.revised_aggregate import operator
from penstock.pattern.pattern import Pattern
from penstock.plan.weight import NEVER_CAME, WEIGHT
from penstock.reference.domain import domains
from penstock.reference.failure import Note, ignore
from penstock.reference.grouping import Group, Unweighted, check_arguments, group_key, results
from penstock.reference.item import Assertion, Event, Item
from penstock.reference.promises import Promises


class RevisedAggregateReference:
    """Takes back what it has told of a group, and tells what the group comes to now."""

    def __init__(self, declared: operator.RevisedAggregate) -> None:
        (source,) = declared.inputs
        self.declared, self.schema = declared, source.schema
        self.promised = Promises(source.schema, domains(source, but=declared.keys))
        self.groups: dict[tuple[Any, ...], Group] = {}
        #: What was taken back before it came.
        self.early: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
        self.on_failure: Note = ignore

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        row = {n: v for n, v in event.row.items() if n != WEIGHT}
        check_arguments(self.declared, row, self.schema)
        keys = self.declared.keys
        group = self.groups.setdefault(group_key(row, keys), Group(tuple(row[k] for k in keys), []))
        before = self._results(group, ignore)
        weight = event.row.get(WEIGHT, 1)
        early = self.early.setdefault(group_key(row, keys), [])
        for _ in range(abs(weight)):
            # A row may be taken back before it comes.
            there, awaited = (group.rows, early) if weight > 0 else (early, group.rows)
            if row in awaited:
                awaited.remove(row)
            else:
                there.append(row)
        if not group.rows:
            del self.groups[group_key(row, keys)]
        after = self._results(group, self.on_failure)
        if before == after:
            return []
        return [Event({**r, WEIGHT: w}) for w, rows in ((-1, before), (1, after)) for r in rows]

    def _results(self, group: Group, note: Note) -> list[Mapping[str, Any]]:
        if not group.rows:
            return []
        key = dict(zip(self.declared.keys, group.key, strict=True))
        plain = Unweighted(self.declared)
        return [e.row for e in results(plain, key, group.rows, self.schema, note)]

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        return [item for known in self.promised.add(pattern) for item in self._close(known)]

    def _close(self, pattern: Pattern) -> Iterable[Item]:
        if not set(pattern.restricted) <= set(self.declared.keys):
            return []
        for identity, group in list(self.groups.items()):
            key = dict(zip(self.declared.keys, group.key, strict=True))
            if all(pattern[attribute].matches(key[attribute]) for attribute in pattern.restricted):
                del self.groups[identity]
        for identity, early in list(self.early.items()):
            if early and all(pattern[attribute].matches(early[0][attribute]) for attribute in pattern.restricted):
                for row in early:
                    self.on_failure(dict(row), NEVER_CAME)
                del self.early[identity]
        restrictions = {attribute: pattern[attribute] for attribute in pattern.restricted}
        return [Assertion(Pattern.by_name(self.declared.schema, restrictions))]

    def state(self) -> list[Any]:
        return [group.copy() for group in self.groups.values()]
