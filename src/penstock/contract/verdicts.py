"""Verdicts, and parts of them, that several operators give alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.contract.flow import Flow, Promised, Verdict, behind, ordered
from penstock.contract.report import Output, State
from penstock.plan.operator import Operator


def assumed_of(promised: Promised) -> tuple[str, ...]:
    """What the best of several templates assumes."""
    best = ordered(promised)[:1]
    return tuple(sorted(promised[best[0]])) if best else ()


def waiting_for(what: str, flow: Flow, attributes: Sequence[str]) -> str:
    """`groups never leave: nothing promises `trip`; what arrives from trips: ts up to`."""
    if flow.open:
        return f"{what} leave on what the data says; scheme(…) would tell before the start what that is"
    names = " or ".join(f"`{n}`" for n in attributes) or "anything"
    where = f" from {flow.name}" if flow.name else ""
    return f"{what} never leave: nothing{where} promises {names} (what arrives: {flow.words})"


def appearing(closing: Promised, below: Flow) -> Output:
    """Whether results appear that nothing but punctuation releases."""
    return "complete" if closing else "as the data says" if below.open else "held back"


def endless_state(flow: Flow) -> State:
    return "as the data says" if flow.open else "unbounded"


def output_of(state: State) -> Output:
    return "held back" if state == "unbounded" else "complete"


def passing(operator: Operator, below: Flow) -> Verdict:
    """Select, lookup, instrument, sink: In = PS, Out = PS: who lets events pass or drops them passes all templates."""
    return Verdict("none", "at once", behind(operator, below, below.promised))


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
