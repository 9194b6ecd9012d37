"""What joins of several inputs offer: the general form of joins, in which every input needs all others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.contract.flow import Flow, Verdict
from penstock.contract.rates import Rates
from penstock.contract.size import Bound
from penstock.operators.join.bound import bound_sides, pace_behind
from penstock.operators.join.contract import judge_sides
from penstock.operators.multijoin.operator import MultiJoin
from penstock.plan.spec import Measurements


def judge_multijoin(operator: MultiJoin, below: Sequence[Flow]) -> Verdict:
    """Every input needs all others: In_i = {[[J_i:c, …]]} or {[[W_i:+, …]]} for all i; results at once."""
    return judge_sides(operator, below)


def bound_multijoin(operator: MultiJoin, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
    """All inputs together; results appear at once."""
    bound, stays = bound_sides(operator, below, measured.epoch)
    return replace(bound, delay=0), pace_behind(operator, below, stays)
