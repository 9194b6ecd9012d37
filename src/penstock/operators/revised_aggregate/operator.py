"""Revised aggregate: a result for each group at once, corrected when more comes."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.operators.aggregate.operator import Aggregate
from penstock.plan.weight import is_weighted


@dataclass(frozen=True, eq=False)
class RevisedAggregate(Aggregate):
    """One row of weight +1 for each group as it is now; when the group changes, one of weight −1 takes it back.

    A punctuation that says that a group is complete makes its last row final. Its events may be rows that can be taken
    back themselves.
    """

    kind = "aggregate"
    word = "agg"

    @property
    def of_changes(self) -> bool:
        """Whether its input may take rows back."""
        return is_weighted(self.inputs[0])

    @property
    def detail(self) -> str:
        return f"{super().detail}, corrected"
