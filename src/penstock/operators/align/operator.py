"""Align: holds events back for a while, so that others can overtake them."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.plan.operator import Operator


@dataclass(frozen=True, eq=False)
class Align(Operator):
    """Every event, when time has come far enough: `ahead` ticks before punctuation on `time` would let it go.

    It is how long a query blocks (see `penstock.plan.consistency`): what comes meanwhile is told together.
    """

    time: str = field(kw_only=True)
    ahead: int = field(kw_only=True)

    @property
    def detail(self) -> str:
        return f"{self.time}, {self.ahead} ticks before it is complete"
