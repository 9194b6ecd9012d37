"""What operators that hold events or groups until punctuation releases them offer: group by, distinct, order by.

The rules are those that the engine follows (`through`, `behave`).
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from penstock.algebra.operator import Aggregate, Bucket, Distinct, OrderBy
from penstock.algebra.window import CountWindow, LandmarkWindow
from penstock.contracts.flow import Flow, Promised, Tags, Verdict, behind, least, ordered
from penstock.contracts.report import Output, State


def judge_aggregate(operator: Aggregate, below: Flow) -> Verdict:
    """In: {[[K:c, …]]} with a non-empty part K of the grouping attributes tagged, whatever c; Out: the same.

    So punctuation on part of a grouping key closes all groups it matches. Without a grouping attribute there is one
    group, which only the end closes. Groups that are finitely many need no release, but their results wait for one.
    """
    window = _counted(operator)
    keys = [k for k in operator.keys if window is None or k != window.label]
    label = window.label if isinstance(window, LandmarkWindow) else None
    # The totals of a landmark window go on for a key even when no event of it can come: only time closes anything.
    closing = below.described(keys if label is None else [label])
    if label is not None:
        closing = {t: a for t, a in closing.items() if t == {(label, "+")}}
    origins = {k: below.origins[k] for k in operator.keys if k in below.origins}
    flow = behind(operator, below, closing, origins)
    few = all(k in below.finite for k in keys)
    useful = tuple((0, k) for k in ([label] if label is not None else keys))
    groups = "groups" if window is None else "windows" if label is not None else "counts of a group"
    growing = _growing(operator)
    on = below.any_of(closing)
    assumes = _assumed(closing)
    if isinstance(window, LandmarkWindow):
        return _landmark(below, closing, flow, keys, useful, growing)
    if window is not None and few:
        said = "each window leaves when it is full; " + ("one count" if not keys else "a count for each declared value")
        return Verdict("constant", "at once", flow, (f"{said} stays",), useful=useful)
    if few:
        size = f"only declared values of {' and '.join(f'`{k}`' for k in keys)}" if keys else "one group"
        told = (
            _waiting("results", below, keys) if keys or below.open else "which nothing but the end of the stream closes"
        )
        why = (size, f"results: on {on}" if closing else told, *growing)
        done = _appearing(closing, below)
        needs = () if done != "held back" else below.wanted(keys) or ("a window, or a grouping attribute that ends",)
        few_state: State = "constant" if not growing else "bounded" if closing else _endless(below)
        return Verdict(few_state, done, flow, why, needs, assumes, useful)
    if closing:
        return Verdict("bounded", "complete", flow, (f"{groups} leave on {on}",), (), assumes, useful)
    state = _endless(below)
    waits = (_waiting(groups, below, keys),)
    return Verdict(state, _output(state), flow, waits, () if below.open else below.wanted(keys), useful=useful)


def _landmark(
    below: Flow,
    closing: Promised,
    flow: Flow,
    keys: Sequence[str],
    useful: tuple[tuple[int, str], ...],
    growing: tuple[str, ...],
) -> Verdict:
    """Results come as time goes on, but the totals of each key stay for ever: they must be few and not grow."""
    endless = [k for k in keys if k not in below.finite]
    results = f"windows: on {below.any_of(closing)}" if closing else _waiting("windows", below, [n for _, n in useful])
    why = [results]
    needs = () if closing or below.open else below.wanted(n for _, n in useful)
    if endless:
        names = " and ".join(f"`{k}`" for k in endless)
        stay = "a landmark window never lets go of a key, and each window has ever more results"
        why.insert(0, f"totals of each {names} stay for ever: {stay}")
        needs = (*needs, f'declare all values of {names}: ps.Punctuate.values("{endless[0]}", […])')
    if growing:
        why += growing
        needs = (*needs, "a window that ends")
    if endless or growing:
        return Verdict("unbounded", _appearing(closing, below), flow, tuple(why), needs, useful=useful)
    if closing:
        return Verdict("bounded", "complete", flow, tuple(why), (), _assumed(closing), useful)
    state = _endless(below)
    return Verdict(state, _output(state), flow, tuple(why), needs, useful=useful)


def _growing(operator: Aggregate) -> tuple[str, ...]:
    """Aggregates whose state for one group grows with its events: `count(distinct x)` keeps every x."""
    kept = [a for a in operator.aggregations if any(pa.types.is_list(p.type) for p in a.partials)]
    return tuple(f"`{a.text}` keeps every value until its group leaves" for a in kept)


def _counted(operator: Aggregate) -> CountWindow | LandmarkWindow | None:
    below = operator.inputs[0]
    window = below.window if isinstance(below, Bucket) else None
    return window if isinstance(window, CountWindow | LandmarkWindow) else None


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


def judge_order(operator: OrderBy, below: Flow) -> Verdict:
    """In: {[[A:+, X:-]]} for the first sort attribute A, ascending; Out: the same: a sorted prefix is complete.

    A finite A may end value by value instead, in either direction. With slack n the state is n + 1 events, and nothing
    is promised but the end.
    """
    if operator.slack is not None:
        why = (f"the first of {operator.slack + 1:,} events leaves when another arrives",)
        return Verdict("constant", "at once", behind(operator, below, {}), why)
    first, descending = operator.by[0]
    useful = ((0, first),)
    ready: list[tuple[Tags, frozenset[str]]] = []
    for tags, assumed in below.described([first]).items():
        ((_, how),) = tags
        if how == "+" and not descending:
            ready.append((tags, assumed))
        elif how == "#" and first in below.finite:
            told = f"punctuation comes for every declared value of `{first}`"
            ready.append((tags, assumed | {told}))
    releasing = least(ready)
    # A prefix is "up to"; descending it would be "from", for which there is no class.
    passed = {} if descending else least((frozenset({(first, "+")}), a) for a in releasing.values())
    flow = behind(operator, below, passed)
    if releasing:
        why = (f"a sorted prefix leaves on {below.any_of(releasing)}",)
        return Verdict("bounded", "complete", flow, why, (), _assumed(releasing), useful)
    if below.open:
        why = (_waiting("sorted events", below, [first]),)
        return Verdict("as the data says", "complete", flow, why, useful=useful)
    if descending:
        why = (f"sorted by `{first}` descending, the first event is known only at the end",)
        needs: tuple[str, ...] = ("order_by(…) ascending, or with slack=",)
    else:
        why = (_waiting("sorted events", below, [first]),)
        needs = tuple(w.replace(": each value", " up to") for w in below.wanted([first]))
    return Verdict("unbounded", "held back", flow, why, needs, useful=useful)


def _assumed(promised: Promised) -> tuple[str, ...]:
    """What the best of several templates assumes."""
    best = ordered(promised)[:1]
    return tuple(sorted(promised[best[0]])) if best else ()


def _waiting(what: str, flow: Flow, attributes: Sequence[str]) -> str:
    """`groups never leave: nothing promises `trip`; what arrives from trips: ts up to`."""
    if flow.open:
        return f"{what} leave on what the data says; scheme(…) would tell before the start what that is"
    names = " or ".join(f"`{n}`" for n in attributes) or "anything"
    where = f" from {flow.name}" if flow.name else ""
    return f"{what} never leave: nothing{where} promises {names} (there arrives: {flow.words})"


def _appearing(closing: Promised, below: Flow) -> Output:
    """Whether results appear that nothing but punctuation releases."""
    return "complete" if closing else "as the data says" if below.open else "held back"


def _endless(flow: Flow) -> State:
    return "as the data says" if flow.open else "unbounded"


def _output(state: State) -> Output:
    return "held back" if state == "unbounded" else "complete"
