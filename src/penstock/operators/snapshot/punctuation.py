"""The behaviour of operators on rows with lifetimes: what is final, and which keys are over."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.kernels.fold import frontier_of
from penstock.operators.shared.describing import ClosingBehaviour
from penstock.operators.snapshot.operator import SnapshotAggregate
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import SYNC


class SnapshotBehaviour(ClosingBehaviour):
    """What is final of the rows is final of the results: none that is told later begins before."""

    def __init__(self, operator: SnapshotAggregate) -> None:
        super().__init__(operator, (SYNC, *operator.keys))
        self.keys = operator.keys

    def closed(self, pattern: Pattern) -> Iterable[Pattern]:
        if pattern.describes(self.keys) or frontier_of(pattern, SYNC) is not None:
            yield pattern.onto(self.operator.schema, {n: n for n in pattern.restricted})
