"""What tasks do with the events of this operator."""

from __future__ import annotations

from collections.abc import Collection

from penstock.kernels.step import Asked, SqlStep, registered
from penstock.operators.lookup.kernel import LookupKernel, deepest
from penstock.operators.lookup.operator import TableJoin


class LookupStep(SqlStep):
    """Joins events with the table as it was prepared for the epoch."""

    def __init__(self, operator: TableJoin) -> None:
        self.operator = operator

    def reads(self, passed: frozenset[str], wanted: frozenset[str]) -> Collection[str]:
        return self.operator.reads

    def sql(self, rows: str, asked: Asked) -> str:
        name = registered(self.operator.table.name)
        return LookupKernel(self.operator).sql(rows, name, deepest(asked.tables[name]))
