"""Distinct: each event once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.operators.distinct.operator import Distinct
from penstock.operators.shared.answers import kept_by, unchanged
from penstock.operators.shared.families import KeepingSpec
from penstock.plan.spec import Retraction, Traits, given, made_in, of_one

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from penstock.plan.consistency import Consistency
    from penstock.plan.operator import Operator


class DistinctSpec(KeepingSpec[Distinct]):
    """An event passes at its first appearance, and is remembered until it cannot come again."""

    operator = Distinct

    # --- the plan
    traits = given(Traits(
        keeps_state=True, heeds_order=False, at_once=False, makes="one",
        exact=True, listens=True, queues=False, retracts=Retraction.ANSWERS,
    ))  # fmt: skip

    # --- speculation
    def revised(self, operator: Distinct, inputs: Sequence[Operator], consistency: Consistency) -> Operator:
        """A result goes with the last of equal rows: it is a group that is nothing but its key."""
        from dataclasses import replace

        from penstock.operators.revised_aggregate.operator import RevisedAggregate
        from penstock.plan.weight import is_weighted, with_weight

        if not any(map(is_weighted, inputs)):
            return replace(operator, inputs=tuple(inputs))
        return RevisedAggregate(
            tuple(inputs), with_weight(operator.schema), switches=operator.switches, label=operator.label,
            keys=operator.schema.names, aggregations=(),
        )  # fmt: skip

    # --- punctuation
    behaviour = made_in("penstock.operators.shared.releasing", "ReleasingBehaviour")

    # --- contracts
    judge = of_one("contract", "judge_distinct")
    bound = of_one("contract", "bound_distinct")

    # --- feedback
    # Copies of an event match alike, so all go or none. Once its first copy is forgotten, a later one would come out
    # as new: the guard stays.
    respond = unchanged(purge=True, pinned=True)

    # --- running it
    step = kept_by("DistinctKernel")
    reference = made_in("reference", "DistinctReference")

    # --- tests
    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        return below.distinct()


SPEC = DistinctSpec()
