"""What tasks do with the events of this operator."""

from __future__ import annotations

import pyarrow as pa

from penstock.kernels.step import Keeping, Rows
from penstock.kernels.weights import net
from penstock.operators.revised_join.kernel import RevisedJoinKernel
from penstock.operators.revised_join.operator import RevisedJoin
from penstock.plan.weight import WEIGHT


class CancellingKeeping(Keeping):
    """Rows that cancel each other out stay at home."""

    def sent(self, port: int, rows: Rows, careful: bool) -> pa.Table:
        found = super().sent(port, rows, careful)
        return net([found]) if WEIGHT in found.column_names else found


def step_of(operator: RevisedJoin, node_id: str) -> Keeping:
    """What tasks do: see `penstock.kernels.step`."""
    return CancellingKeeping(RevisedJoinKernel(operator, node_id), [i.schema for i in operator.inputs])
