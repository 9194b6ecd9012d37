"""What operators that tell those upstream what they will not need offer: pace, limit, top.

The rules are those that the engine follows (`behave_pace`, `behave_top`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.algebra.domain import domains_behind
from penstock.algebra.operator import Limit, Pace, Top
from penstock.contracts.flow import Flow, Tags, Verdict, least, none_null, ordered
from penstock.contracts.report import State


def judge_pace(operator: Pace, union: Verdict, below: Sequence[Flow]) -> Verdict:
    """In = {T_i}, Out = {T_1 ∧ … ∧ T_m} as of a union, and {[[on:+]]} whatever arrives: it drops what is late."""
    own: Tags = frozenset({(operator.on, "+")})
    timed = none_null((flow, operator.on) for flow in below)
    told = [] if timed is None else [(own, timed)]
    flow = replace(union.behind, promised=least([*told, *union.behind.promised.items()]))
    return Verdict("constant", "at once", flow, (f"remembers how far `{operator.on}` has got",))


def judge_limit(operator: Limit, below: Flow) -> Verdict:
    """In = PS, Out = PS: who drops events passes all templates. It counts, and says when it is over."""
    flow = replace(below, schema=operator.schema, finite=domains_behind(operator, [below.finite]), limited=True)
    return Verdict("constant", "at once", flow, ("remembers how many it has let through",))


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
