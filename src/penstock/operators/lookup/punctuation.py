"""What becomes of punctuation behind a lookup."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.operators.lookup.operator import TableJoin
from penstock.pattern.pattern import Pattern


def through_table(operator: TableJoin, pattern: Pattern) -> Iterator[Pattern]:
    """What a punctuation of the stream becomes behind the join: itself, since every result carries its event.

    Nothing is ever promised about attributes of the table: it may change at any time.
    """
    yield pattern.onto(operator.schema, {n: n for n in pattern.restricted})
