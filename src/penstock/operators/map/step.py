"""What tasks do with the events of this operator."""

from __future__ import annotations

import pyarrow as pa

from penstock.kernels.step import Noting, TableStep
from penstock.operators.map.kernel import apply_function
from penstock.operators.map.operator import Map


class MapStep(TableStep):
    """Gives them to the user's function."""

    def __init__(self, operator: Map, node_id: str) -> None:
        self.operator, self.node_id = operator, node_id
        self.takes = operator.inputs[0].schema

    def run(self, rows: pa.Table, noting: Noting) -> pa.Table:
        return apply_function(self.operator, self.node_id, rows)


def step_of(operator: Map, node_id: str) -> TableStep:
    """What tasks do: see `penstock.kernels.step`."""
    return MapStep(operator, node_id)
