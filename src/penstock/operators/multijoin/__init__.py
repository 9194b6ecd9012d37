"""MultiJoin: several inputs on one key, at once."""

from __future__ import annotations

from penstock.operators.join.operator import lineage_of, origins_in_words
from penstock.operators.multijoin.operator import MultiJoin
from penstock.operators.shared.answers import kept_by
from penstock.operators.shared.families import KeepingSpec
from penstock.plan.spec import Lineage, Retraction, Traits, found_in, given, made_in


class MultiJoinSpec(KeepingSpec[MultiJoin]):
    """The join of two inputs, for any number of them: rows wait until all others have promised that none comes."""

    operator = MultiJoin

    # --- the plan
    traits = given(Traits(
        keeps_state=True, heeds_order=False, at_once=False, makes="any",
        exact=True, listens=True, queues=False, retracts=Retraction.REFUSES,
    ))  # fmt: skip

    def lineage(self, operator: MultiJoin) -> Lineage:
        return lineage_of(operator.columns)

    reads = found_in("penstock.operators.join.meeting", "used_by", lambda operator, port, wanted: (operator, port))

    def definition(self, operator: MultiJoin) -> str:
        return f"{operator.meaning}; {origins_in_words(operator.columns, operator.side_names)}"

    held = made_in("penstock.operators.join.meeting", "held_by")

    # --- punctuation
    behaviour = found_in("penstock.operators.join.punctuation", "JoinBehaviour")

    # --- contracts
    judge = found_in("contract", "judge_multijoin")
    bound = found_in("contract", "bound_multijoin")

    # --- feedback
    respond = found_in("penstock.operators.join.feedback", "respond_join")

    # --- running it
    step = kept_by("MultiJoinKernel")
    reference = made_in("reference", "MultiJoinReference")

    # --- tests
    example = found_in("example", "drawn")


SPEC = MultiJoinSpec()
