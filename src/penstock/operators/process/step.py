"""What tasks do with the events of this operator."""

from __future__ import annotations

from penstock.kernels.step import Keeping
from penstock.operators.process.kernel import ProcessKernel
from penstock.operators.process.operator import Process


def step_of(operator: Process, node_id: str) -> Keeping:
    """What tasks do: see `penstock.kernels.step`."""
    return Keeping(ProcessKernel(operator, node_id), [i.schema for i in operator.inputs], labours=True)
