"""What punctuation says to aggregates: only what speaks of whole groups closes any, and is passed on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.shared.describing import DescribingBehaviour
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.plan.orders import Orders


class ClosingBehaviour(DescribingBehaviour):
    """What is promised behind an aggregate is what its kernel closes: orders are patterns over the output."""

    def __init__(self, operator: Aggregate, ending: Sequence[str]) -> None:
        """`ending` are the attributes that a punctuation may restrict to close groups, and to say that no further
        result can match."""
        super().__init__(operator, ending, partial(through_groups, operator, ending))
        #: What has been promised since the last orders.
        self.promised: tuple[Pattern, ...] = ()

    def receive(self, arrived: Sequence[tuple[Pattern, ...]]) -> tuple[Pattern, ...]:
        found = super().receive(arrived)
        self.promised += found
        return found

    def orders(self) -> Orders:
        closers, self.promised = self.promised, ()
        return Orders((closers,), (PunctuationSet(self.operator.schema),))


def through_groups(operator: Aggregate, ending: Sequence[str], pattern: Pattern) -> Iterator[Pattern]:
    """A punctuation that also restricts something else than the groups says nothing about whole groups."""
    if pattern.describes(ending):
        yield pattern.onto(operator.schema, {n: n for n in pattern.restricted})
