"""Align: holds events back for a while, so that others can overtake them."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.plan.operator import Operator


@dataclass(frozen=True, eq=False)
class Align(Operator):
    """Every event, when time has come `block` ticks past it. Time is `slack` ticks past what punctuation says of it.

    It is how long a query blocks (see `penstock.plan.consistency`): what comes meanwhile is told together.
    """

    time: str = field(kw_only=True)
    slack: int = field(kw_only=True)
    block: int = field(kw_only=True)

    @property
    def ahead(self) -> int:
        """So many ticks before punctuation would let it go an event leaves."""
        return max(0, self.slack - self.block)

    @property
    def detail(self) -> str:
        return f"{self.time}, {self.ahead} ticks before it is complete"
