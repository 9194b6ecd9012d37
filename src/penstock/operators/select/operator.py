"""Select: keeps some events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.sql.expression import Expression
from penstock.plan.operator import Operator


@dataclass(frozen=True, eq=False)
class Select(Operator):
    """Keeps the events for which the predicate is true."""

    word = "where"

    predicate: Expression = field(kw_only=True)

    @property
    def detail(self) -> str:
        return self.predicate.text
