"""The behaviour of `align`: what is complete leaves, and what is so nearly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.kernels.fold import frontier_of, tick
from penstock.operators.align.operator import Align
from penstock.operators.join.meeting import unit_of
from penstock.operators.shared.releasing import ReleasingBehaviour
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import less
from penstock.plan.orders import Orders
from penstock.plan.window import from_tick


class AlignBehaviour(ReleasingBehaviour):
    """Passes every punctuation on, since what it matches has left by then; what is near leaves without one."""

    def __init__(self, operator: Align) -> None:
        super().__init__(operator)
        self.operator, self.slack, self.block = operator, operator.slack, operator.block
        #: The newest tick that time is known to have reached: in a stream of several parts, in all of them.
        self.reached: int | None = None

    def receive(self, arrived: Sequence[tuple[Pattern, ...]]) -> tuple[Pattern, ...]:
        moved = super().receive(arrived)
        t = self.schema.type_of(self.operator.time)
        for pattern in moved:
            if (frontier := frontier_of(pattern, self.operator.time)) is not None:
                at = tick(frontier[0], t) + frontier[1] + self.slack
                self.reached = at if self.reached is None else max(at, self.reached)
        return moved

    def turn(self, slack: int, block: int) -> None:
        self.slack, self.block = slack, block

    @property
    def holds_back(self) -> bool:
        return True

    def orders(self) -> Orders:
        if not self.block:
            self.fresh = [Pattern.all(self.schema)]
        elif self.reached is not None:
            # A source may let events come later than they are held back; what it has promised, it has.
            self.fresh.append(self._before(self.reached - min(self.block, self.slack)))
        return super().orders()

    def _before(self, bound: int) -> Pattern:
        name = self.operator.time
        try:
            near = less(from_tick(bound, unit_of(self.schema.type_of(name))))
        except OverflowError:  # Behind the last time there is.
            return Pattern.all(self.schema)
        return Pattern.by_name(self.schema, {name: near})

    def to_json(self) -> dict[str, Any]:
        return {"reached": self.reached, "slack": self.slack, "block": self.block}

    def restore(self, stored: Mapping[str, Any]) -> None:
        self.reached, self.slack, self.block = stored["reached"], stored["slack"], stored["block"]
