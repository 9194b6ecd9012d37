"""Aggregates over windows of a number of events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.operators.aggregate.groups import GroupsSpec, by_whole_groups
from penstock.operators.count_aggregate.operator import CountAggregate
from penstock.plan.spec import Retraction, Traits, found_in, given, made_in, of_one

if TYPE_CHECKING:
    import random


class CountAggregateSpec(GroupsSpec[CountAggregate]):
    """All that is known of aggregates over windows of a number of events."""

    operator = CountAggregate

    traits = given(Traits(
        keeps_state=True, heeds_order=True, at_once=False, makes="one",
        exact=True, listens=True, queues=False, retracts=Retraction.REFUSES,
    ))  # fmt: skip

    judge = of_one("contract", "judge_counts")
    bound = of_one("contract", "bound_counts")
    respond = by_whole_groups("an event less would shift all later windows of its group")
    step = found_in("step", "step_of")
    reference = made_in("reference", "CountAggregateReference")

    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        from penstock.operators.aggregate.example import some_groups

        if below.schema.resolve("window_start") is not None:
            return None
        size = random.choice((1, 2, 3, 5))
        windows = below.window(rows=size, slide_rows=random.choice((None, 1, size + 1)))
        return some_groups(random, windows, below.schema)


SPEC = CountAggregateSpec()
