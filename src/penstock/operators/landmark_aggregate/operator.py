"""LandmarkAggregate: one output event per group and period: what has come since the origin, when the period is over."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.operators.aggregate.operator import Aggregate


@dataclass(frozen=True, eq=False)
class LandmarkAggregate(Aggregate):
    """One output event per group and period: what has come since the origin, when the period is over.

    `window` is a `LandmarkWindow`.
    """

    @property
    def kind(self) -> str:
        return "aggregate"
