"""Sink: where results go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.plan.operator import Operator


@dataclass(frozen=True, eq=False)
class Sink(Operator):
    """Where results go. `target` is a declaration from `penstock.engine.sink`, opaque to the algebra."""

    target: Any = None

    @property
    def detail(self) -> str:
        return repr(self.target) if self.target is not None else ""
