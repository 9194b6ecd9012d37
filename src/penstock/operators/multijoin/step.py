"""What tasks do with the events of this operator."""

from __future__ import annotations

from penstock.kernels.step import Keeping
from penstock.operators.multijoin.kernel import MultiJoinKernel
from penstock.operators.multijoin.operator import MultiJoin


def step_of(operator: MultiJoin, node_id: str) -> Keeping:
    """What tasks do: see `penstock.kernels.step`."""
    return Keeping(MultiJoinKernel(operator, node_id), [i.schema for i in operator.inputs])
