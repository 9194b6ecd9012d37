"""Revised top: the best events of each group at once, corrected when others take their places."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.operators.revised_top.operator import RevisedTop
from penstock.operators.shared.answers import as_it_is, behind_only
from penstock.operators.top import TopSpec
from penstock.operators.top.operator import Top
from penstock.plan.spec import Measurements, Retraction, Told, Traits, found_in, given, made_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.contract.flow import Flow, Verdict
    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound


class RevisedTopSpec(TopSpec):
    """As a top, but that nothing waits: what punctuation ends is what can still be corrected."""

    operator = RevisedTop

    traits = given(Traits(
        keeps_state=True, heeds_order=False, at_once=True, makes="any",
        exact=False, listens=True, queues=False, retracts=Retraction.ANSWERS,
    ))  # fmt: skip

    revised = as_it_is

    def judge(self, operator: Top, below: Sequence[Flow]) -> Verdict:
        from penstock.operators.top.contract import judge_top

        return replace(judge_top(operator, below[0]), output="at once")

    def bound(self, operator: Top, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        """Of events that stay the best of each group; of those that can be taken back all, which nobody counts."""
        from penstock.contract.size import Bound
        from penstock.operators.top.contract import bound_top
        from penstock.plan.weight import is_weighted

        bound, behind = bound_top(operator, below[0], measured)
        changing = is_weighted(operator.inputs[0])
        held = Bound(None, None, None, 0) if changing else replace(bound, delay=0)
        return held, replace(behind, rate=None, unique=frozenset())

    respond = behind_only("results that are corrected later are told apart behind it")

    def issues(self, operator: Top, below: Sequence[Flow]) -> Iterable[Told]:
        return ()

    step = found_in("step", "step_of")
    reference = made_in("reference", "RevisedTopReference")
    example = given(None)  # Nobody writes one: a query that speculates is made of one that does not.


SPEC = RevisedTopSpec()
