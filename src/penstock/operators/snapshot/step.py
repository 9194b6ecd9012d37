"""What tasks do with the events of this operator."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from penstock.kernels.step import Keeping, Rows
from penstock.kernels.weights import net
from penstock.operators.snapshot.kernel import SnapshotKernel
from penstock.operators.snapshot.operator import SnapshotAggregate
from penstock.sql.fallible import Fallible


class SnapshotKeeping(Keeping):
    """Rows travel as they are; those that cancel each other out stay at home."""

    kernel: SnapshotKernel

    @property
    def tried(self) -> tuple[Fallible, ...]:
        return self.kernel.groups.tried

    def sent(self, port: int, rows: Rows, careful: bool) -> pa.Table:
        found = self.together([super().sent(port, rows, careful)])
        if not careful:
            self.kernel.groups.try_all(found)
        return found

    def together(self, tables: Sequence[pa.Table]) -> pa.Table:
        return net(tables) if self.kernel.of_changes else super().together(tables)


def step_of(operator: SnapshotAggregate, node_id: str) -> Keeping:
    """What tasks do: see `penstock.kernels.step`."""
    return SnapshotKeeping(SnapshotKernel(operator, node_id), [operator.inputs[0].schema])
