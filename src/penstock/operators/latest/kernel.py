"""The row of each key that was told last. State is those rows, in runs sorted by a hash of the key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.duck import query, quote
from penstock.operators.aggregate.kernel import AggregateKernel
from penstock.operators.latest.operator import Latest
from penstock.operators.revised_aggregate.kernel import RevisingKernel
from penstock.plan.weight import WEIGHT, without_weight


class LatestKernel(RevisingKernel):
    """Takes back the row of a key that was told before, and tells the one that came.

    >>> from penstock.pattern.punctuation import PunctuationSet
    >>> from penstock.kernels.stateful import Held, Orders
    >>> from penstock.pattern.schema import Schema
    >>> from penstock.plan.operator import Operator
    >>> s = Schema.parse("id int, price int, _weight bigint")
    >>> kernel = LatestKernel(Latest((Operator((), s),), s, keys=("id",), aggregations=()), "latest-1")
    >>> nothing = Orders(((),), (PunctuationSet(kernel.output_schema),))
    >>> came = pa.table({"id": [1, 2, 1], "price": [5, 6, 7], "_weight": [1, 1, 1]}, schema=s.arrow)
    >>> first = kernel.step([came], [[]], nothing)
    >>> first.output.sort_by("id").to_pydict()
    {'id': [1, 2], 'price': [7, 6], '_weight': [1, 1]}
    >>> gone = pa.table({"id": [1], "price": [None], "_weight": [-1]}, schema=s.arrow)
    >>> kernel.step([gone], [[Held("run", first.added[0].rows)]], nothing).output.to_pylist()
    [{'id': 1, 'price': 7, '_weight': -1}]
    """

    def __init__(self, operator: Latest, node_id: str) -> None:
        schema = operator.inputs[0].schema
        super().__init__(AggregateKernel(schema, operator.keys, (), operator_id=node_id), operator.keys)
        self.needed = (None,)
        self.output_schema = without_weight(schema)
        self.stored = schema.arrow
        self.told_schema = schema.arrow

    def together(self, rows: Sequence[pa.Table]) -> pa.Table:
        """Of each key the last row, in the order of the tables."""
        table = pa.concat_tables([t.select(self.stored.names) for t in rows])
        keys = ", ".join(map(quote, self.by))
        keyed = table.select(self.by).append_column("__at", pa.array(np.arange(table.num_rows)))
        last = query(f"SELECT max(__at) AS at FROM keyed GROUP BY {keys}", keyed=keyed)["at"]
        return table if len(last) == table.num_rows else table.take(last)

    def holding(self, rows: pa.Table) -> pa.Table:
        return rows.filter(pc.greater(rows[WEIGHT], 0))

    def answers(self, groups: AggregateKernel, rows: pa.Table) -> pa.Table:
        return self.holding(rows).drop_columns([WEIGHT])
