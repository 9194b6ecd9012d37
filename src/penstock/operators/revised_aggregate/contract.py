"""What a revised aggregate offers: results at once, and groups that leave when they are complete."""

from __future__ import annotations

from dataclasses import replace

from penstock.contract.flow import Flow, Verdict
from penstock.contract.rates import Rates
from penstock.contract.size import Bound
from penstock.operators.aggregate.contract import bound_aggregate, judge_aggregate
from penstock.operators.revised_aggregate.operator import RevisedAggregate
from penstock.plan.spec import Measurements


def judge_revised(operator: RevisedAggregate, below: Flow) -> Verdict:
    """As an aggregate's, but that no result waits: what would wait there is told here, and corrected."""
    return replace(judge_aggregate(operator, below), output="at once")


def bound_revised(operator: RevisedAggregate, below: Rates, measured: Measurements) -> tuple[Bound, Rates]:
    """As many groups as there are that can change, each of them told as often as an epoch touches it."""
    bound, behind = bound_aggregate(operator, below, measured)
    return replace(bound, delay=0), replace(behind, rate=None)
