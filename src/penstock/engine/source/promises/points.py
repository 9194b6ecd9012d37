"""Punctuations in band that name values only: thousands of them in a file are a column, not a list of patterns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.source.promises.ledger import Ledger, codes_of
from penstock.kernels.ticks import Ticks
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import ANY, Equal
from penstock.pattern.schema import Schema


@dataclass(frozen=True, eq=False)
class ValuePoints:
    """Punctuations on the same attributes: a row of values for each, and the position of the event it stands before."""

    schema: Schema
    at: Ticks
    values: pa.Table

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(self.values.column_names)


def sort_points(
    points: Sequence[tuple[int, Pattern]], schema: Schema
) -> tuple[tuple[tuple[int, Pattern], ...], tuple[ValuePoints, ...]]:
    """Punctuations told apart: those that need a pattern, and those that only name values.

    >>> s = Schema.parse("ts int, trip int")
    >>> rest, (named,) = sort_points([(0, Pattern.parse("[< 3, *]", s)), (2, Pattern.parse("[*, 7]", s))], s)
    >>> [str(p) for _, p in rest], named.at.tolist(), named.values.to_pylist()
    (['[< 3, *]'], [2], [{'trip': 7}])
    """
    rest: list[tuple[int, Pattern]] = []
    named: dict[tuple[str, ...], tuple[list[int], list[list[Any]]]] = {}
    for at, pattern in points:
        chosen = [(n, r) for n, r in zip(schema.names, pattern.restrictions, strict=True) if r is not ANY]
        if not chosen or not all(isinstance(r, Equal) for _, r in chosen):
            rest.append((at, pattern))
            continue
        places, rows = named.setdefault(tuple(n for n, _ in chosen), ([], []))
        places.append(at)
        rows.append([r.value for _, r in chosen if isinstance(r, Equal)])
    found = []
    for names, (places, rows) in named.items():
        types = schema.select(names).arrow
        columns = [pa.array(c, f.type) for c, f in zip(zip(*rows), types)]
        found.append(ValuePoints(schema, np.array(places, np.int64), pa.table(columns, schema=types)))
    return tuple(rest), tuple(found)


def check_values(table: pa.Table, points: ValuePoints | None, over: Ledger) -> tuple[Ticks, Ledger, pa.Table]:
    """Events that come after a punctuation that names their values; the ledger with the new ones; which are new."""
    broken = over.holds(table)
    if points is None:
        return np.flatnonzero(broken), over, over.rows.slice(0, 0)
    own, named = codes_of(table.select(over.attributes), over.attributes, points.values)
    count = int(max(own.max(initial=-1), named.max(initial=-1))) + 1
    first = np.full(count + 1, table.num_rows + 1, np.int64)
    sure = named >= 0
    np.minimum.at(first, named[sure], points.at[sure])
    broken |= first[np.where(own < 0, count, own)] <= np.arange(table.num_rows)
    after, fresh = over.add(points.values)
    return np.flatnonzero(broken), after, fresh
