"""What a punctuation becomes behind a user's function."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.operators.map.operator import Map
from penstock.pattern.pattern import Pattern


def through_map(operator: Map, pattern: Pattern) -> Iterator[Pattern]:
    """The same, if it speaks of nothing but what the function keeps."""
    if set(pattern.restricted) <= set(operator.keeps):
        yield pattern.onto(operator.schema, {n: n for n in pattern.restricted})
