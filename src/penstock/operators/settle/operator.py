"""Settle: what can no longer change."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.plan.operator import Operator
from penstock.plan.weight import without_weight


@dataclass(frozen=True, eq=False)
class Settle(Operator):
    """Rows that may be taken back, held until a punctuation covers them: then each of them leaves once.

    `keys` tell the rows apart; None if nothing does but all that they say.
    """

    keys: tuple[str, ...] | None = None

    @classmethod
    def over(cls, below: Operator, keys: tuple[str, ...] | None) -> Settle:
        return cls((below,), without_weight(below.schema), keys=keys)

    @property
    def detail(self) -> str:
        return "what is final"
