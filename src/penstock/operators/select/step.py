"""What tasks do with the events of this operator."""

from __future__ import annotations

from collections.abc import Collection

from penstock.kernels.step import FENCE, Asked, SqlStep
from penstock.operators.select.operator import Select
from penstock.sql.fallible import Fallible


class SelectStep(SqlStep):
    """Keeps those for which the predicate is true."""

    def __init__(self, operator: Select) -> None:
        self.predicate = operator.predicate

    def tried(self, wanted: frozenset[str]) -> tuple[Fallible, ...]:
        return self.predicate.tried

    def reads(self, passed: frozenset[str], wanted: frozenset[str]) -> Collection[str]:
        return passed | self.predicate.columns

    def sql(self, rows: str, asked: Asked) -> str:
        fence = FENCE if self.predicate.can_fail else ""
        return f"SELECT * FROM ({rows}) WHERE {self.predicate.sql}{fence}"
