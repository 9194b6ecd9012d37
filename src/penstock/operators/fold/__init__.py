"""Fold: the table as it is now, in parts that are replaced as a whole."""

from __future__ import annotations

from typing import Any

from penstock.operators.fold.operator import Fold
from penstock.operators.settle import HoldingSpec
from penstock.operators.shared.answers import behind_only
from penstock.plan.spec import Traits, found_in, made_in, of_one


class FoldSpec(HoldingSpec[Fold]):
    """Rows are held as long as a row of their part may change."""

    operator = Fold

    def traits(self, operator: Fold) -> Traits:
        # How often a part leaves depends on how the stream is cut; what the last of each say together does not.
        return super().traits(operator)._replace(at_once=True, exact=False)

    def held(self, operator: Fold) -> dict[str, Any] | None:
        return {"kind": operator.kind, "by": list(operator.by)}

    behaviour = found_in(
        "penstock.operators.shared.releasing", "ReleasingBehaviour", lambda operator, heard: (operator, operator.by)
    )
    judge = of_one("contract", "judge_fold")
    respond = behind_only("what is told again has to be told whole")
    step = found_in("step", "step_of")
    reference = made_in("reference", "FoldReference")


SPEC = FoldSpec()
