"""What tasks do with the events of this operator."""

from __future__ import annotations

from penstock.kernels.step import Keeping
from penstock.operators.impute.kernel import QueueKernel
from penstock.operators.impute.operator import Impute


def step_of(operator: Impute, node_id: str) -> Keeping:
    """What tasks do: see `penstock.kernels.step`."""
    return Keeping(QueueKernel(operator, node_id), [i.schema for i in operator.inputs], labours=True)
