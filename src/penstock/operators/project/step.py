"""What tasks do with the events of this operator."""

from __future__ import annotations

from collections.abc import Collection

from penstock.kernels.duck import quote
from penstock.kernels.step import FENCE, Asked, SqlStep
from penstock.operators.project.operator import Project
from penstock.pattern.types import duckdb_type
from penstock.sql.carried import carried
from penstock.sql.expression import Expression
from penstock.sql.fallible import Fallible


class ProjectStep(SqlStep):
    """Computes what somebody looks at. What is only passed on is passed on in any case: dead letters show it."""

    def __init__(self, operator: Project) -> None:
        self.columns = operator.columns

    def tried(self, wanted: frozenset[str]) -> tuple[Fallible, ...]:
        return tuple(t for name, e in self.columns if name in wanted for t in e.tried)

    def reads(self, passed: frozenset[str], wanted: frozenset[str]) -> Collection[str]:
        return {c for name, e in self.columns if name in wanted or carried(e) is not None for c in e.columns}

    def sql(self, rows: str, asked: Asked) -> str:
        computed = [(n, e, n in asked.wanted) for n, e in self.columns]
        made = [f"{e.sql if w else _null(e)} AS {quote(n)}" for n, e, w in computed]
        fence = FENCE if any(e.can_fail and carried(e) is None for _, e, w in computed if w) else ""
        return f"SELECT {', '.join([*made, *asked.aside])} FROM ({rows}){fence}"


def _null(expression: Expression) -> str:
    """In the place of what nobody looks at."""
    return expression.sql if carried(expression) else f"CAST(NULL AS {duckdb_type(expression.type)})"
