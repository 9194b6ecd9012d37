"""Revised join: results at once, taken back when a partner comes or goes."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.operators.join.operator import Join


@dataclass(frozen=True, eq=False)
class RevisedJoin(Join):
    """A join whose inputs may take rows back, and whose rows without a partner do not wait.

    The weight of a pair is the product of the weights of its rows. A row that may come out alone does so at once, and
    is taken back with its first partner.
    """

    kind = "join"

    @property
    def nearness(self) -> str:
        return ", ".join(part for part in (super().nearness, "corrected") if part)
