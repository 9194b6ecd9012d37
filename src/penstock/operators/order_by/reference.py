"""OrderBy, one event at a time: exactly, as far as punctuation allows, or approximately, with a buffer (BSort)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from penstock.operators.order_by import operator
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Range, Restriction, at_most, between, greater, less
from penstock.reference.domain import domains
from penstock.reference.item import Assertion, Event, Item
from penstock.reference.promises import Promises, Value, Wanted, widest
from penstock.reference.summary import sort_key


class _Descending:
    """A sort key the other way round."""

    def __init__(self, key: tuple[int, Any]) -> None:
        self.key = key

    def __lt__(self, other: _Descending) -> bool:
        return other.key < self.key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and self.key == other.key


class OrderByReference:
    """Events in order; NaN and then null last, ascending and descending; equal ones in order of arrival.

    An event leaves when no event that belongs before it or beside it can still come, and a punctuation when no event
    that it matches is held. With a slack of n, an event leaves when it is the least of n + 1, whatever punctuation
    says; of punctuations only the end passes.
    """

    def __init__(self, declared: operator.OrderBy) -> None:
        (source,) = declared.inputs
        self.declared = declared
        self.promised = Promises(source.schema, domains(source))
        self.held: list[Event] = []
        self.waiting: list[Pattern] = []

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        self.held.append(event)
        self.held.sort(key=self._place)  # Stable: the first to arrive stays the first among equals.
        if self.declared.slack is not None and len(self.held) > self.declared.slack:
            return [self.held.pop(0)]
        return []

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        out: list[Item] = []
        if self.declared.slack is not None:
            if pattern.restricted:
                return []
            out, self.held = [*self.held], []
            return [*out, Assertion(pattern)]
        self.waiting += self.promised.add(pattern)
        while self.held and not any(self.promised.could_come(w) for w in self._not_after(self.held[0])):
            out.append(self.held.pop(0))
        return [*out, *self._pass_on()]

    def state(self) -> list[Any]:
        return list(self.held)

    def _place(self, event: Event) -> tuple[Any, ...]:
        place: list[Any] = []
        for name, down in self.declared.by:
            key = sort_key(event.row[name])
            last, _ = key  # Numbers, then NaN, then null, whichever way the numbers go.
            place += [last, _Descending(key) if down else key]
        return tuple(place)

    def _pass_on(self) -> list[Item]:
        free = [p for p in self.waiting if not any(p.matches_row(event.row) for event in self.held)]
        self.waiting = [p for p in self.waiting if p not in free]
        return [Assertion(p) for p in widest(free)]

    def _not_after(self, event: Event) -> Iterator[Wanted]:
        """What an event looks like that does not belong behind this one: in terms of one attribute after the other."""
        equal: dict[str, list[Value | Restriction]] = {}
        for name, down in self.declared.by:
            value = event.row[name]
            for before in _before(value, down, self.promised.schema.type_of(name)):
                yield {**equal, name: [*equal.get(name, []), before]}
            equal = {**equal, name: [*equal.get(name, []), Value(value)]}
        yield equal


def _before(value: Any, down: bool, kind: pa.DataType) -> list[Value | Restriction]:
    """The values that come before this one; either way NaN comes behind all numbers, and null last."""
    if value is None:
        return [Range(None, None)]  # NaN included.
    if isinstance(value, float) and math.isnan(value):
        return [at_most(math.inf)]
    if down and pa.types.is_floating(kind):
        return [between(value, math.inf, False, True)]
    return [greater(value) if down else less(value)]
