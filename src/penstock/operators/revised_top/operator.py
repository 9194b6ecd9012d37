"""Revised top: the best events of each group at once, corrected when others take their places."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.operators.top.operator import Top
from penstock.plan.weight import WEIGHT, is_weighted


@dataclass(frozen=True, eq=False)
class RevisedTop(Top):
    """The best `count` events of each group as it is now, of weight +1; one that no longer is gets −1.

    Its events may be rows that can be taken back themselves: then the next best takes the place.
    """

    kind = "top"
    word = "top"

    @property
    def of_changes(self) -> bool:
        """Whether its input may take rows back."""
        return is_weighted(self.inputs[0])

    @property
    def order(self) -> tuple[tuple[str, bool], ...]:
        return tuple(pair for pair in super().order if pair[0] != WEIGHT)

    @property
    def detail(self) -> str:
        return f"{super().detail}, corrected"
