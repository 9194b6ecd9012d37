"""What tasks do with the events of this operator."""

from __future__ import annotations

from penstock.kernels.step import Keeping
from penstock.operators.aggregate.folding import grouping_kernel
from penstock.operators.aggregate.step import GroupKeeping
from penstock.operators.session_aggregate.kernel import ClosedSessions, CorrectedSessions, SessionGroups
from penstock.operators.session_aggregate.operator import SessionAggregate


def step_of(operator: SessionAggregate, node_id: str) -> Keeping:
    """What tasks do: see `penstock.kernels.step`."""
    kind = CorrectedSessions if operator.corrected else ClosedSessions
    return GroupKeeping(kind(grouping_kernel(operator, node_id, SessionGroups)))
