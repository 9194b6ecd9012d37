"""Fold: the table as it is now, in parts that are replaced as a whole."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from penstock.pattern.schema import Attribute
from penstock.plan.operator import Operator
from penstock.plan.weight import PART


@dataclass(frozen=True, eq=False)
class Fold(Operator):
    """Rows that may be taken back, as a table in parts: of a part that has changed all rows leave again.

    A row says in which part it lies (`_part`); one of weight 0 stands for the part itself, which may be empty. Parts
    are shares of the `keys`, which tell rows apart (None if nothing does but all that they say), and with `by` of the
    rows that have the same values there.
    """

    keys: tuple[str, ...] | None = None
    by: tuple[str, ...] = ()

    @classmethod
    def over(cls, below: Operator, keys: tuple[str, ...] | None, by: tuple[str, ...]) -> Fold:
        return cls((below,), below.schema.extend([Attribute(PART, pa.int64())]), keys=keys, by=by)

    @property
    def detail(self) -> str:
        return "the table as it is now" + (f", by {', '.join(self.by)}" if self.by else "")
