"""What tasks do with the events of this operator."""

from __future__ import annotations

from penstock.kernels.step import Keeping
from penstock.operators.fold.kernel import FoldKernel
from penstock.operators.fold.operator import Fold
from penstock.operators.settle.step import HoldingKeeping


def step_of(operator: Fold, node_id: str) -> Keeping:
    """What tasks do: see `penstock.kernels.step`."""
    (below,) = operator.inputs
    return HoldingKeeping(FoldKernel(below.schema, operator.keys, operator.by), [below.schema])
