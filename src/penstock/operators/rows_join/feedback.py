"""What a join with the last rows of each key may do about an assumed feedback, and what it tells its inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.operators.join.feedback import Knowing, wishes
from penstock.operators.rows_join.operator import RowsJoin
from penstock.pattern.pattern import Pattern
from penstock.plan.response import Response
from penstock.plan.responses import behind_only
from penstock.plan.spec import Told


def respond_rows_join(operator: RowsJoin, pattern: Pattern) -> Response:
    """As other joins do, but only where whole keys go.

    >>> from penstock.builder.combine import join_operator
    >>> from penstock.operators.source.operator import Source
    >>> from penstock.pattern.schema import Schema
    >>> a, b = (Source((), Schema.parse(s, time="t")) for s in ("id int, t int", "id int, t int"))
    >>> join = join_operator(a, b, "id", rows=3)
    >>> assert isinstance(join, RowsJoin)
    >>> for text in ("[7, *, *]", "[*, 7, *]"):
    ...     found = respond_rows_join(join, Pattern.parse(text, join.schema))
    ...     print([str(p) for sent in found.send for p in sent], found.pinned)
    ['[7, *]', '[7, *]'] True
    [] False
    """
    knowing = Knowing(operator, pattern)
    if not knowing.speaks_of_whole_keys:
        # One event less among the last n of its key, and an older one is joined instead.
        return behind_only(operator, "one event less among the last rows lets an older one in, so only whole keys go")
    # Of whole keys some events may be withheld, and pairs come up that never were.
    return replace(knowing.response, pinned=True)


def issues_rows_join(operator: RowsJoin) -> Iterator[Told]:
    """An impatient one asks for partners of what waits."""
    for port in (0, 1):
        yield from wishes(operator, port)
