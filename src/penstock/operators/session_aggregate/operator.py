"""SessionAggregate: one output event per group and session."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.operators.aggregate.operator import Aggregate

if TYPE_CHECKING:
    from penstock.plan.window import SessionWindow


@dataclass(frozen=True, eq=False)
class SessionAggregate(Aggregate):
    """One output event per group and session, when nothing can make the session longer.

    `corrected`: sessions are told at once. When one grows, or several become one, what was told is taken back.
    """

    kind = "aggregate"
    word = "agg"

    window: SessionWindow = field(kw_only=True)
    corrected: bool = False

    @property
    def detail(self) -> str:
        return f"{super().detail}, corrected" if self.corrected else super().detail
