"""What `distinct` offers."""

from __future__ import annotations

from penstock.contract.flow import Flow, Verdict, behind
from penstock.contract.keeping import _assumed, _waiting
from penstock.operators.distinct.operator import Distinct


def judge_distinct(operator: Distinct, below: Flow) -> Verdict:
    """In = PS, not empty; Out = PS: any punctuation says that the events it matches cannot come again."""
    flow = behind(operator, below, below.promised)
    useful = tuple((0, n) for n in operator.schema.names)
    if all(n in below.finite for n in operator.schema.names):
        return Verdict("constant", "at once", flow, ("every attribute takes only declared values",), useful=useful)
    if below.promised:
        why = (f"events are forgotten on {below.any_of(below.promised)}",)
        return Verdict("bounded", "at once", flow, why, (), _assumed(below.promised), useful)
    if below.open:
        return Verdict("as the data says", "at once", flow, (_waiting("remembered events", below, ()),))
    needs = below.wanted(below.schema.times or below.schema.names)
    return Verdict("unbounded", "at once", flow, (_waiting("remembered events", below, ()),), needs, useful=useful)
