"""The behaviours of what speaks of whole groups: only promises about these pass, and let kernels close any."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.plan.behaviour import Behaviour, maximal
from penstock.plan.domain import domains
from penstock.plan.operator import Operator
from penstock.plan.orders import Orders
from penstock.plan.whole_groups import Describer


class DescribingBehaviour(Behaviour):
    """For group-by and projection: only promises about whole groups, or about what is left of an event, say anything.

    A promise speaks of whole groups by itself, or together with others that cover the rest of a finite domain.
    """

    def __init__(
        self, operator: Operator, attributes: Sequence[str], rule: Callable[[Pattern], Iterable[Pattern]]
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


class ClosingBehaviour(DescribingBehaviour):
    """What is promised behind it is what its kernel closes: orders are patterns over the output.

    What does not describe groups is not passed on: events that it matches may be held, and their results come later.
    """

    def __init__(self, operator: Operator, ending: Sequence[str]) -> None:
        """`ending` are the attributes that a punctuation may restrict to close groups, and to say that no further
        result can match."""
        super().__init__(operator, ending, self.closed)
        self.schema, self.ending = operator.schema, ending
        #: What has been promised since the last orders.
        self.fresh: tuple[Pattern, ...] = ()

    def closed(self, pattern: Pattern) -> Iterable[Pattern]:
        """What a promise about groups closes."""
        if pattern.describes(self.ending):
            yield pattern.onto(self.operator.schema, {n: n for n in pattern.restricted})

    def receive(self, arrived: Sequence[tuple[Pattern, ...]]) -> tuple[Pattern, ...]:
        found = super().receive(arrived)
        self.fresh += found
        return found

    def orders(self) -> Orders:
        release, self.fresh = self.fresh, ()
        return Orders((release,), (PunctuationSet(self.schema),))
