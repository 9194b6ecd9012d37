"""Aggregates over windows of a number of events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.operators.aggregate.groups import GroupsSpec
from penstock.operators.count_aggregate.operator import CountAggregate
from penstock.plan.spec import Measurements, Retraction, Traits, found_in, made_in

if TYPE_CHECKING:
    import random

    from penstock.contract.flow import Flow, Verdict
    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound
    from penstock.plan.behaviour import Behaviour


class CountAggregateSpec(GroupsSpec[CountAggregate]):
    """All that is known of aggregates over windows of a number of events."""

    operator = CountAggregate

    def traits(self, operator: CountAggregate) -> Traits:
        return Traits(
            keeps_state=True, heeds_order=True, at_once=False, makes="one",
            exact=True, listens=True, queues=False, retracts=Retraction.REFUSES,
        )  # fmt: skip

    def behaviour(self, operator: CountAggregate, heard: bool) -> Behaviour:
        """Positions say nothing about values: a group goes on until punctuation speaks of its other keys."""
        from penstock.operators.aggregate.punctuation import ClosingBehaviour

        return ClosingBehaviour(operator, operator.keys)

    def judge(self, operator: CountAggregate, below: Sequence[Flow]) -> Verdict:
        from penstock.operators.count_aggregate.contract import judge_counts

        return judge_counts(operator, below[0])

    def bound(self, operator: CountAggregate, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        from penstock.operators.count_aggregate.contract import bound_counts

        return bound_counts(operator, below[0])

    def total(self, operator: CountAggregate, below: Sequence[int | None]) -> int | None:
        """As many windows as events at most: one begins with each of them, or fewer."""
        return below[0]

    respond = found_in("feedback", "respond_counts")
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
