"""The behaviour of a function with state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.operators.process.operator import Process
from penstock.operators.shared.describing import ClosingBehaviour
from penstock.pattern.pattern import Pattern
from penstock.plan.behaviour import maximal


class ProcessBehaviour(ClosingBehaviour):
    """As for an aggregate: a promise that describes keys ends them, and goes on behind their last results.

    One that does not describe keys is not passed on: nobody knows what the function makes of other attributes.
    """

    def __init__(self, operator: Process) -> None:
        super().__init__(operator, operator.by)
        self.schema, self.kept = operator.inputs[0].schema, operator.kept

    def closed(self, pattern: Pattern) -> Iterable[Pattern]:
        return (pattern,) if pattern.describes(self.ending) else ()

    def receive(self, arrived: Sequence[tuple[Pattern, ...]]) -> tuple[Pattern, ...]:
        told = (p for p in super().receive(arrived) if p.describes(self.kept))
        return maximal(p.onto(self.operator.schema, {n: n for n in p.restricted}) for p in told)
