"""The verdict on operators that let events pass or drop them, and keep nothing."""

from __future__ import annotations

from penstock.contract.flow import Flow, Verdict, behind
from penstock.plan.operator import Operator


def passing(operator: Operator, below: Flow) -> Verdict:
    """Select, lookup, instrument, sink: In = PS, Out = PS: who lets events pass or drops them passes all templates."""
    return Verdict("none", "at once", behind(operator, below, below.promised))
