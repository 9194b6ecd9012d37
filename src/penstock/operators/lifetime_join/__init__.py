"""Lifetime join: two rows that match, for as long as both hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.operators.lifetime_join.operator import LifetimeJoin
from penstock.operators.shared.answers import behind_only, kept_by
from penstock.operators.shared.families import KeepingSpec
from penstock.pattern.schema import SYNC
from penstock.plan.spec import Carried, Lineage, Retraction, Traits, found_in, given, made_in
from penstock.plan.weight import passing_weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.plan.consistency import Consistency
    from penstock.plan.operator import Operator


class LifetimeJoinSpec(KeepingSpec[LifetimeJoin]):
    """It tells pairs at once, corrects them, and forgets what has ended."""

    operator = LifetimeJoin

    # --- the plan
    traits = given(Traits(
        keeps_state=True, heeds_order=False, at_once=True, makes="any",
        exact=False, listens=True, queues=False, retracts=Retraction.ANSWERS,
    ))  # fmt: skip
    heeds_lifetimes = given(True)

    def lineage(self, operator: LifetimeJoin) -> Lineage:
        return {c.name: Carried(c.origins) for c in operator.columns if c.name != SYNC}

    def held(self, operator: LifetimeJoin) -> dict[str, Any] | None:
        return {"kind": operator.kind, "keys": [list(pair) for pair in operator.keys]}

    # --- speculation
    def revised(self, operator: LifetimeJoin, inputs: Sequence[Operator], consistency: Consistency) -> Operator:
        return passing_weights(operator, inputs)

    # --- punctuation
    behaviour = made_in("punctuation", "LifetimeJoinBehaviour")

    # --- contracts
    judge = found_in("contract", "judge_lifetime_join")
    bound = found_in("contract", "bound_lifetime_join")

    # --- feedback
    respond = behind_only("results that are corrected later are told apart behind it")

    # --- running it
    step = kept_by("LifetimeJoinKernel")
    reference = made_in("reference", "LifetimeJoinReference")

    # --- tests
    example = given(None)  # It stands on streams with lifetimes alone, which random plans have none of.


SPEC = LifetimeJoinSpec()
