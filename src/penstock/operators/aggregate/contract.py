"""What operators that hold events or groups until punctuation releases them offer: group by, distinct, order by.

The rules are those that the engine follows (`through`, `behave`).
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from penstock.contract.flow import Flow, Promised, Verdict, behind
from penstock.contract.keeping import _appearing, _assumed, _endless, _output, _waiting
from penstock.contract.report import State
from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.window.operator import Bucket
from penstock.plan.window import CountWindow, LandmarkWindow


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
