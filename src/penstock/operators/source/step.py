"""What tasks do with the events of this operator."""

from __future__ import annotations

from penstock.kernels.step import Reading, Step
from penstock.operators.source.operator import Source


def step_of(operator: Source, node_id: str) -> Step:
    """Nothing: the scan reads its events."""
    return Reading()
