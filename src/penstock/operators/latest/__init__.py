"""Latest: of each key the row that was told last."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from penstock.operators.latest.operator import Latest
from penstock.operators.revised_aggregate import RevisedAggregateSpec
from penstock.operators.shared.answers import kept_by
from penstock.plan.spec import Retraction, Traits, given, made_in

if TYPE_CHECKING:
    from penstock.operators.revised_aggregate.operator import RevisedAggregate
    from penstock.plan.consistency import Consistency
    from penstock.plan.operator import Operator


class LatestSpec(RevisedAggregateSpec):
    """As an aggregate that is corrected, but that a group is a row: the one of its key that was told last."""

    operator = Latest

    traits = given(Traits(
        keeps_state=True, heeds_order=True, at_once=True, makes="any",
        exact=False, listens=True, queues=False, retracts=Retraction.ANSWERS,
    ))  # fmt: skip

    def reads(self, operator: RevisedAggregate, port: int, wanted: frozenset[str]) -> Collection[str]:
        return operator.inputs[port].schema.names

    def revised(self, operator: RevisedAggregate, inputs: Sequence[Operator], consistency: Consistency) -> Operator:
        from dataclasses import replace

        return replace(operator, inputs=tuple(inputs), schema=inputs[0].schema)

    step = kept_by("LatestKernel")
    reference = made_in("reference", "LatestReference")


SPEC = LatestSpec()
