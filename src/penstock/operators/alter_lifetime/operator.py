"""AlterLifetime: rows that hold at other times, by a rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.plan.operator import Operator

#: How an end follows from a lifetime: a length from the start, so much later than it was, so long at most, for ever; or
#: for ever from where the lifetime ended.
Rule = Literal["length", "extend", "at_most", "inserts", "deletes"]


@dataclass(frozen=True, eq=False)
class AlterLifetime(Operator):
    """Each row with another lifetime; one that comes to nothing is left out.

    Whatever changes of a row that matters from some moment on, changes of what becomes of it no sooner, so what is
    final stays so. Starts never change their order, and ends are never before what they follow from.
    """

    kind = "lifetime"
    word = "lifetime"

    rule: Rule = "length"
    #: The length, in ticks.
    ticks: int = 0
    #: Starts are multiples of so many ticks; 0 leaves them as they are.
    every: int = 0

    @property
    def detail(self) -> str:
        said = {
            "length": f"for {self.ticks} ticks",
            "extend": f"{self.ticks} ticks longer",
            "at_most": f"at most {self.ticks} ticks",
            "inserts": "for ever since the start",
            "deletes": "for ever since the end",
        }[self.rule]
        return f"{said}, from multiples of {self.every}" if self.every else said
