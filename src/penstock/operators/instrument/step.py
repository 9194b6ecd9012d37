"""What tasks do with the events of this operator."""

from __future__ import annotations

from operator import add

import pyarrow as pa

from penstock.kernels.step import Noting, TableStep
from penstock.operators.instrument.operator import Instrument


class InstrumentStep(TableStep):
    """Counts them."""

    def run(self, rows: pa.Table, noting: Noting) -> pa.Table:
        noting.saw(rows.num_rows, add)
        return rows


def step_of(operator: Instrument, node_id: str) -> TableStep:
    """What tasks do: see `penstock.kernels.step`."""
    return InstrumentStep()
