"""What a limit below changes about a verdict."""

from __future__ import annotations

from dataclasses import replace

from penstock.contract.flow import Verdict


def limited(verdict: Verdict) -> Verdict:
    """The verdict on an operator to which only so many events come: its state is bounded by that.

    What it holds back comes out when the limit is reached, if so many events come at all.
    """
    flow = replace(verdict.behind, limited=True)
    if verdict.safe:
        return replace(verdict, behind=flow)
    why = "only so many events come: a limit is below"
    if verdict.output != "held back":
        return Verdict("constant", verdict.output, flow, (why,), useful=verdict.useful)
    assumed = "as many events come as the limit lets through"
    return Verdict("constant", "complete", flow, (f"{why}, behind which all leave",), (), (assumed,), verdict.useful)
