"""Revised join, one event at a time: what a change of one side changes, by definition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from penstock.operators.join.operator import LONELY
from penstock.operators.join.reference import PairReference
from penstock.operators.join.reference_partner import HeldEvent, Row, joined
from penstock.operators.revised_join import operator
from penstock.pattern.pattern import Pattern
from penstock.plan.weight import WEIGHT, without_weight
from penstock.reference.item import Event, Item
from penstock.reference.summary import identity


@dataclass
class WeightedEvent(HeldEvent):
    """A row that holds, as often as its weight says. Of its `partners` some may not be held any more."""

    weight: int = 1
    partners: int = 0


class RevisedJoinReference(PairReference):
    """Holds the rows of either side while changes of the other may still meet them."""

    def __init__(self, declared: operator.RevisedJoin) -> None:
        self.held: list[list[WeightedEvent]] = [[], []]
        super().__init__(declared, self.held.__getitem__)
        self.plain = without_weight(declared.schema)

    def on_event(self, event: Event, input: int = 0) -> Iterable[Item]:
        row = {n: v for n, v in event.row.items() if n != WEIGHT}
        weight = event.row.get(WEIGHT, 1)
        theirs = [h for h in self.held[1 - input] if self._match(HeldEvent(row, input), h)]
        out: list[Item] = []
        if self.declared.how not in ("semi", "anti"):
            out += [self._pair(input, row, h.row, weight * h.weight) for h in theirs]
        partners = sum(h.weight for h in theirs)
        if self._alone(input, partners):
            out.append(self._pair(input, row, None, weight))
        for h in theirs:
            was, now = self._alone(1 - input, h.partners), self._alone(1 - input, h.partners + weight)
            h.partners += weight
            if was != now:
                out.append(self._pair(1 - input, h.row, None, h.weight if now else -h.weight))
        self._take(input, row, weight, partners)
        return [*out, *self.outlet.speak()]

    def _take(self, input: int, row: Row, weight: int, partners: int) -> None:
        wanted = self.partners.wanted(input, row)
        if wanted is None or not self.promised[1 - input].could_come(wanted):
            return
        same = [h for h in self.held[input] if _identity(h.row) == _identity(row)]
        if same:
            same[0].weight += weight
            self.held[input][:] = [h for h in self.held[input] if h.weight]
        else:
            self.held[input].append(WeightedEvent(row, input, weight=weight, partners=partners))

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        known = self.promised[input].add(pattern)
        other = 1 - input
        self.held[other][:] = [
            h
            for h in self.held[other]
            if (wanted := self.partners.wanted(other, h.row)) is not None and self.promised[input].could_come(wanted)
        ]
        self.outlet.hear(input, known)
        return list(self.outlet.speak())

    def _alone(self, input: int, partners: int) -> bool:
        """Whether a row of an input with so many partners comes out by itself."""
        if self.declared.how == "semi":
            return input == 0 and partners > 0
        return input in LONELY[self.declared.how] and partners == 0

    def _pair(self, input: int, mine: Row, theirs: Row | None, weight: int) -> Event:
        rows = (mine, theirs) if input == 0 else (theirs, mine)
        return Event({**joined(self.declared.columns, rows, self.plain).row, WEIGHT: weight})

    def state(self) -> list[Any]:
        return [h.copy() for side in self.held for h in side]


def _identity(row: Row) -> tuple[Any, ...]:
    return tuple(map(identity, row.values()))
