"""What tasks do with the events of this operator."""

from __future__ import annotations

from typing import Any

from penstock.plan.operator import Operator


def step_of(operator: Operator, node_id: str) -> Any:
    """What tasks do: see `penstock.kernels.step`."""
    raise NotImplementedError
