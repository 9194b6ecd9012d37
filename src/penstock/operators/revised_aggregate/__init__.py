"""Revised aggregate: a result for each group at once, corrected when more comes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from penstock.operators.aggregate.groups import GroupsSpec
from penstock.operators.revised_aggregate.operator import RevisedAggregate
from penstock.operators.shared.answers import as_it_is, behind_only
from penstock.plan.spec import Retraction, Traits, found_in, given, made_in, of_one
from penstock.plan.weight import WEIGHT


class RevisedAggregateSpec(GroupsSpec[RevisedAggregate]):
    """As an aggregate, but that nothing waits: what punctuation ends is what can still be corrected."""

    operator = RevisedAggregate

    traits = given(Traits(
        keeps_state=True, heeds_order=False, at_once=True, makes="any",
        exact=False, listens=True, queues=False, retracts=Retraction.ANSWERS,
    ))  # fmt: skip

    def reads(self, operator: RevisedAggregate, port: int, wanted: frozenset[str]) -> Collection[str]:
        return {*super().reads(operator, port, wanted), *((WEIGHT,) if operator.of_changes else ())}

    revised = as_it_is
    judge = of_one("contract", "judge_revised")
    bound = of_one("contract", "bound_revised")

    def total(self, operator: RevisedAggregate, below: Sequence[int | None]) -> int | None:
        return None if below[0] is None else 2 * below[0]

    respond = behind_only("results that are corrected later are told apart behind it")
    step = found_in("step", "step_of")
    reference = made_in("reference", "RevisedAggregateReference")
    example = given(None)  # Nobody writes one: a query that speculates is made of one that does not.


SPEC = RevisedAggregateSpec()
