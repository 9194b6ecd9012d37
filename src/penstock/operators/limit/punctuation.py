"""The behaviour of `limit`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock.operators.limit.operator import Limit
from penstock.operators.shared.releasing import ReleasingBehaviour
from penstock.pattern.pattern import Pattern
from penstock.plan.orders import Answer, Orders


class LimitBehaviour(ReleasingBehaviour):
    """Passes every punctuation on, as whoever drops events may; and promises the end when the limit is reached.

    How many events have been let through only the state knows, so it is asked until there are enough.
    """

    def __init__(self, operator: Limit) -> None:
        super().__init__(operator)
        self.count = operator.count
        self.full = False
        self.over = False

    def receive(self, arrived: Sequence[tuple[Pattern, ...]]) -> tuple[Pattern, ...]:
        (patterns,) = arrived
        # The count is needed no longer than the input lasts, though the end may have been promised before.
        self.fresh += [Pattern(self.schema, p.restrictions) for p in patterns if not p.restricted]
        if self.over:
            return ()
        self.over = self.full or bool(self.fresh)
        if self.over:
            return (Pattern.all(self.schema),)
        return tuple(Pattern(self.schema, p.restrictions) for p in patterns)

    def orders(self) -> Orders:
        ask = () if self.full or self.over else ((Pattern.all(self.schema),),)
        return replace(super().orders(), ask=ask)

    def answered(self, answers: Sequence[Sequence[Answer]]) -> None:
        self.full = self.full or sum(a.rows for said in answers for a in said) >= self.count

    @property
    def pending(self) -> bool:
        return self.full and not self.over

    def to_json(self) -> dict[str, Any]:
        return {"full": self.full, "over": self.over}

    def restore(self, stored: Mapping[str, Any]) -> None:
        self.full, self.over = stored["full"], stored["over"]
