"""What tasks do with the events of this operator."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.step import Noting, TableStep
from penstock.kernels.weights import weighted
from penstock.operators.map.kernel import apply_function
from penstock.operators.map.operator import Map
from penstock.plan.weight import WEIGHT, without_weight


class MapStep(TableStep):
    """Gives them to the user's function."""

    def __init__(self, operator: Map, node_id: str) -> None:
        self.operator, self.node_id = operator, node_id
        self.takes = operator.inputs[0].schema

    def run(self, rows: pa.Table, noting: Noting) -> pa.Table:
        if WEIGHT not in self.operator.schema:
            return apply_function(self.operator, self.node_id, rows)
        # The function knows nothing of weights: it is given what goes and what comes apart, and makes the same of both.
        plain = replace(self.operator, schema=without_weight(self.operator.schema))
        parts = [(w, rows.filter(pc.equal(rows[WEIGHT], w))) for w in pc.unique(rows[WEIGHT]).to_pylist()]
        made = [weighted(apply_function(plain, self.node_id, part.drop_columns([WEIGHT])), w) for w, part in parts]
        return pa.concat_tables(made)
