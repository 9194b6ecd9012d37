"""The behaviour of unions: what all inputs have promised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.pattern import minimise as compact
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.plan.behaviour import Behaviour, maximal
from penstock.plan.operator import Operator


class UnionBehaviour(Behaviour):
    """What all inputs have promised: the intersections of one promise of each."""

    def __init__(self, operator: Operator) -> None:
        self.schema = operator.schema
        self.given = [PunctuationSet(self.schema) for _ in operator.inputs]
        self.said = PunctuationSet(self.schema)

    def receive(self, arrived: Sequence[tuple[Pattern, ...]]) -> tuple[Pattern, ...]:
        if not any(arrived):
            return ()
        for k, patterns in enumerate(arrived):
            moved = (p.onto(self.schema, {n: n for n in p.restricted}) for p in patterns)
            self.given[k] = self.given[k].add(*moved)
        common: list[Pattern] = list(self.given[0])
        for promised in self.given[1:]:
            common = list(maximal(a.intersect(b) for a in common for b in promised))
        fresh = tuple(p for p in maximal(common) if not self.said.covers(p))
        # Values that all have promised cannot come again: there would be ever more of them to remember.
        over = [p for p in fresh if p.restricted and compact.lists_values(p)]
        self.said = self.said.add(*(p for p in fresh if p not in over))
        self.given = [g.forget(*over) for g in self.given]
        return fresh

    def to_json(self) -> dict[str, Any]:
        return {"given": [g.to_json() for g in self.given], "said": self.said.to_json()}

    def restore(self, stored: Mapping[str, Any]) -> None:
        self.given = [PunctuationSet.from_json(g, self.schema) for g in stored["given"]]
        self.said = PunctuationSet.from_json(stored["said"], self.schema)
