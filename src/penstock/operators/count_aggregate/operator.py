"""CountAggregate: one output event per group and window of so many events, when the last of them has come."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.operators.aggregate.operator import Aggregate

if TYPE_CHECKING:
    from penstock.plan.window import CountWindow


@dataclass(frozen=True, eq=False)
class CountAggregate(Aggregate):
    """One output event per group and window of so many events, when the last of them has come."""

    kind = "aggregate"
    word = "agg"

    window: CountWindow = field(kw_only=True)
