"""What tasks do with the events of this operator."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from penstock.kernels.fold import together
from penstock.kernels.step import Keeping, Rows
from penstock.operators.aggregate.folding import FoldingKernel, GroupKernel, grouping_kernel
from penstock.operators.aggregate.kernel import AggregateKernel
from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.window.kernel import members_sql
from penstock.sql.fallible import Fallible


class GroupKeeping(Keeping):
    """Events that travel as partial rows of their groups: millions of events become one row per group and window.

    Over windows it takes over from the operator below, and does the windowing itself, pane by pane.
    """

    groups = True

    def __init__(self, kernel: GroupKernel) -> None:
        super().__init__(kernel, [kernel.groups.input_schema])
        self.folding = kernel.groups
        self.closing = kernel.closing
        self.takes_over = self.folding.window is not None

    @property
    def tried(self) -> tuple[Fallible, ...]:
        return self.folding.tried

    def reaching(self, rows: str) -> str:
        # An event that is in no window never reaches the aggregate, so it cannot fail there.
        return rows if self.folding.window is None else members_sql(rows, self.folding.window)

    def sent(self, port: int, rows: Rows, careful: bool) -> pa.Table:
        return self.folding.grouped(rows)

    def together(self, tables: Sequence[pa.Table]) -> pa.Table:
        return together(self.folding, tables, self.closing)


def step_of(operator: Aggregate, node_id: str) -> Keeping:
    """What tasks do: see `penstock.kernels.step`."""
    return GroupKeeping(FoldingKernel(grouping_kernel(operator, node_id, AggregateKernel)))
