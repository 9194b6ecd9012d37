"""What tasks do with the events of this operator."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from penstock.kernels.step import Keeping, Rows
from penstock.kernels.weights import net, weighted
from penstock.operators.revised_top.kernel import RevisedTopKernel
from penstock.operators.revised_top.operator import RevisedTop


class TopKeeping(Keeping):
    """Of events that stay only the best travel; of rows that can be taken back all that do not cancel out."""

    kernel: RevisedTopKernel

    def sent(self, port: int, rows: Rows, careful: bool) -> pa.Table:
        found = super().sent(port, rows, careful)
        if self.kernel.keeps_all:
            return net([found])
        return net([self.kernel.best_of(weighted(found, 1))])

    def together(self, tables: Sequence[pa.Table]) -> pa.Table:
        return net(tables)


def step_of(operator: RevisedTop, node_id: str) -> Keeping:
    """What tasks do: see `penstock.kernels.step`."""
    return TopKeeping(RevisedTopKernel(operator, node_id), [i.schema for i in operator.inputs])
