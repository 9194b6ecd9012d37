"""What tasks do with the events of this operator."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from penstock.kernels.duck import quote
from penstock.kernels.step import Keeping, Rows
from penstock.operators.aggregate.folding import grouping_kernel
from penstock.operators.aggregate.step import GroupKeeping
from penstock.operators.count_aggregate.kernel import CountGroups, CountKernel
from penstock.operators.count_aggregate.operator import CountAggregate


class CountKeeping(GroupKeeping):
    """Events that travel one by one: which window one is in is known where they are counted."""

    groups = False

    def sent(self, port: int, rows: Rows, careful: bool) -> pa.Table:
        columns = ", ".join(quote(c) for c in self.folding.needed) or "1 AS __one"
        events = rows.under(f"SELECT {columns} FROM ({rows.sql})").table()
        if not careful:
            # An event on which an argument fails takes no place in its window. Where windows are counted nobody knows
            # any more where it came from.
            self.folding.try_all(events)
        return events

    def together(self, tables: Sequence[pa.Table]) -> pa.Table:
        return pa.concat_tables(tables)


def step_of(operator: CountAggregate, node_id: str) -> Keeping:
    """What tasks do: see `penstock.kernels.step`."""
    return CountKeeping(CountKernel(grouping_kernel(operator, node_id, CountGroups)))
