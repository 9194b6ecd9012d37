"""CountAggregate: one output event per group and window of so many events, when the last of them has come."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.operators.aggregate.operator import Aggregate


@dataclass(frozen=True, eq=False)
class CountAggregate(Aggregate):
    """One output event per group and window of so many events, when the last of them has come.

    `window` is a `CountWindow`.
    """

    @property
    def kind(self) -> str:
        return "aggregate"
