"""Groups that tell at once which of their rows are the best, and take back those that no longer are.

State are rows with weights, in runs sorted by a hash of the grouping attributes: of events that stay, the best n of
each group; of rows that can be taken back all, since the next best takes the place of one that goes. An epoch looks up
the groups that it touches, and tells what has changed among their best.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.kernels.fold import is_tickable
from penstock.kernels.hash import hash_keys
from penstock.kernels.weights import repeated
from penstock.operators.aggregate.kernel import AggregateKernel
from penstock.operators.distinct.kernel import alike
from penstock.operators.revised_aggregate.kernel import ChangingKernel
from penstock.operators.revised_top.operator import RevisedTop
from penstock.operators.top.kernel import best
from penstock.plan.weight import WEIGHT, without_weight
from penstock.sql.aggregation import Aggregation


class RevisedTopKernel(ChangingKernel):
    """The best n rows of each group.

    >>> from penstock.kernels.stateful import Held, Orders
    >>> from penstock.pattern.punctuation import PunctuationSet
    >>> from penstock.pattern.schema import Schema
    >>> from penstock.plan.operator import Operator
    >>> s = Schema.parse("k int, v int")
    >>> kernel = RevisedTopKernel(RevisedTop((Operator((), s),), s, count=1, by=(("v", True),), per=("k",)), "top-1")
    >>> nothing = Orders(((),), (PunctuationSet(kernel.output_schema),))
    >>> rows = pa.table({"k": [1, 1], "v": [5, 3], "_weight": [1, 1]}, schema=kernel.stored)
    >>> first = kernel.step([rows], [[]], nothing)
    >>> first.output.to_pylist(), first.added[0].rows.num_rows
    ([{'k': 1, 'v': 5, '_weight': 1}], 1)
    >>> better = pa.table({"k": [1], "v": [8], "_weight": [1]}, schema=kernel.stored)
    >>> kernel.step([better], [[Held("run", first.added[0].rows)]], nothing).output["v"].to_pylist()
    [5, 8]
    """

    def __init__(self, operator: RevisedTop, node_id: str) -> None:
        schema = without_weight(operator.inputs[0].schema)
        # What groups come to is not asked: of the one group of all there must be something, though.
        rows = Aggregation.parse(WEIGHT, "count(*)", schema)
        super().__init__(AggregateKernel(schema, operator.per, [rows], operator_id=node_id), operator.per)
        self.count, self.order, self.per = operator.count, operator.order, operator.per
        self.keeps_all = operator.of_changes
        self.output_schema = schema
        self.stored = self.told_schema = pa.schema([*schema.arrow, (WEIGHT, pa.int64())])
        self.needed = (None,)
        ticking = [n for n in operator.per if is_tickable(schema.type_of(n))]
        #: Time first: by it whole runs are passed over.
        self.closing = next((n for n in ticking if n in schema.times), ticking[0] if ticking else None)

    def best_of(self, rows: pa.Table) -> pa.Table:
        """The best rows of each group, each as often as it is among them."""
        weights = np.minimum(np.asarray(rows[WEIGHT]), self.count)
        clipped = rows.set_column(rows.column_names.index(WEIGHT), WEIGHT, pa.array(weights))
        single = repeated(clipped)
        size = single.num_rows
        group = alike(single.select(self.per), hash_keys(single, self.per)) if self.per else np.zeros(size, np.int64)
        chosen, _ = best(single, group, self.order, self.count) if size else (np.zeros(0, np.int64), None)
        found = single if len(chosen) == size else single.take(pa.array(chosen))
        return found.set_column(found.column_names.index(WEIGHT), WEIGHT, pa.array(np.ones(len(chosen), np.int64)))

    def holding(self, rows: pa.Table) -> pa.Table:
        return rows if self.keeps_all or not rows.num_rows else self.together([self.best_of(rows)])

    def answers(self, groups: AggregateKernel, rows: pa.Table) -> pa.Table:
        return self.best_of(rows).drop_columns([WEIGHT])
