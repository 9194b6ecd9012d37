"""The behaviour of what lets go of rows that punctuation matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.plan.behaviour import Behaviour, maximal
from penstock.plan.operator import Operator
from penstock.plan.orders import Orders


class ReleasingBehaviour(Behaviour):
    """Keeps what no punctuation has matched so far; passes every punctuation on.

    `ending` are the attributes that a punctuation may restrict to release anything; None are all.
    """

    def __init__(self, operator: Operator, ending: Sequence[str] | None = None) -> None:
        self.schema, self.ending = operator.schema, ending
        #: What has been promised since the last orders.
        self.fresh: list[Pattern] = []

    def receive(self, arrived: Sequence[tuple[Pattern, ...]]) -> tuple[Pattern, ...]:
        (patterns,) = arrived
        moved = tuple(p.onto(self.schema, {n: n for n in p.restricted}) for p in patterns)
        self.fresh += [p for p in moved if self.ending is None or p.describes(self.ending)]
        return moved

    def orders(self) -> Orders:
        release, self.fresh = maximal(self.fresh), []
        return Orders((release,), (PunctuationSet(self.schema),))

    def to_json(self) -> dict[str, Any]:
        return {}

    def restore(self, stored: Mapping[str, Any]) -> None: ...
