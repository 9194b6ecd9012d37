"""The behaviour of `pace`, which issues feedback from what it has seen.

Tasks report the greatest time, the behaviour takes it in (`saw`), and `issued` says what is to be told upstream. All
of it is decided between epochs, so it does not depend on how tasks run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from penstock.operators.join.meeting import unit_of
from penstock.operators.pace.operator import Pace
from penstock.operators.union.punctuation import UnionBehaviour
from penstock.pattern.feedback import Feedback, Intent
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import less
from penstock.pattern.schema import Schema
from penstock.pattern.types import integer_range
from penstock.plan.behaviour import maximal
from penstock.plan.window import from_tick, to_tick


class PaceBehaviour(UnionBehaviour):
    """What a union promises, and that nothing older than the bound comes out: the operator itself sees to that.

    `high` is the greatest time seen, in ticks. `floor` is the least time that passes in the epochs to come; it is set
    when punctuation is, so what merges see after that counts one epoch later. So the scan of the next epoch can begin.
    """

    def __init__(self, operator: Pace, heard: bool = True) -> None:
        super().__init__(operator)
        self.operator, self.heard = operator, heard
        self.unit = unit_of(operator.schema.type_of(operator.on))
        self.high: int | None = None
        self.floor: int | None = None
        self.told: int | None = None

    def saw(self, value: int) -> None:
        self.high = value if self.high is None else max(self.high, value)

    def receive(self, arrived: Sequence[tuple[Pattern, ...]]) -> tuple[Pattern, ...]:
        own = self._due()
        if own is not None:
            self.floor = own
            promise = self._below(own, self.schema)
            if self.said.covers(promise):
                return super().receive(arrived)
            self.said = self.said.add(promise)
            return maximal((promise, *super().receive(arrived)))
        return super().receive(arrived)

    def tell(self) -> int | None:
        """The least time that it lets pass from now on, in ticks."""
        return self.floor

    @property
    def pending(self) -> bool:
        due = self._due() if self.heard else None
        return due is not None and not self.said.covers(self._below(due, self.schema))

    def issued(self) -> list[tuple[int, Feedback]]:
        if self.floor is None or self.floor == self.told or not self.operator.switches.propagate:
            return []
        self.told = self.floor
        inputs = enumerate(self.operator.inputs)
        return [(port, Feedback(Intent.ASSUMED, self._below(self.floor, i.schema))) for port, i in inputs]

    def _due(self) -> int | None:
        """How far the floor may rise by now, if it may."""
        if self.high is None:
            return None
        due = self.high - self.operator.bound
        return due if due > (self._least if self.floor is None else self.floor) else None

    @property
    def _least(self) -> int:
        """The least time there is; a floor there would keep nothing out."""
        if self.unit == "unit":
            return integer_range(self.schema.type_of(self.operator.on))[0]
        return to_tick(datetime.min if self.unit == "us" else date.min, self.unit)

    def _below(self, floor: int, schema: Schema) -> Pattern:
        most = {"us": datetime.max, "day": date.max}.get(self.unit)
        # Arrow knows times beyond the year 9999. Saying less than could be said is right.
        value = most if most is not None and floor > to_tick(most, self.unit) else from_tick(floor, self.unit)
        return Pattern.by_name(schema, {self.operator.on: less(value)})

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "high": self.high, "floor": self.floor, "told": self.told}

    def restore(self, stored: Mapping[str, Any]) -> None:
        super().restore(stored)
        self.high, self.floor, self.told = stored["high"], stored["floor"], stored["told"]
