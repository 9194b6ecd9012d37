"""Verdicts on operators that hold events or groups until punctuation releases them."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.contract.flow import Flow, Promised, ordered
from penstock.contract.report import Output, State


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
