"""What tasks do with the events of this operator."""

from __future__ import annotations

from penstock.kernels.step import Keeping
from penstock.operators.aggregate.folding import grouping_kernel
from penstock.operators.aggregate.step import GroupKeeping
from penstock.operators.landmark_aggregate.kernel import LandmarkGroups, LandmarkKernel
from penstock.operators.landmark_aggregate.operator import LandmarkAggregate


def step_of(operator: LandmarkAggregate, node_id: str) -> Keeping:
    """What tasks do: see `penstock.kernels.step`."""
    return GroupKeeping(LandmarkKernel(grouping_kernel(operator, node_id, LandmarkGroups)))
