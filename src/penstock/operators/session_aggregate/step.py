"""What tasks do with the events of this operator."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from penstock.kernels.step import Keeping
from penstock.operators.aggregate.folding import grouping_kernel
from penstock.operators.aggregate.step import GroupKeeping
from penstock.operators.session_aggregate.kernel import ClosedSessions, CorrectedSessions, SessionGroups
from penstock.operators.session_aggregate.operator import SessionAggregate


class SessionKeeping(GroupKeeping):
    """Rows of a key are put together wherever they meet, whatever they are sorted by."""

    def together(self, tables: Sequence[pa.Table]) -> pa.Table:
        return tables[0] if len(tables) == 1 else self.folding.merge(tables)


def step_of(operator: SessionAggregate, node_id: str) -> Keeping:
    """What tasks do: see `penstock.kernels.step`."""
    kind = CorrectedSessions if operator.corrected else ClosedSessions
    return SessionKeeping(kind(grouping_kernel(operator, node_id, SessionGroups)))
