"""What tasks do with the events of this operator."""

from __future__ import annotations

from penstock.kernels.step import Keeping
from penstock.operators.top.kernel import TopKernel
from penstock.operators.top.operator import Top


def step_of(operator: Top, node_id: str) -> Keeping:
    """What tasks do: see `penstock.kernels.step`."""
    return Keeping(TopKernel(operator, node_id), [i.schema for i in operator.inputs])
