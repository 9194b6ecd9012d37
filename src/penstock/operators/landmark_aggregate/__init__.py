"""Aggregates over windows that all begin at the origin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.operators.aggregate.groups import GroupsSpec
from penstock.operators.landmark_aggregate.operator import LandmarkAggregate
from penstock.plan.spec import Measurements, Retraction, Traits, found_in, made_in

if TYPE_CHECKING:
    import random

    from penstock.contract.flow import Flow, Verdict
    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound
    from penstock.plan.behaviour import Behaviour


class LandmarkAggregateSpec(GroupsSpec[LandmarkAggregate]):
    """All that is known of aggregates over windows that all begin at the origin."""

    operator = LandmarkAggregate

    def traits(self, operator: LandmarkAggregate) -> Traits:
        return Traits(
            keeps_state=True, heeds_order=False, at_once=False, makes="one",
            exact=True, listens=True, queues=False, retracts=Retraction.REFUSES,
        )  # fmt: skip

    def behaviour(self, operator: LandmarkAggregate, heard: bool) -> Behaviour:
        """Windows end for all keys together: only their ends count."""
        from penstock.operators.aggregate.punctuation import ClosingBehaviour

        return ClosingBehaviour(operator, (operator.window.label,))

    def judge(self, operator: LandmarkAggregate, below: Sequence[Flow]) -> Verdict:
        from penstock.operators.landmark_aggregate.contract import judge_landmarks

        return judge_landmarks(operator, below[0])

    def bound(self, operator: LandmarkAggregate, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        from penstock.operators.landmark_aggregate.contract import bound_landmarks

        return bound_landmarks(operator, below[0])

    def total(self, operator: LandmarkAggregate, below: Sequence[int | None]) -> int | None:
        return below[0]

    respond = found_in("feedback", "respond_landmarks")
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
