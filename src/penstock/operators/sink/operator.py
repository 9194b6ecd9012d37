"""Sink: where results go."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from penstock.plan.operator import Operator, Role


@dataclass(frozen=True, eq=False)
class Sink(Operator):
    """Where results go. `target` is a declaration from `penstock.engine.sink`, opaque to the algebra."""

    role: ClassVar[Role] = "sink"

    target: Any = None
    #: What the results are worth to whoever reads them; as opaque.
    qos: Any = None

    @property
    def detail(self) -> str:
        return repr(self.target) if self.target is not None else ""

    def for_tasks(self) -> Sink:
        """The driver writes to the target, and decides what is given up."""
        return replace(self, target=None, qos=None)
