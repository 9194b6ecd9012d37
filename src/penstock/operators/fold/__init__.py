"""Fold: the table as it is now, in parts that are replaced as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.operators.fold.operator import Fold
from penstock.operators.settle import HoldingSpec
from penstock.plan.spec import Traits, found_in, made_in

if TYPE_CHECKING:
    from penstock.contract.flow import Flow, Verdict
    from penstock.pattern.pattern import Pattern
    from penstock.plan.behaviour import Behaviour
    from penstock.plan.response import Response


class FoldSpec(HoldingSpec[Fold]):
    """Rows are held as long as a row of their part may change."""

    operator = Fold

    def traits(self, operator: Fold) -> Traits:
        # How often a part leaves depends on how the stream is cut; what the last of each say together does not.
        return super().traits(operator)._replace(at_once=True, exact=False)

    def held(self, operator: Fold) -> dict[str, Any] | None:
        return {"kind": operator.kind, "by": list(operator.by)}

    def behaviour(self, operator: Fold, heard: bool) -> Behaviour:
        from penstock.operators.settle.punctuation import SettlingBehaviour

        return SettlingBehaviour(operator, operator.by)

    def judge(self, operator: Fold, below: Sequence[Flow]) -> Verdict:
        from penstock.operators.fold.contract import judge_fold

        return judge_fold(operator, below[0])

    def respond(self, operator: Fold, pattern: Pattern) -> Response:
        from penstock.plan.response import Response

        return Response(inputs=(None,), send=((),), why="what is told again has to be told whole")

    step = found_in("step", "step_of")
    reference = made_in("reference", "FoldReference")


SPEC = FoldSpec()
