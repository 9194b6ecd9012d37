"""What `top` offers, and how much it keeps."""

from __future__ import annotations

from dataclasses import replace

from penstock.contract import bounding
from penstock.contract.bounding import owner, times
from penstock.contract.flow import Flow, Verdict, ordered
from penstock.contract.rates import DAY, Rates, soonest
from penstock.contract.report import State
from penstock.contract.size import HASH, Bound, widths
from penstock.errors import counted
from penstock.operators.top.operator import Top, window_label
from penstock.plan.domain import domains_behind
from penstock.plan.spec import Measurements


def judge_top(operator: Top, below: Flow) -> Verdict:
    """In: {[[K:c, …]]} with a non-empty part K of the groups tagged, Out: the same: as an aggregate.

    What does not speak of whole groups is not passed on: events that it matches may be held and come out later. One
    group for all is complete at the end alone.
    """
    closing = below.described(operator.per)
    flow = replace(
        below,
        schema=operator.schema,
        promised=closing,
        finite=domains_behind(operator, [below.finite]),
        asides=frozenset(a for a in below.asides if set(a.names) <= set(operator.per)),
    )
    useful = tuple((0, name) for name in operator.per)
    rows = f"at most {counted(operator.count, 'event')}" + (" of each group" if operator.per else "")
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
    waits = f"nothing promises {names} (what arrives: {below.words})" if names else "only the end completes one group"
    needs = below.wanted(operator.per) or ("per=… with an attribute that ends, or a window",)
    state = "constant" if few else "unbounded"
    return Verdict(state, "held back", flow, (f"{rows}, which never leave: {waits}",), needs, useful=useful)


def bound_top(operator: Top, below: Rates, measured: Measurements) -> tuple[Bound, Rates]:
    """The best events of each group that is not complete, and never more than all events of these.

    >>> import penstock as ps
    >>> from penstock.analysis.bounds import bounds
    >>> numbers = ps.stream("n", "t int, k int", time="t").disorder(5).expect(keys={"k": 10})
    >>> windows = numbers.window(60)
    >>> [bounds(windows.top(3, by="t", per=per).plan)["top-1"].rows for per in ("k", ())]  # Two windows at a time.
    [60, 6]
    """
    label = window_label(operator)
    keys = [k for k in operator.per if label is None or k != label.name]
    term = soonest(closing := below.on(operator.per))
    ticks = None if term is None else term.ticks
    width = widths(operator.schema.arrow, HASH)
    parts = [counted(operator.count, "event")]
    groups = below.together(keys)
    if keys:
        parts.insert(0, counted(groups, "key") if groups is not None else "? keys")
    if label is not None:
        if ticks is None:
            return Bound(None, None, None, None, lacks=() if term is None else (term.lacks,)), below
        window = label.window
        step = DAY if window.unit == "day" else 1
        by_label = any(t.ticks == ticks and (label.name, "+") in tags for tags, t in closing.items())
        windows = (ticks + (0 if by_label else window.size * step)) // (window.slide * step) + 1
        parts.insert(len(parts) - 1, counted(windows, "window"))
        groups = times(groups, windows)
    elif term is None and keys and not all(k in below.finite for k in keys):
        return Bound(None, None, None, None), below
    by_rate = None if ticks is None else below.held(ticks, measured.epoch)
    missing = tuple(f"{owner(below)}.expect(keys={{'{k}': …}})" for k in keys if below.together([k]) is None)
    rows, many = times(groups, operator.count), bounding.why(*parts)
    return bounding.least(below, term, by_rate, rows, many, missing, width, ticks), below
