"""Aggregates over windows that all begin at the origin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.operators.aggregate.groups import GroupsSpec, by_whole_groups
from penstock.operators.landmark_aggregate.operator import LandmarkAggregate
from penstock.plan.spec import Retraction, Traits, found_in, given, made_in, of_one

if TYPE_CHECKING:
    import random

    from penstock.plan.behaviour import Behaviour


class LandmarkAggregateSpec(GroupsSpec[LandmarkAggregate]):
    """All that is known of aggregates over windows that all begin at the origin."""

    operator = LandmarkAggregate

    traits = given(Traits(
        keeps_state=True, heeds_order=False, at_once=False, makes="one",
        exact=True, listens=True, queues=False, retracts=Retraction.REFUSES,
    ))  # fmt: skip

    def behaviour(self, operator: LandmarkAggregate, heard: bool) -> Behaviour:
        """Windows end for all keys together: only their ends count."""
        from penstock.operators.shared.describing import ClosingBehaviour

        return ClosingBehaviour(operator, (operator.window.label,))

    judge = of_one("contract", "judge_landmarks")
    bound = of_one("contract", "bound_landmarks")
    respond = by_whole_groups("an event counts for all later landmark windows")
    step = found_in("step", "step_of")
    reference = made_in("reference", "LandmarkAggregateReference")

    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        from penstock.operators.aggregate.example import some_groups
        from penstock.operators.window.example import extent, some_time

        on = some_time(random, below.schema)
        if on is None or below.schema.resolve("window_end") is not None:
            return None
        windows = below.window(landmark=extent(random.choice((10, 25)), on, below.schema), on=on)
        return some_groups(random, windows, below.schema)


SPEC = LandmarkAggregateSpec()
