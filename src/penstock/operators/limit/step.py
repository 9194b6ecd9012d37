"""What tasks do with the events of this operator."""

from __future__ import annotations

from penstock.kernels.step import Keeping
from penstock.operators.limit.kernel import LimitKernel
from penstock.operators.limit.operator import Limit


def step_of(operator: Limit, node_id: str) -> Keeping:
    """What tasks do: see `penstock.kernels.step`."""
    return Keeping(LimitKernel(operator, node_id), [i.schema for i in operator.inputs])
