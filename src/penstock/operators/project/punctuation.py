"""What a punctuation becomes behind a projection."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from penstock.operators.project.operator import Project
from penstock.pattern.pattern import Pattern


def through_project(operator: Project, pattern: Pattern) -> Iterator[Pattern]:
    """The same under the new names; an attribute that is kept twice gives a punctuation for each."""
    renames = operator.renames
    if not all(n in renames for n in pattern.restricted):
        return  # Dropped or computed: what is left would promise more than the input did.
    for names in product(*(renames[n] for n in pattern.restricted)):
        yield pattern.onto(operator.schema, dict(zip(pattern.restricted, names, strict=True)))
