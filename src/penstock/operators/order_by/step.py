"""What tasks do with the events of this operator."""

from __future__ import annotations

from penstock.kernels.step import Keeping
from penstock.operators.order_by.kernel import OrderKernel
from penstock.operators.order_by.operator import OrderBy


def step_of(operator: OrderBy, node_id: str) -> Keeping:
    """What tasks do: see `penstock.kernels.step`."""
    return Keeping(OrderKernel(operator, node_id), [i.schema for i in operator.inputs])
