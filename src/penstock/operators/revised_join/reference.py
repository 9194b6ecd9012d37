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
from penstock.plan.weight import NEVER_CAME, WEIGHT, without_weight
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
        theirs = [h for h in self.held[1 - input] if h.weight > 0 and self._match(HeldEvent(row, input), h)]
        partners = sum(h.weight for h in theirs)
        weight = self._take(input, row, weight, partners)
        if not weight:
            return list(self.outlet.speak())
        out: list[Item] = []
        if self.declared.how not in ("semi", "anti"):
            out += [self._pair(input, row, h.row, weight * h.weight) for h in theirs]
        if self._alone(input, partners):
            out.append(self._pair(input, row, None, weight))
        for h in theirs:
            was, now = self._alone(1 - input, h.partners), self._alone(1 - input, h.partners + weight)
            h.partners += weight
            if was != now:
                out.append(self._pair(1 - input, h.row, None, h.weight if now else -h.weight))
        return [*out, *self.outlet.speak()]

    def _take(self, input: int, row: Row, weight: int, partners: int) -> int:
        """Hold a row, or no longer; how many more of it hold. What was taken back before it came waits for it."""
        if not self._awaited(input, row):
            return weight
        same = next((h for h in self.held[input] if _identity(h.row) == _identity(row)), None)
        if same is None:
            same = WeightedEvent(row, input, weight=0)
            self.held[input].append(same)
        before, same.weight = same.weight, same.weight + weight
        if before <= 0:
            same.partners = partners
        self.held[input][:] = [h for h in self.held[input] if h.weight]
        return max(same.weight, 0) - max(before, 0)

    def _awaited(self, input: int, row: Row) -> bool:
        """Whether a change of the other input may still meet it."""
        wanted = self.partners.wanted(input, row)
        return wanted is not None and self.promised[1 - input].could_come(wanted)

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        known = self.promised[input].add(pattern)
        other = 1 - input
        kept = [h for h in self.held[other] if self._awaited(other, h.row)]
        for owed in (h for h in self.held[other] if h.weight < 0 and h not in kept):
            shown = {name: owed.row[attribute] for side, attribute, name in self.declared.pair if side == other}
            for _ in range(-owed.weight):
                self.on_failure(shown, NEVER_CAME)
        self.held[other][:] = kept
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
