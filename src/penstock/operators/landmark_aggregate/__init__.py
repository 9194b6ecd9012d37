"""Aggregates over windows that all begin at the origin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.operators.aggregate.groups import GroupsSpec
from penstock.operators.landmark_aggregate.operator import LandmarkAggregate
from penstock.plan.spec import Measured, Retraction, Surroundings, Traits

if TYPE_CHECKING:
    import random

    from penstock.contract.flow import Flow, Verdict
    from penstock.contract.rates import Pace
    from penstock.contract.size import Bound
    from penstock.pattern.pattern import Pattern
    from penstock.plan.behaviour import Behaviour
    from penstock.plan.response import Response
    from penstock.reference.running import Running


class LandmarkAggregateSpec(GroupsSpec[LandmarkAggregate]):
    """All that is known of aggregates over windows that all begin at the origin."""

    operator = LandmarkAggregate

    def traits(self, operator: LandmarkAggregate) -> Traits:
        return Traits(
            keeps_state=True,
            heeds_order=False,
            at_once=False,
            makes="unasked",
            exact=True,
            listens=True,
            queues=False,
            retracts=Retraction.REFUSES,
        )

    def behaviour(self, operator: LandmarkAggregate, heard: bool) -> Behaviour:
        from penstock.operators.landmark_aggregate.punctuation import LandmarkBehaviour

        return LandmarkBehaviour(operator)

    def judge(self, operator: LandmarkAggregate, below: Sequence[Flow]) -> Verdict:
        from penstock.operators.landmark_aggregate.contract import judge_landmarks

        return judge_landmarks(operator, below[0])

    def bound(self, operator: LandmarkAggregate, below: Sequence[Pace], measured: Measured) -> tuple[Bound, Pace]:
        from penstock.operators.landmark_aggregate.contract import bound_landmarks

        return bound_landmarks(operator, below[0])

    def total(self, operator: LandmarkAggregate, below: Sequence[int | None]) -> int | None:
        """Results come without events: one for every key and period."""
        return None

    def respond(self, operator: LandmarkAggregate, pattern: Pattern) -> Response:
        from penstock.operators.landmark_aggregate.feedback import respond_landmarks

        return respond_landmarks(operator, pattern)

    def step(self, operator: LandmarkAggregate, node_id: str) -> Any:
        from penstock.operators.landmark_aggregate.step import step_of

        return step_of(operator, node_id)

    def reference(self, operator: LandmarkAggregate, around: Surroundings) -> Running:
        from penstock.operators.landmark_aggregate import reference

        return reference.LandmarkAggregate(operator)

    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        from penstock.operators.aggregate.example import some_groups
        from penstock.operators.window.example import extent, some_time

        on = some_time(random, below.schema)
        if on is None or below.schema.resolve("window_end") is not None:
            return None
        windows = below.window(landmark=extent(random.choice((10, 25)), on, below.schema), on=on)
        return some_groups(random, windows, below.schema)


SPEC = LandmarkAggregateSpec()
