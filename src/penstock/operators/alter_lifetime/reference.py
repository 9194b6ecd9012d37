"""AlterLifetime, one event at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import Any

from penstock.operators.alter_lifetime import operator
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import ANY, Range, less
from penstock.pattern.schema import SYNC
from penstock.reference.item import Assertion, Event, Item
from penstock.reference.moment import from_tick, to_tick


class AlterLifetimeReference:
    """A row holds from f(start) to f(start) + length(start, end), and changes of it matter from f(sync) on."""

    def __init__(self, declared: operator.AlterLifetime) -> None:
        self.declared, self.schema = declared, declared.schema
        self.start, self.end = declared.schema.lifetime
        self.kind = declared.schema.type_of(self.start)

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        start, end = to_tick(event.row[self.start]), self._end(event.row)
        if self.declared.rule == "deletes":
            begin, length = end, inf
        else:
            begin, length = self._down(start), self._length(start, end)
        if begin == inf or length <= 0:
            return []
        sync = begin if self.declared.rule == "deletes" else self._down(to_tick(event.row[SYNC]))
        stop = None if begin + length == inf else from_tick(int(begin + length), self.kind)
        moments = {self.start: from_tick(int(begin), self.kind), SYNC: from_tick(int(sync), self.kind), self.end: stop}
        return [Event({**event.row, **moments})]

    def _down(self, at: float) -> float:
        every = self.declared.every
        return at - at % every if every else at

    def _end(self, row: Mapping[str, Any]) -> float:
        return inf if row[self.end] is None else to_tick(row[self.end])

    def _length(self, start: float, end: float) -> float:
        ticks = self.declared.ticks
        lengths = {"length": ticks, "extend": end - start + ticks, "at_most": min(end - start, ticks), "inserts": inf}
        return lengths[self.declared.rule]

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        said = pattern[SYNC]
        if {self.start, self.end} & {*pattern.restricted}:
            return []
        told = {n: pattern[n] for n in pattern.restricted if n != SYNC}
        if said is not ANY:
            if not isinstance(said, Range) or said.low is not None:
                return []
            first = to_tick(said.high) + said.high_closed
            told[SYNC] = less(from_tick(int(self._down(first)), self.kind)) if self.declared.every else said
        return [Assertion(Pattern.by_name(self.schema, told))]

    def state(self) -> list[Any]:
        return []
