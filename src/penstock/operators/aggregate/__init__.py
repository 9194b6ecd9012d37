"""Aggregate: one event per group, or per group and window of time.

What is common to it and to aggregates over other windows (`count_aggregate`, `landmark_aggregate`) stands here too:
what they answer alike in `groups`, and parts of their verdicts, bounds and responses in `contract` and `feedback`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.operators.aggregate.groups import GroupsSpec
from penstock.operators.aggregate.operator import Aggregate
from penstock.plan.spec import Retraction, Traits, found_in, given, made_in, of_one

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from penstock.plan.consistency import Consistency
    from penstock.plan.operator import Operator


class AggregateSpec(GroupsSpec[Aggregate]):
    """All that is known of aggregates, without windows or over windows of time."""

    operator = Aggregate

    traits = given(Traits(
        keeps_state=True, heeds_order=False, at_once=False, makes="one",
        exact=True, listens=True, queues=False, retracts=Retraction.ANSWERS,
    ))  # fmt: skip

    def revised(self, operator: Aggregate, inputs: Sequence[Operator], consistency: Consistency) -> Operator:
        from penstock.operators.revised_aggregate.operator import RevisedAggregate
        from penstock.plan.weight import passing_weights, with_weight

        if not consistency.speculates:
            return passing_weights(operator, inputs)
        return RevisedAggregate(
            tuple(inputs), with_weight(operator.schema), switches=operator.switches, label=operator.label,
            keys=operator.keys, aggregations=operator.aggregations, window=operator.window,
        )  # fmt: skip

    judge = of_one("contract", "judge_aggregate")
    bound = of_one("contract", "bound_aggregate")
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
