"""What `align` offers, and how much it keeps."""

from __future__ import annotations

from dataclasses import replace

from penstock.contract import bounding
from penstock.contract.flow import Flow, Verdict, behind
from penstock.contract.rates import Rates
from penstock.contract.size import Bound, widths
from penstock.contract.verdicts import waiting_for
from penstock.operators.align.operator import Align
from penstock.plan.spec import Measurements


def judge_align(operator: Align, below: Flow) -> Verdict:
    """Any punctuation on time lets events go; all of it passes."""
    flow = behind(operator, below, below.promised)
    releasing = below.described([operator.time])
    if releasing:
        return Verdict("bounded", "complete", flow, (f"events leave on {below.any_of(releasing)}",))
    why = (waiting_for("events held back", below, (operator.time,)),)
    return Verdict("unbounded", "held back", flow, why, below.wanted((operator.time,)))


def bound_align(operator: Align, below: Rates, measured: Measurements) -> tuple[Bound, Rates]:
    """Events of as long as it blocks."""
    term = below.on([operator.time]).get(frozenset({(operator.time, "+")}))
    if term is None or term.ticks is None:
        return Bound(None, None, None, None), below
    ticks = max(0, term.ticks - operator.ahead)
    bound = bounding.least(
        below, term, below.held(ticks, measured.epoch), None, "", (), widths(operator.schema.arrow), ticks
    )
    return replace(bound, delay=ticks), below
