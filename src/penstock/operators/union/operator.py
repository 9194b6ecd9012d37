"""Union: all events of all inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass
from penstock.plan.operator import Operator


@dataclass(frozen=True, eq=False)
class Union(Operator):
    """All events of all inputs; a punctuation once every input has given it."""

    @property
    def detail(self) -> str:
        return f"{len(self.inputs)} inputs"
