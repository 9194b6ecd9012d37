"""What operators that tell those upstream what they will not need offer: pace, limit, top.

The rules are those that the engine follows (`behave_pace`, `behave_top`).
"""

from __future__ import annotations

from dataclasses import replace

from penstock.contract.flow import Flow, Verdict, ordered
from penstock.contract.report import State
from penstock.operators.top.operator import Top
from penstock.plan.domain import domains_behind


def judge_top(operator: Top, below: Flow) -> Verdict:
    """In: {[[K:c, …]]} with a non-empty part K of the groups tagged, Out: the same: as an aggregate.

    What does not speak of whole groups is not passed on: events that it matches may be held and come out later. One
    group for all is complete at the end alone.
    """
    closing = below.described(operator.per)
    flow = replace(below, schema=operator.schema, promised=closing, finite=domains_behind(operator, [below.finite]))
    useful = tuple((0, name) for name in operator.per)
    rows = f"at most {operator.count:,} event{'s' * (operator.count != 1)}" + (" of each group" if operator.per else "")
    few = all(name in below.finite for name in operator.per)
    if closing:
        assumes = tuple(sorted(closing[ordered(closing)[0]]))
        why = (f"{rows}, which leave on {below.any_of(closing)}",)
        return Verdict("constant" if few else "bounded", "complete", flow, why, (), assumes, useful)
    if below.open:
        why = (f"{rows}, which leave on what the data says; scheme(…) would tell before the start what that is",)
        state: State = "constant" if few else "as the data says"
        return Verdict(state, "as the data says" if few else "complete", flow, why, useful=useful)
    names = " or ".join(f"`{n}`" for n in operator.per)
    waits = f"nothing promises {names} (there arrives: {below.words})" if names else "only the end completes one group"
    needs = below.wanted(operator.per) or ("per=… with an attribute that ends, or a window",)
    state = "constant" if few else "unbounded"
    return Verdict(state, "held back", flow, (f"{rows}, which never leave: {waits}",), needs, useful=useful)
