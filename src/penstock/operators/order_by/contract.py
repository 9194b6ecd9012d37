"""What `order_by` offers."""

from __future__ import annotations

from penstock.contract.flow import Flow, Tags, Verdict, behind, least
from penstock.contract.keeping import _assumed, _waiting
from penstock.operators.order_by.operator import OrderBy


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
