"""What punctuation says to aggregates: only what speaks of whole groups closes any, and is passed on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.shared.describing import DescribingBehaviour
from penstock.pattern.pattern import Pattern


def closing_by(operator: Aggregate, ending: Sequence[str]) -> DescribingBehaviour:
    """The behaviour of an aggregate. `ending` are the attributes that a punctuation may restrict to close groups, and
    to say that no further result can match."""
    return DescribingBehaviour(operator, ending, partial(through_groups, operator, ending))


def through_groups(operator: Aggregate, ending: Sequence[str], pattern: Pattern) -> Iterator[Pattern]:
    """A punctuation that also restricts something else than the groups says nothing about whole groups."""
    if pattern.describes(ending):
        yield pattern.onto(operator.schema, {n: n for n in pattern.restricted})
