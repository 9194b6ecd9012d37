"""What tasks do with the events of this operator."""

from __future__ import annotations

from penstock.kernels.step import Keeping
from penstock.operators.rows_join.kernel import RowsJoinKernel
from penstock.operators.rows_join.operator import RowsJoin


def step_of(operator: RowsJoin, node_id: str) -> Keeping:
    """What tasks do: see `penstock.kernels.step`."""
    return Keeping(RowsJoinKernel(operator, node_id), [i.schema for i in operator.inputs])
