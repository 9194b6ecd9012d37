"""The behaviour of `top`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.operators.top.operator import Top
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.plan.behaviour import Behaviour, maximal
from penstock.plan.domain import domains
from penstock.plan.orders import Orders
from penstock.plan.whole_groups import Describer


class TopBehaviour(Behaviour):
    """As for an aggregate: a promise that describes groups lets them out, and goes on behind their events.

    One that does not describe groups is not passed on: events that it matches may be held and come out later.
    """

    def __init__(self, operator: Top) -> None:
        (below,) = operator.inputs
        self.schema = operator.schema
        self.describer = Describer(below.schema, operator.per, domains(below))
        self.fresh: list[Pattern] = []

    def receive(self, arrived: Sequence[tuple[Pattern, ...]]) -> tuple[Pattern, ...]:
        (patterns,) = arrived
        if not patterns:
            return ()
        found = maximal(Pattern(self.schema, p.restrictions) for p in self.describer.add(patterns))
        self.fresh += found
        return found

    def orders(self) -> Orders:
        release, self.fresh = maximal(self.fresh), []
        return Orders((release,), (PunctuationSet(self.schema),))

    def to_json(self) -> dict[str, Any]:
        return self.describer.to_json()

    def restore(self, stored: Mapping[str, Any]) -> None:
        self.describer.restore(stored)
