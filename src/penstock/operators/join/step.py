"""What tasks do with the events of this operator."""

from __future__ import annotations

from penstock.kernels.step import Keeping
from penstock.operators.join.kernel import JoinKernel
from penstock.operators.join.operator import Join


def step_of(operator: Join, node_id: str) -> Keeping:
    """What tasks do: see `penstock.kernels.step`."""
    return Keeping(JoinKernel(operator, node_id), [i.schema for i in operator.inputs])
