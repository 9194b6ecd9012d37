"""Aggregate, one event at a time: keeps every event of a group and computes once, when the group is complete."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.operators.aggregate import operator
from penstock.reference.grouping import Group, GroupsReference, check_arguments, results
from penstock.reference.item import Event, Item


class AggregateReference(GroupsReference):
    """One output event per group, when a punctuation that describes the grouping attributes matches the group.

    "Describes": it restricts grouping attributes only. One that restricts another attribute as well leaves events of
    the group possible, so it closes nothing and is not passed on, unless others complete it: with sensors 3 and 4 and
    no more, one for each of them closes the hour. Without keys there is one group, and, unlike in SQL, none while
    there is no event: an empty stream has nothing to tell.
    """

    def __init__(self, declared: operator.Aggregate) -> None:
        super().__init__(declared, declared.inputs[0], declared.keys)
        self.declared = declared

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        check_arguments(self.declared, event.row, self.schema)
        self.group_of(event.row).rows.append(event.row)
        return []

    def complete(self, group: Group, key: dict[str, Any]) -> Iterable[Item]:
        return results(self.declared, key, group.rows, self.schema, self.on_failure)
