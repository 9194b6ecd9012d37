"""What becomes of punctuation where lifetimes are altered."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.kernels.fold import tick
from penstock.kernels.ticks import from_tick
from penstock.operators.alter_lifetime.operator import AlterLifetime
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import ANY, Range, Restriction, less
from penstock.pattern.schema import SYNC


def altered(operator: AlterLifetime, pattern: Pattern) -> Iterator[Pattern]:
    """What is said of lifetimes says nothing of those that they become; up to when all is final, passes."""
    schema = operator.schema
    if {*schema.lifetime} & {*pattern.restricted}:
        return
    said: Restriction = pattern[SYNC]
    if operator.every and said is not ANY:
        if not isinstance(said, Range) or said.low is not None or said.high is None:
            return
        t = schema.type_of(SYNC)
        first = tick(said.high, t) + said.high_closed
        said = less(from_tick(first // operator.every * operator.every, t))
    elif (isinstance(said, Range) and said.low is not None) or (not isinstance(said, Range) and said is not ANY):
        return
    others = {n: pattern[n] for n in pattern.restricted if n != SYNC}
    yield Pattern.by_name(schema, others if said is ANY else {**others, SYNC: said})
