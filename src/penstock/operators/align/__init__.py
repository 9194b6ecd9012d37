"""Align: holds events back for a while, so that others can overtake them."""

from __future__ import annotations

from typing import Any

from penstock.operators.align.operator import Align
from penstock.operators.shared.answers import kept_by, unchanged
from penstock.operators.shared.families import KeepingSpec
from penstock.plan.spec import Retraction, Traits, given, made_in, of_one


class AlignSpec(KeepingSpec[Align]):
    """Where a query blocks: behind its sources."""

    operator = Align

    # --- the plan
    traits = given(Traits(
        keeps_state=True, heeds_order=False, at_once=False, makes="one",
        exact=False, listens=True, queues=False, retracts=Retraction.REFUSES,
    ))  # fmt: skip

    heeds_lifetimes = given(True)

    def definition(self, operator: Align) -> str:
        return operator.time  # The dial may be turned; what is held back stays so.

    def held(self, operator: Align) -> dict[str, Any] | None:
        return {"kind": "align", "by": operator.time}

    # --- punctuation
    behaviour = made_in("punctuation", "AlignBehaviour")

    # --- contracts
    judge = of_one("contract", "judge_align")
    bound = of_one("contract", "bound_align")

    # --- feedback
    respond = unchanged(purge=True)  # They leave as they came, sooner or later.

    # --- running it
    step = kept_by("AlignKernel")
    reference = made_in("reference", "AlignReference")

    # --- tests
    example = given(None)  # Nobody writes one: it is where a query blocks that is told to.


SPEC = AlignSpec()
