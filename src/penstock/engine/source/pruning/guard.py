"""Feedback at a source: what nobody wants is dropped or not even read, what somebody waits for is read first.

Events are held to the promises first and to the guard then, so that it makes no difference to what the source promises
and to which other events are late. For the same reason a row group that nobody wants is passed over only where the
footer tells all that its rows would have told.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from penstock.pattern.pattern import Pattern
from penstock.plan.promise import Bounds, Declared, Disorder, Domain, EndOfSource, Every, Expected, Promise


def apply_guard(table: pa.Table, patterns: Sequence[Pattern]) -> tuple[pa.Table, int]:
    """The events that match none of the patterns, and how many do. Where none does, the table itself comes back.

    >>> from penstock.pattern.schema import Schema
    >>> s = Schema.parse("ts int, key int")
    >>> rows = pa.table({"ts": [1, 2, 3], "key": [7, 8, 8]}, schema=s.arrow)
    >>> kept, dropped = apply_guard(rows, [Pattern.parse("[*, 7]", s), Pattern.parse("[> 2, 8]", s)])
    >>> kept.to_pylist(), dropped
    ([{'ts': 2, 'key': 8}], 2)
    """
    unwanted: pa.BooleanArray | None = None
    for pattern in patterns if table.num_rows else ():
        found = pattern.matches(table)
        if found.true_count:
            unwanted = found if unwanted is None else pc.or_(unwanted, found)
    if unwanted is None:
        return table, 0
    dropped = int(unwanted.true_count)
    return (table.slice(0, 0) if dropped == table.num_rows else table.filter(pc.invert(unwanted))), dropped


def can_spare(promises: Sequence[Promise]) -> bool:
    """Whether rows can be passed over unread: all that they do to the promises is to raise one maximum, or nothing.

    The maximum is in the footer. Not so the greatest tick of each key (`WhenAll`), which keys came (`Once`, `After`),
    punctuations among the rows (`InBand`), or how far rows are out of order (`WithinRows`, `Adaptive`, `Monitored`).

    >>> can_spare([Disorder("ts", 5), EndOfSource()]), can_spare([Disorder("ts", 5), Disorder("sent", 5)])
    (True, False)
    """
    told = Disorder | Every | Bounds | Domain | Declared | Expected | EndOfSource
    return all(isinstance(p, told) for p in promises) and sum(isinstance(p, Disorder) for p in promises) <= 1
