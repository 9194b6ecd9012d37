"""What tasks do with the events of this operator."""

from __future__ import annotations

from penstock.kernels.step import Keeping
from penstock.operators.distinct.kernel import DistinctKernel
from penstock.operators.distinct.operator import Distinct


def step_of(operator: Distinct, node_id: str) -> Keeping:
    """What tasks do: see `penstock.kernels.step`."""
    return Keeping(DistinctKernel(operator, node_id), [i.schema for i in operator.inputs])
