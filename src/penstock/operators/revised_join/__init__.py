"""Revised join: results at once, taken back when a partner comes or goes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.operators.join import JoinSpec
from penstock.operators.join.operator import Join
from penstock.operators.revised_join.operator import RevisedJoin
from penstock.operators.shared.answers import as_it_is, behind_only
from penstock.plan.spec import Measurements, Retraction, Told, Traits, found_in, given, made_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from penstock.contract.flow import Flow, Verdict
    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound


class RevisedJoinSpec(JoinSpec):
    """As a join, but that nothing waits: rows are kept until the other side has promised that nothing changes."""

    operator = RevisedJoin

    # --- the plan
    traits = given(Traits(
        keeps_state=True, heeds_order=False, at_once=True, makes="any",
        exact=False, listens=True, queues=False, retracts=Retraction.ANSWERS,
    ))  # fmt: skip

    def reads(self, operator: Join, port: int, wanted: frozenset[str]) -> Collection[str]:
        from penstock.plan.weight import WEIGHT, is_weighted

        return {*super().reads(operator, port, wanted), *((WEIGHT,) if is_weighted(operator.inputs[port]) else ())}

    # --- speculation
    revised = as_it_is

    # --- contracts
    def judge(self, operator: Join, below: Sequence[Flow]) -> Verdict:
        from penstock.operators.join.contract import judge_join

        return replace(judge_join(operator, below), output="at once")

    def bound(self, operator: Join, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        from penstock.operators.join.bound import bound_join

        bound, behind = bound_join(operator, below, measured)
        return replace(bound, delay=0), replace(behind, rate=None, unique=frozenset())

    # --- feedback
    respond = behind_only("results that are corrected later are told apart behind it")

    def issues(self, operator: Join, below: Sequence[Flow]) -> Iterable[Told]:
        return ()

    # --- running it
    step = found_in("step", "step_of")
    reference = made_in("reference", "RevisedJoinReference")

    # --- tests
    example = given(None)  # Nobody writes one: a query that speculates is made of one that does not.


SPEC = RevisedJoinSpec()
