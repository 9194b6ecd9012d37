"""What punctuation says to aggregates over landmark windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from penstock.operators.aggregate.punctuation import through_groups
from penstock.operators.landmark_aggregate.operator import LandmarkAggregate
from penstock.operators.shared.describing import DescribingBehaviour
from penstock.pattern.minimise import has_end
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.restriction import Range
from penstock.plan.orders import Orders


class LandmarkBehaviour(DescribingBehaviour):
    """A window goes on for a key even when no event of it can come: only its end counts.

    And there is another one at the end of every period. With `>= 0`, or when all keys there are have ended, no event
    can come, and so there are windows up to the latest event; but there is one more whenever time is told to have come
    further. So the totals stay, and nothing is promised of windows without end, until the input is over.
    """

    def __init__(self, operator: LandmarkAggregate) -> None:
        self.label = operator.window.label
        super().__init__(operator, (self.label,), partial(through_groups, operator, (self.label,)))
        #: Whether all windows have become complete since the last orders.
        self.complete = False
        #: Whether nothing can come, and whether that this is the end was passed on.
        self.idle = self.done = False

    def receive(self, arrived: Sequence[tuple[Pattern, ...]]) -> tuple[Pattern, ...]:
        found = super().receive(arrived)
        ending = tuple(p for p in found if has_end(p[self.label]))
        self.complete = self.complete or len(ending) < len(found)
        self.idle = self.idle or not all(p.restricted for p in found)
        if self.idle and self.inputs_over and not self.done:
            self.done = True
            return (*ending, Pattern.all(self.operator.schema))
        return ending

    def orders(self) -> Orders | None:
        """Its kernel alone hears that all windows are complete: up to the latest event, as only the state knows."""
        if not self.complete:
            return None
        self.complete = False
        schema = self.operator.schema
        every = Pattern.by_name(schema, {self.label: Range(None, None)})
        return Orders(((every,),), (PunctuationSet(schema),))

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "idle": self.idle, "done": self.done}

    def restore(self, stored: Mapping[str, Any]) -> None:
        super().restore(stored)
        self.idle, self.done = stored.get("idle", False), stored.get("done", False)
