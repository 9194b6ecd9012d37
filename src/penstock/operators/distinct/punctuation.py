"""The behaviour of `distinct`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.operators.distinct.operator import Distinct
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.plan.behaviour import Behaviour, maximal
from penstock.plan.orders import Orders


class DistinctBehaviour(Behaviour):
    """Keeps what no punctuation has matched so far; passes every punctuation on."""

    def __init__(self, operator: Distinct) -> None:
        self.schema = operator.schema
        self.fresh: list[Pattern] = []

    def receive(self, arrived: Sequence[tuple[Pattern, ...]]) -> tuple[Pattern, ...]:
        (patterns,) = arrived
        moved = tuple(Pattern(self.schema, p.restrictions) for p in patterns)
        self.fresh += moved
        return moved

    def orders(self) -> Orders:
        release, self.fresh = maximal(self.fresh), []
        return Orders((release,), (PunctuationSet(self.schema),))

    def to_json(self) -> dict[str, Any]:
        return {}

    def restore(self, stored: Mapping[str, Any]) -> None: ...
