"""Guards at work: events that nobody wants are dropped, row by row.

Whole row groups and files are not even read where their statistics allow that (see `statistics` and `files`).
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from penstock.algebra.pattern import Pattern


def apply_guard(table: pa.Table, patterns: Sequence[Pattern]) -> tuple[pa.Table, int]:
    """The events that match none of the patterns, and how many do. Where none does, the table itself comes back.

    >>> from penstock.algebra.schema import Schema
    >>> s = Schema.parse("ts int, key int")
    >>> rows = pa.table({"ts": [1, 2, 3], "key": [7, 8, 8]}, schema=s.arrow)
    >>> kept, dropped = apply_guard(rows, [Pattern.parse("[*, 7]", s), Pattern.parse("[> 2, 8]", s)])
    >>> kept.to_pylist(), dropped
    ([{'ts': 2, 'key': 8}], 2)
    """
    unwanted: pa.BooleanArray | None = None
    for pattern in patterns:
        found = _matching(table, pattern)
        if found is not None:
            unwanted = found if unwanted is None else pc.or_(unwanted, found)
    if unwanted is None:
        return table, 0
    dropped = int(unwanted.true_count)
    return (table.slice(0, 0) if dropped == table.num_rows else table.filter(pc.invert(unwanted))), dropped


def _matching(table: pa.Table, pattern: Pattern) -> pa.BooleanArray | None:
    """Which rows match, None if no row does. One attribute after the other: the first often shows that none does."""
    if not table.num_rows:
        return None
    result: pa.BooleanArray | None = None
    for name in pattern.restricted:
        column, t = table.column(name), pattern.schema.type_of(name)
        mask = pattern[name].mask(column if column.type == t else column.cast(t))
        result = mask if result is None else pc.and_(result, mask)
        if not result.true_count:
            return None
    return pa.repeat(True, table.num_rows) if result is None else result
