"""Revised aggregate: a result for each group at once, corrected when more comes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.operators.aggregate.groups import GroupsSpec
from penstock.operators.revised_aggregate.operator import RevisedAggregate
from penstock.plan.spec import Measurements, Retraction, Traits, found_in, made_in

if TYPE_CHECKING:
    import random

    from penstock.contract.flow import Flow, Verdict
    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound
    from penstock.pattern.pattern import Pattern
    from penstock.plan.behaviour import Behaviour
    from penstock.plan.operator import Operator
    from penstock.plan.response import Response


class RevisedAggregateSpec(GroupsSpec[RevisedAggregate]):
    """As an aggregate, but that nothing waits: what punctuation ends is what can still be corrected."""

    operator = RevisedAggregate

    def traits(self, operator: RevisedAggregate) -> Traits:
        return Traits(
            keeps_state=True, heeds_order=False, at_once=True, makes="any",
            exact=False, listens=True, queues=False, retracts=Retraction.ANSWERS,
        )  # fmt: skip

    def revised(self, operator: RevisedAggregate, inputs: Sequence[Operator]) -> Operator:
        from dataclasses import replace

        return replace(operator, inputs=tuple(inputs))

    def behaviour(self, operator: RevisedAggregate, heard: bool) -> Behaviour:
        from penstock.operators.aggregate.punctuation import ClosingBehaviour

        return ClosingBehaviour(operator, operator.keys)

    def judge(self, operator: RevisedAggregate, below: Sequence[Flow]) -> Verdict:
        from penstock.operators.revised_aggregate.contract import judge_revised

        return judge_revised(operator, below[0])

    def bound(self, operator: RevisedAggregate, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        from penstock.operators.revised_aggregate.contract import bound_revised

        return bound_revised(operator, below[0], measured.epoch)

    def total(self, operator: RevisedAggregate, below: Sequence[int | None]) -> int | None:
        return None if below[0] is None else 2 * below[0]

    def respond(self, operator: RevisedAggregate, pattern: Pattern) -> Response:
        from penstock.plan.responses import behind_only

        return behind_only(operator, "results that are corrected later are told apart behind it")

    step = found_in("step", "step_of")
    reference = made_in("reference", "RevisedAggregateReference")

    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        return None  # Nobody writes one: a query that speculates is made of one that does not.


SPEC = RevisedAggregateSpec()
