"""What tasks do with the events of this operator."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from penstock.kernels.step import Keeping, Rows
from penstock.kernels.weights import net
from penstock.operators.settle.kernel import SettleKernel
from penstock.operators.settle.operator import Settle
from penstock.operators.shared.stock import by_last_moment


class HoldingKeeping(Keeping):
    """Changes that cancel each other out stay at home."""

    def sent(self, port: int, rows: Rows, careful: bool) -> pa.Table:
        found = super().sent(port, rows, careful)
        return net([by_last_moment(found, *lasting) if (lasting := self.inputs[port].lifetime) else found])

    def together(self, tables: Sequence[pa.Table]) -> pa.Table:
        return net(tables)


def step_of(operator: Settle, node_id: str) -> Keeping:
    """What tasks do: see `penstock.kernels.step`."""
    (below,) = operator.inputs
    return HoldingKeeping(SettleKernel(below.schema, operator.keys), [below.schema])
