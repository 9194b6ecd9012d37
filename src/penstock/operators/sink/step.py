"""What tasks do with the events of this operator."""

from __future__ import annotations

from penstock.kernels.step import Leaving, Step
from penstock.operators.sink.operator import Sink


def step_of(operator: Sink, node_id: str) -> Step:
    """They are results."""
    return Leaving(operator.inputs[0].schema)
