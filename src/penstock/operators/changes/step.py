"""What tasks do with the events of this operator."""

from __future__ import annotations

from collections.abc import Collection

from penstock.kernels.duck import quote
from penstock.kernels.step import Asked, SqlStep
from penstock.operators.changes.operator import Changes
from penstock.plan.weight import GONE, WEIGHT


class ChangesStep(SqlStep):
    """One row for an insert, one or two for a retraction."""

    def __init__(self, operator: Changes) -> None:
        self.lifetime = operator.lifetime

    def reads(self, passed: frozenset[str], wanted: frozenset[str]) -> Collection[str]:
        return {*(passed - {WEIGHT}), *self.lifetime.attributes}

    def sql(self, rows: str, asked: Asked) -> str:
        life = self.lifetime
        if not (life.kind or life.new_end):
            return f"SELECT *, CAST(1 AS BIGINT) AS {WEIGHT} FROM ({rows})"
        gone = f"{quote(life.new_end)} IS NOT NULL"
        if life.kind:
            gone = f"lower(trim(CAST({quote(life.kind)} AS VARCHAR))) IN ({', '.join(map(repr, GONE))})"
        start, end = quote(life.start), quote(life.end)
        new = f"coalesce({quote(life.new_end)}, {start})" if life.new_end else start
        parts = f"CASE WHEN NOT ({gone}) THEN [1] WHEN {new} = {start} THEN [-1] ELSE [-1, 1] END"
        shorter = f"CASE WHEN {gone} AND __part = 1 THEN {new} ELSE {end} END AS {end}"
        return (
            f"SELECT * EXCLUDE (__part) REPLACE ({shorter}), CAST(__part AS BIGINT) AS {WEIGHT} "
            f"FROM (SELECT *, unnest({parts}) AS __part FROM ({rows}))"
        )
