"""Counts and sums of rows that can be taken back: a row of weight −1 takes away what the one of weight +1 has added.

All parts of a group are counts and sums then, and those of two parts of a group add up, whatever their weights. A sum
says by itself neither whether it is one of no values at all, and so null, nor what it is once an infinity is gone: so
beside each sum goes the count of its values, and beside one of floating numbers, of which it holds the finite ones,
how many are infinite or not a number. Sums are exact (see `exact_sum`), so what is left when a row goes is the sum of
the others to the last bit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.duck import quote
from penstock.kernels.step import Rows
from penstock.operators.aggregate import exact_sum
from penstock.operators.aggregate.kernel import AggregateKernel
from penstock.pattern.schema import Schema
from penstock.plan.weight import WEIGHT
from penstock.sql.aggregation import Aggregation, Decomposition
from penstock.sql.partial import Partial

#: The condition under which all rows are counted.
_ALL = "true"


class WeighingKernel(AggregateKernel):
    """The aggregates of one operator, of rows with a weight.

    >>> s = Schema.parse("k string, x double, _weight bigint")
    >>> sums = [Aggregation.parse("n", "sum(x)", s)]
    >>> kernel = WeighingKernel(s, ["k"], sums)
    >>> rows = pa.table({"k": ["a"] * 3, "x": [1e300, 0.1, 1e300], "_weight": [1, 1, -1]}, schema=s.arrow)
    >>> kernel.finalize(kernel.merge([kernel.partial(rows)])).to_pydict()
    {'k': ['a'], 'n': [0.1]}
    """

    def __init__(
        self, input_schema: Schema, keys: Sequence[str], aggregations: Sequence[Aggregation], operator_id: str = "agg"
    ) -> None:
        super().__init__(input_schema, keys, [_weighed(a) for a in aggregations], operator_id=operator_id)
        known = {p.renamed(""): p.column for p in self.parts.partials}
        #: The partial that says how many rows there are.
        self.rows = known.get(_count(_ALL), "__rows")
        if self.rows not in known.values():
            self.parts = Decomposition((*self.parts.partials, _count(_ALL).renamed(self.rows)), self.parts.finals)
        #: Of sums of floating numbers, the partials that say how many are not finite.
        self.odd = {
            p.column: [known[c] for c in _odd(p.adds[1])]
            for p in self.parts.partials
            if p.is_float_sum and p.adds is not None
        }

    @cached_property
    def needed(self) -> tuple[str, ...]:
        wanted = {*super().needed, WEIGHT}
        return tuple(n for n in self.input_schema.names if n in wanted)

    def grouped(self, rows: Rows) -> pa.Table:
        """Partial rows, one for each group. Of equal rows each is added by itself: a product would be rounded."""
        table = rows.table()
        weights = np.asarray(table[WEIGHT])
        times = np.abs(weights)
        if (times != 1).any():
            table = table.take(pa.array(np.repeat(np.arange(len(weights)), times)))
            signs = pa.array(np.repeat(np.sign(weights), times), pa.int64())
            table = table.set_column(table.column_names.index(WEIGHT), WEIGHT, signs)
        return super().grouped(Rows(table, rows.tables))

    def holding(self, partials: pa.Table) -> pa.Table:
        """Those of the groups that have rows."""
        return partials.filter(pc.not_equal(partials[self.rows], 0))

    def finalize(self, partials: pa.Table) -> pa.Table:
        """The answers of groups. Beside an infinity, a finite sum says nothing, not even that it is too large."""
        for main, odd in self.odd.items():
            some = pc.or_(pc.or_(*(pc.greater(partials[c], 0) for c in odd[:2])), pc.greater(partials[odd[2]], 0))
            if pc.any(some).as_py():
                for name, t in exact_sum.columns(main):
                    found = pc.if_else(some, pa.scalar(None, t), partials[name])
                    partials = partials.set_column(partials.column_names.index(name), pa.field(name, t), found)
        return super().finalize(partials)


def _weighed(aggregation: Aggregation) -> Aggregation:
    """The aggregate, made of parts to which rows add and from which they take away."""
    partials: list[Partial] = []
    values: dict[str, str] = {}

    def column(p: Partial) -> str:
        partials.append(p.renamed(f"__p{len(partials)}"))
        return quote(partials[-1].column)

    for p in aggregation.partials:
        assert p.adds is not None
        function, x = p.adds
        n = column(_count(_ALL if x == "1" else f"({x}) IS NOT NULL"))
        if function == "count":
            values[p.column] = n
            continue
        finite = column(_sum(p, x))
        value = f"WHEN {n} > 0 THEN {finite} END"
        if p.is_float_sum:
            nan, up, down = map(column, _odd(x))
            value = (
                f"WHEN {nan} > 0 OR ({up} > 0 AND {down} > 0) THEN CAST('nan' AS DOUBLE)"
                f" WHEN {up} > 0 THEN CAST('inf' AS DOUBLE) WHEN {down} > 0 THEN CAST('-inf' AS DOUBLE) {value}"
            )
        values[p.column] = f"(CASE {value})"
    final = re.sub(r'"(__p\d+)"', lambda m: values[m[1]], aggregation.final_sql)
    return replace(aggregation, partials=tuple(partials), final_sql=final)


def _count(condition: str) -> Partial:
    """How many rows are left for which this is so."""
    counted = f"CASE WHEN {condition} THEN {WEIGHT} ELSE 0 END"
    merged = 'CAST(sum("") AS BIGINT)'
    return Partial("", pa.int64(), f"CAST(sum({counted}) AS BIGINT)", merged, plain=("sum", counted))


def _sum(p: Partial, x: str) -> Partial:
    """What is left of a sum."""
    if p.is_float_sum:
        signed = f"CASE WHEN isfinite({x}) THEN {_signed(x)} END"
        return replace(p, column="", partial_sql=signed, merge_sql="", plain=("sum", signed))
    if p.plain is None and p.type.scale:
        return replace(p, column="", partial_sql=f"sum({_signed(x)})", merge_sql='sum("")')
    # The one number without an opposite is too large for sorting anyway.
    opposite = f"-greatest(CAST({x} AS BIGINT), {-(2**63) + 1})"
    plain = p.plain and ("sum", f"CASE WHEN {WEIGHT} < 0 THEN {opposite} ELSE {x} END")
    total = f"CAST(sum({_signed(f'CAST({x} AS HUGEINT)')}) AS DECIMAL(38,0))"
    return replace(p, column="", partial_sql=total, merge_sql='sum("")', plain=plain)


def _odd(x: str) -> tuple[Partial, Partial, Partial]:
    """How many numbers are none, and how many are infinite, up and down."""
    doubles = f"CAST({x} AS DOUBLE)"
    nan, up, down = f"isnan({doubles})", f"{doubles} = CAST('inf' AS DOUBLE)", f"{doubles} = CAST('-inf' AS DOUBLE)"
    return _count(nan), _count(up), _count(down)


def _signed(x: str) -> str:
    return f"CASE WHEN {WEIGHT} < 0 THEN -({x}) ELSE {x} END"
