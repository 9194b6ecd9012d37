"""Align: holds events back for a while, so that others can overtake them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.operators.align.operator import Align
from penstock.operators.shared.families import KeepingSpec
from penstock.plan.spec import Retraction, Traits, found_in, given, made_in, of_one

if TYPE_CHECKING:
    import random

    from penstock.pattern.pattern import Pattern
    from penstock.plan.response import Response


class AlignSpec(KeepingSpec[Align]):
    """Where a query blocks: behind its sources."""

    operator = Align

    # --- the plan
    traits = given(Traits(
        keeps_state=True, heeds_order=False, at_once=False, makes="one",
        exact=False, listens=True, queues=False, retracts=Retraction.REFUSES,
    ))  # fmt: skip

    def held(self, operator: Align) -> dict[str, Any] | None:
        return {"kind": "align", "by": operator.time}

    # --- punctuation
    behaviour = made_in("punctuation", "AlignBehaviour")

    # --- contracts
    judge = of_one("contract", "judge_align")
    bound = of_one("contract", "bound_align")

    # --- feedback
    def respond(self, operator: Align, pattern: Pattern) -> Response:
        from penstock.plan.response import Response

        # They leave as they came, sooner or later.
        mine = pattern.over(operator.inputs[0].schema)
        return Response(inputs=(mine,), send=((mine,),), purge=True)

    # --- running it
    step = found_in("step", "step_of")
    reference = made_in("reference", "AlignReference")

    # --- tests
    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        return None  # Nobody writes one: it is where a query blocks that is told to.


SPEC = AlignSpec()
