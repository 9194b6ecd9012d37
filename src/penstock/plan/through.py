"""What one punctuation becomes behind an operator that needs no memory for it."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.lookup.operator import TableJoin
from penstock.operators.lookup.punctuation import through_table
from penstock.operators.map.operator import Map
from penstock.operators.map.punctuation import through_map
from penstock.operators.project.operator import Project
from penstock.operators.project.punctuation import through_project
from penstock.operators.select.operator import Select
from penstock.operators.sink.operator import Sink
from penstock.operators.window.operator import Bucket
from penstock.pattern.pattern import Pattern
from penstock.plan.operator import Operator, unknown
from penstock.plan.window import LandmarkWindow


def through(operator: Operator, pattern: Pattern) -> Iterator[Pattern]:
    """The punctuations that one punctuation becomes behind a stateless operator or an aggregate."""
    match operator:
        case Select() | Sink():
            yield Pattern(operator.schema, pattern.restrictions)
        case Project():
            yield from through_project(operator, pattern)
        case Map():
            yield from through_map(operator, pattern)
        case TableJoin():
            yield from through_table(operator, pattern)
        case Aggregate():
            # A punctuation that also restricts something else than the groups says nothing about whole groups.
            if pattern.describes(ending(operator)):
                yield pattern.onto(operator.schema, {n: n for n in pattern.restricted})
        case _:
            raise unknown(operator, "what becomes of a punctuation without a memory")


def ending(operator: Aggregate) -> tuple[str, ...]:
    """The attributes that a punctuation may restrict to close groups and say that no further result can match.

    A landmark window goes on for a key even when no event of it can come: there only the end of the window counts.
    """
    below = operator.inputs[0]
    if isinstance(below, Bucket) and isinstance(below.window, LandmarkWindow):
        return (below.window.label,)
    return operator.keys
