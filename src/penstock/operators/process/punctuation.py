"""The behaviour of a function with state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.operators.process.operator import Process
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.plan.behaviour import Behaviour, maximal
from penstock.plan.domain import domains
from penstock.plan.orders import Orders
from penstock.plan.whole_groups import Describer


class ProcessBehaviour(Behaviour):
    """As for an aggregate: a promise that describes keys ends them, and goes on behind their last results.

    One that does not describe keys is not passed on: nobody knows what the function makes of other attributes.
    """

    def __init__(self, operator: Process) -> None:
        (below,) = operator.inputs
        self.operator, self.schema = operator, below.schema
        self.describer = Describer(below.schema, operator.by, domains(below))
        self.fresh: list[Pattern] = []

    def receive(self, arrived: Sequence[tuple[Pattern, ...]]) -> tuple[Pattern, ...]:
        (patterns,) = arrived
        if not patterns:
            return ()
        found = maximal(p for p in self.describer.add(patterns) if p.describes(self.operator.by))
        self.fresh += found
        told = (p for p in found if set(p.restricted) <= set(self.operator.kept))
        return maximal(p.onto(self.operator.schema, {n: n for n in p.restricted}) for p in told)

    def orders(self) -> Orders:
        release, self.fresh = maximal(self.fresh), []
        return Orders((release,), (PunctuationSet(self.schema),))

    def to_json(self) -> dict[str, Any]:
        return self.describer.to_json()

    def restore(self, stored: Mapping[str, Any]) -> None:
        self.describer.restore(stored)
