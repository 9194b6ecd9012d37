"""Project: renames, drops and computes attributes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.sql.expression import Expression
from penstock.plan.operator import Operator
from penstock.sql.carried import carried


@dataclass(frozen=True, eq=False)
class Project(Operator):
    """Renames, drops and computes attributes: one output attribute per (name, expression)."""

    word = "select"

    columns: tuple[tuple[str, Expression], ...] = field(kw_only=True)

    @property
    def detail(self) -> str:
        return ", ".join(n if e.text == n else f"{e.text} AS {n}" for n, e in self.columns)

    @property
    def meaning(self) -> str:
        """What decides results, however it was written."""
        return ", ".join(f"{e.sql} AS {n}" for n, e in self.columns)

    @property
    def renames(self) -> dict[str, tuple[str, ...]]:
        """Input attribute → the output attributes that carry it unchanged."""
        out: dict[str, tuple[str, ...]] = {}
        for name, expression in self.columns:
            if (column := carried(expression)) is not None:
                out[column] = (*out.get(column, ()), name)
        return out
