"""Weighted rows as tables: what several of them come to together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.duck import query, quote
from penstock.pattern.schema import SYNC
from penstock.plan.weight import WEIGHT

#: What is no part of what a row says, and what becomes of it when equal rows are put together.
_BESIDE = {WEIGHT: f"CAST(sum({WEIGHT}) AS BIGINT)", SYNC: f"min({SYNC})"}


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
    by = ", ".join(quote(n) for n in table.column_names if n not in _BESIDE)
    columns = ", ".join(f"{_BESIDE[n]} AS {n}" if n in _BESIDE else quote(n) for n in table.column_names)
    sql = f"SELECT {columns} FROM changes GROUP BY {by or 'ALL'} HAVING sum({WEIGHT}) <> 0 ORDER BY sum({WEIGHT}) > 0"
    return query(sql, changes=table).cast(table.schema)


def synced(changes: pa.Table, start: str, end: str) -> pa.Table:
    """What changes of rows with lifetimes come to, each with the moment at which it begins to matter, as last column.

    A row that is shortened is one that is taken back and one that holds: what they differ in begins where the shorter
    ends. Other rows matter from their start.

    >>> rows = pa.table({"k": [1, 1, 2], "a": [0, 0, 5], "b": [9, 4, None], WEIGHT: [-1, 1, 1]})
    >>> synced(rows, "a", "b").to_pydict()
    {'k': [1, 1, 2], 'a': [0, 0, 5], 'b': [9, 4, None], '_weight': [-1, 1, 1], '_sync': [4, 4, 5]}
    """
    found = net([changes])
    if not found.num_rows or int(pc.min(found[WEIGHT]).as_py()) > 0:
        return found.append_column(SYNC, found[start])
    same = ", ".join(quote(n) for n in found.column_names if n not in (end, WEIGHT))
    # Only shortened: from the longest on, at every end at least as many are taken back as are told instead.
    sql = f"""
        WITH more AS (
            SELECT *, sum({WEIGHT}) OVER (PARTITION BY {same} ORDER BY {quote(end)} DESC NULLS FIRST) AS __more
            FROM found
        )
        SELECT * EXCLUDE (__more),
            CASE WHEN max(__more) OVER alike > 0 OR sum({WEIGHT}) OVER alike <> 0 THEN {quote(start)}
            ELSE min({quote(end)}) OVER alike END AS {SYNC}
        FROM more WINDOW alike AS (PARTITION BY {same}) ORDER BY {WEIGHT} > 0, {quote(start)}, {quote(end)}"""
    return query(sql, found=found).cast(found.schema.append(pa.field(SYNC, found[start].type)))


def spelled_out(rows: pa.Table) -> pa.Table:
    """Rows that hold, each as often as its weight says, without it.

    >>> spelled_out(pa.table({"k": ["a", "b"], WEIGHT: [2, 1]})).to_pydict()
    {'k': ['a', 'a', 'b']}
    """
    return repeated(rows).drop_columns([WEIGHT])


def repeated(rows: pa.Table) -> pa.Table:
    """Each row as often as its weight says; what was taken back before it came does not hold."""
    weights = np.asarray(rows[WEIGHT])
    if bool((weights == 1).all()):
        return rows
    return rows.take(pa.array(np.repeat(np.arange(len(weights)), np.maximum(weights, 0))))


def pairs(changes: pa.Table, keys: Sequence[str] | None) -> pa.Table:
    """What held before and what holds now, side by side: `before` and `after`, null where there is none.

    Rows with the same keys are paired, in the order in which they come; without keys a row has no other side.

    >>> rows = pa.table({"k": ["a", "a", "b"], "n": [1, 2, 1], WEIGHT: [-1, 1, 1]})
    >>> pairs(rows, ["k"]).to_pylist()
    [{'before': {'k': 'a', 'n': 1}, 'after': {'k': 'a', 'n': 2}}, {'before': None, 'after': {'k': 'b', 'n': 1}}]
    """
    if WEIGHT not in changes.column_names:
        return _sides(changes, pa.nulls(changes.num_rows, pa.int64()), pa.array(np.arange(changes.num_rows)))
    found = net([changes])
    plain = found.drop_columns([WEIGHT])
    by = [quote(n) for n in (plain.column_names if keys is None else keys)]
    # Of each key the first that goes with the first that comes, and so on; of equal rows each by itself.
    group = ", ".join(["__n", *by])
    sql = f"""
        WITH single AS (SELECT *, unnest(range(abs({WEIGHT}))) FROM found),
        numbered AS (
            SELECT *, row_number() OVER (PARTITION BY {", ".join([f"{WEIGHT} > 0", *by])} ORDER BY __at) AS __n
            FROM single
        )
        SELECT max(__at) FILTER ({WEIGHT} < 0) AS before, max(__at) FILTER ({WEIGHT} > 0) AS after
        FROM numbered GROUP BY {group} ORDER BY min(__at), __n"""
    at = query(sql, found=found.append_column("__at", pa.array(np.arange(found.num_rows))))
    return _sides(plain, at["before"], at["after"])


def _sides(rows: pa.Table, before: pa.Array | pa.ChunkedArray, after: pa.Array | pa.ChunkedArray) -> pa.Table:
    """The rows at these places, as structs."""
    return pa.table({"before": _structs(rows, before), "after": _structs(rows, after)})


def _structs(rows: pa.Table, at: pa.Array | pa.ChunkedArray) -> pa.Array:
    at = at.combine_chunks() if isinstance(at, pa.ChunkedArray) else at
    taken = rows.take(at)
    columns = [c.combine_chunks() for c in taken.columns]
    return pa.StructArray.from_arrays(columns, fields=list(taken.schema), mask=pc.is_null(at))
