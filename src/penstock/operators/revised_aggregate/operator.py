"""Revised aggregate: a result for each group at once, corrected when more comes."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.operators.aggregate.operator import Aggregate
from penstock.plan.operator import Operator
from penstock.plan.spec import Retraction, traits_of
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
    def by_parts(self) -> bool:
        """Whether what a row has added to its group can be taken away again, so that no row need be kept."""
        adding = all(p.adds is not None for a in self.aggregations for p in a.partials)
        return self.of_changes and adding and not may_owe(self.inputs[0])

    @property
    def detail(self) -> str:
        return f"{super().detail}, corrected"

    @property
    def meaning(self) -> str:
        return f"{self.detail} by parts" if self.by_parts else self.detail


def may_owe(operator: Operator) -> bool:
    """Whether a row may be taken back that has not come: as a source may say, and what is computed never does.

    A row that another table is looked up for may have looked otherwise when it came.
    """
    if isinstance(operator, RevisedAggregate):
        return False
    below = [i for i in operator.inputs if is_weighted(i)]
    if not below:
        return is_weighted(operator) and traits_of(operator).retracts is not Retraction.ANSWERS
    return not operator.steady or any(map(may_owe, below))
