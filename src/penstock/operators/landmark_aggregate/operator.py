"""LandmarkAggregate: one output event per group and period: what has come since the origin, when the period is over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.operators.aggregate.operator import Aggregate

if TYPE_CHECKING:
    from penstock.plan.window import LandmarkWindow


@dataclass(frozen=True, eq=False)
class LandmarkAggregate(Aggregate):
    """One output event per group and period: what has come since the origin, when the period is over."""

    kind = "aggregate"
    word = "agg"

    window: LandmarkWindow = field(kw_only=True)
