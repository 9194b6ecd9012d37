"""What settling offers: every punctuation makes the rows final that it matches."""

from __future__ import annotations

from penstock.contract.flow import Flow, Verdict, behind
from penstock.contract.verdicts import appearing, assumed_of, endless_state, waiting_for
from penstock.operators.settle.operator import Settle


def judge_settle(operator: Settle, below: Flow) -> Verdict:
    """In = PS, not empty; Out = PS."""
    flow = behind(operator, below, below.promised)
    useful = tuple((0, n) for n in below.schema.times or below.schema.names if n in below.origins)
    output = appearing(below.promised, below)
    if below.promised:
        why = (f"results are final on {below.any_of(below.promised)}",)
        return Verdict("bounded", output, flow, why, (), assumed_of(below.promised), useful)
    why = (waiting_for("results that may change", below, ()),)
    needs = () if below.open else below.wanted(operator.schema.times or operator.schema.names)
    return Verdict(endless_state(below), output, flow, why, needs, useful=useful)
