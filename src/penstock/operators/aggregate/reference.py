"""Aggregate, one event at a time: keeps every event of a group and computes once, when the group is complete."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.operators.aggregate import operator
from penstock.pattern.pattern import Pattern
from penstock.reference.domain import domains
from penstock.reference.failure import Note, ignore
from penstock.reference.grouping import Group, check_arguments, group_key, results
from penstock.reference.item import Assertion, Event, Item
from penstock.reference.promises import Promises


class AggregateReference:
    """One output event per group, when a punctuation that describes the grouping attributes matches the group.

    "Describes": it restricts grouping attributes only. One that restricts another attribute as well leaves events of
    the group possible, so it closes nothing and is not passed on, unless others complete it: with sensors 3 and 4 and
    no more, one for each of them closes the hour. Without keys there is one group, and, unlike in SQL, none while
    there is no event: an empty stream has nothing to tell.
    """

    def __init__(self, declared: operator.Aggregate) -> None:
        (source,) = declared.inputs
        self.declared, self.schema = declared, source.schema
        self.promised = Promises(source.schema, domains(source, but=declared.keys))
        self.groups: dict[tuple[Any, ...], Group] = {}
        self.on_failure: Note = ignore

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        check_arguments(self.declared, event.row, self.schema)
        keys = self.declared.keys
        group = self.groups.setdefault(group_key(event.row, keys), Group(tuple(event.row[k] for k in keys), []))
        group.rows.append(event.row)
        return []

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        return [item for known in self.promised.add(pattern) for item in self._close(known)]

    def _close(self, pattern: Pattern) -> Iterable[Item]:
        if not set(pattern.restricted) <= set(self.declared.keys):
            return []
        out: list[Item] = []
        for identity, group in list(self.groups.items()):
            key = dict(zip(self.declared.keys, group.key))
            if all(pattern[attribute].matches(key[attribute]) for attribute in pattern.restricted):
                out += results(self.declared, key, group.rows, self.schema, self.on_failure)
                del self.groups[identity]
        restrictions = {attribute: pattern[attribute] for attribute in pattern.restricted}
        return [*out, Assertion(Pattern.by_name(self.declared.schema, restrictions))]

    def state(self) -> list[Any]:
        return [group.copy() for group in self.groups.values()]
