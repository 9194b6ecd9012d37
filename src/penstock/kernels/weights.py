"""Weighted rows as tables: what several of them come to together."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.duck import query, quote
from penstock.plan.weight import WEIGHT


def weighted(rows: pa.Table, weight: int) -> pa.Table:
    """The rows, each with this weight as its last column."""
    return rows.append_column(WEIGHT, pa.array([weight], pa.int64()).take(pa.array([0] * rows.num_rows, pa.int64())))


def net(tables: Sequence[pa.Table]) -> pa.Table:
    """What weighted rows of one schema come to: equal rows put together, and none that say nothing.

    What is taken back comes before what holds instead.

    >>> rows = pa.table({"k": ["a", "a", "b"], WEIGHT: [1, -1, 1]})
    >>> net([rows, rows]).to_pydict()
    {'k': ['b'], '_weight': [2]}
    """
    table = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
    if table.num_rows < 2:
        return table
    by = ", ".join(quote(n) for n in table.column_names if n != WEIGHT)
    columns = ", ".join(
        f"CAST(sum({WEIGHT}) AS BIGINT) AS {WEIGHT}" if n == WEIGHT else quote(n) for n in table.column_names
    )
    sql = f"SELECT {columns} FROM changes GROUP BY {by or 'ALL'} HAVING sum({WEIGHT}) <> 0 ORDER BY sum({WEIGHT}) > 0"
    return query(sql, changes=table).cast(table.schema)


def spelled_out(rows: pa.Table) -> pa.Table:
    """Rows that hold, each as often as its weight says, without it.

    >>> spelled_out(pa.table({"k": ["a", "b"], WEIGHT: [2, 1]})).to_pydict()
    {'k': ['a', 'a', 'b']}
    """
    plain = rows.drop_columns([WEIGHT])
    if not rows.num_rows or pc.max(rows[WEIGHT]).as_py() == 1 == pc.min(rows[WEIGHT]).as_py():
        return plain
    columns = ", ".join(quote(n) for n in plain.column_names)
    return query(f"SELECT {columns} FROM (SELECT *, unnest(range({WEIGHT})) FROM held)", held=rows).cast(plain.schema)
