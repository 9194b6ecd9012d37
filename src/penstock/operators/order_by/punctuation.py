"""The behaviour of `order_by`: the sorted prefix that punctuation completes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.operators.order_by.operator import OrderBy
from penstock.operators.order_by.sorted_prefix import prefix
from penstock.operators.shared.releasing import ReleasingBehaviour
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.plan.domain import domains


class OrderBehaviour(ReleasingBehaviour):
    """Passes the sorted prefix that punctuation completes, and promises that prefix.

    With slack the operator does not wait for punctuation, so it knows nothing about what is to come but the end.
    """

    def __init__(self, operator: OrderBy) -> None:
        super().__init__(operator)
        self.operator, self.domains = operator, domains(operator)
        self.given = PunctuationSet(self.schema)
        self.done = PunctuationSet(self.schema)

    def receive(self, arrived: Sequence[tuple[Pattern, ...]]) -> tuple[Pattern, ...]:
        (patterns,) = arrived
        if not patterns:
            return ()
        if self.operator.slack is not None:
            found = tuple(Pattern(self.schema, p.restrictions) for p in patterns if not p.restricted)
        else:
            # What also restricts something else can help only where that has a finite domain.
            known = {*self.domains, *(name for name, _ in self.operator.by)}
            self.given = self.given.add(*(Pattern(self.schema, p.restrictions) for p in patterns if p.describes(known)))
            complete = prefix(self.given, self.operator.by, self.schema, self.domains)
            found = tuple(p for p in complete if not self.done.covers(p))
            self.done = self.done.add(*found)
        self.fresh += found
        return found

    def to_json(self) -> dict[str, Any]:
        return {"given": self.given.to_json(), "done": self.done.to_json()}

    def restore(self, stored: Mapping[str, Any]) -> None:
        self.given = PunctuationSet.from_json(stored["given"], self.schema)
        self.done = PunctuationSet.from_json(stored["done"], self.schema)
