"""The behaviour of what passes on promises about whole groups only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from penstock.pattern.pattern import Pattern
from penstock.plan.behaviour import Behaviour, maximal
from penstock.plan.domain import domains
from penstock.plan.operator import Operator
from penstock.plan.whole_groups import Describer


class DescribingBehaviour(Behaviour):
    """For group-by and projection: only promises about whole groups, or about what is left of an event, say anything.

    A promise speaks of whole groups by itself, or together with others that cover the rest of a finite domain.
    """

    def __init__(
        self,
        operator: Operator,
        attributes: Sequence[str],
        rule: Callable[[Pattern], Iterable[Pattern]],
    ) -> None:
        """`rule` says what becomes of one that does."""
        (below,) = operator.inputs
        self.operator, self.rule = operator, rule
        self.describer = Describer(below.schema, attributes, domains(below))

    def receive(self, arrived: Sequence[tuple[Pattern, ...]]) -> tuple[Pattern, ...]:
        (patterns,) = arrived
        if not patterns:
            return ()
        return maximal(q for p in self.describer.add(patterns) for q in self.rule(p))

    def to_json(self) -> dict[str, Any]:
        return self.describer.to_json()

    def restore(self, stored: Mapping[str, Any]) -> None:
        self.describer.restore(stored)
