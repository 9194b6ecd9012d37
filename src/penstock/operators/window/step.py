"""What tasks do with the events of this operator."""

from __future__ import annotations

from collections.abc import Collection

from penstock.kernels.step import Asked, SqlStep
from penstock.operators.window.kernel import bucket_sql, tried
from penstock.operators.window.operator import Bucket
from penstock.sql.fallible import Fallible


class WindowStep(SqlStep):
    """Labels events with their windows. Aggregates right above take over, and do the windowing pane by pane."""

    def __init__(self, operator: Bucket) -> None:
        self.window = operator.window

    def tried(self, wanted: frozenset[str]) -> tuple[Fallible, ...]:
        return tried(self.window)

    def reads(self, passed: frozenset[str], wanted: frozenset[str]) -> Collection[str]:
        return passed if self.window.on is None else {*passed, self.window.on}

    def sql(self, rows: str, asked: Asked) -> str:
        return bucket_sql(rows, self.window)
