"""Aggregate: one event per group, or per group and window of time.

What is common to it and to aggregates over other windows (`count_aggregate`, `landmark_aggregate`) stands here too:
what they answer alike in `groups`, and parts of their verdicts, bounds and responses in `contract` and `feedback`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.operators.aggregate.groups import GroupsSpec
from penstock.operators.aggregate.operator import Aggregate
from penstock.plan.spec import Measurements, Retraction, Traits, found_in, made_in

if TYPE_CHECKING:
    import random

    from penstock.contract.flow import Flow, Verdict
    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound
    from penstock.plan.behaviour import Behaviour
    from penstock.plan.operator import Operator


class AggregateSpec(GroupsSpec[Aggregate]):
    """All that is known of aggregates, without windows or over windows of time."""

    operator = Aggregate

    def traits(self, operator: Aggregate) -> Traits:
        return Traits(
            keeps_state=True, heeds_order=False, at_once=False, makes="one",
            exact=True, listens=True, queues=False, retracts=Retraction.ANSWERS,
        )  # fmt: skip

    def revised(self, operator: Aggregate, inputs: Sequence[Operator]) -> Operator:
        from penstock.operators.revised_aggregate.operator import RevisedAggregate
        from penstock.plan.weight import with_weight

        return RevisedAggregate(
            tuple(inputs), with_weight(operator.schema), switches=operator.switches, label=operator.label,
            keys=operator.keys, aggregations=operator.aggregations, window=operator.window,
        )  # fmt: skip

    def behaviour(self, operator: Aggregate, heard: bool) -> Behaviour:
        from penstock.operators.aggregate.punctuation import ClosingBehaviour

        return ClosingBehaviour(operator, operator.keys)

    def judge(self, operator: Aggregate, below: Sequence[Flow]) -> Verdict:
        from penstock.operators.aggregate.contract import judge_aggregate

        return judge_aggregate(operator, below[0])

    def bound(self, operator: Aggregate, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        from penstock.operators.aggregate.contract import bound_aggregate

        return bound_aggregate(operator, below[0], measured.epoch)

    def total(self, operator: Aggregate, below: Sequence[int | None]) -> int | None:
        return below[0]

    respond = found_in("feedback", "respond_aggregate")
    step = found_in("step", "step_of")
    reference = made_in("reference", "AggregateReference")

    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        """Mostly over windows of time, where the stream has some."""
        from penstock.operators.aggregate.example import some_groups
        from penstock.operators.window.example import some_windows

        windows = some_windows(random, below) if random.random() < 0.6 else None
        return some_groups(random, below if windows is None else windows, below.schema)


SPEC = AggregateSpec()
