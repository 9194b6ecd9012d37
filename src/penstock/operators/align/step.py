"""What tasks do with the events of this operator."""

from __future__ import annotations

from penstock.kernels.step import Keeping
from penstock.operators.align.kernel import AlignKernel
from penstock.operators.align.operator import Align


def step_of(operator: Align, node_id: str) -> Keeping:
    """What tasks do: see `penstock.kernels.step`."""
    return Keeping(AlignKernel(operator, node_id), [operator.inputs[0].schema])
