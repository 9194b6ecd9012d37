"""What `order_by` offers, and how much it keeps."""

from __future__ import annotations

import math
from dataclasses import replace

from penstock.contract import bounding
from penstock.contract.flow import Flow, Tags, Verdict, behind, least
from penstock.contract.rates import Rates
from penstock.contract.size import HASH, Bound, widths
from penstock.contract.verdicts import assumed_of, waiting_for
from penstock.operators.order_by.operator import OrderBy
from penstock.plan.spec import Measurements


def judge_order(operator: OrderBy, below: Flow) -> Verdict:
    """In: {[[A:+, X:-]]} for the first sort attribute A, ascending; Out: the same: a sorted prefix is complete.

    A finite A may end value by value instead, in either direction. With slack n the state is n + 1 events, and nothing
    is promised but the end.
    """
    if operator.slack is not None:
        why = (f"the first of {operator.slack + 1:,} events leaves when another arrives",)
        return Verdict("constant", "at once", replace(behind(operator, below, {}), asides=frozenset()), why)
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
    flow = replace(behind(operator, below, passed), asides=frozenset())
    if releasing:
        why = (f"a sorted prefix leaves on {below.any_of(releasing)}",)
        return Verdict("bounded", "complete", flow, why, (), assumed_of(releasing), useful)
    if below.open:
        why = (waiting_for("sorted events", below, [first]),)
        return Verdict("as the data says", "complete", flow, why, useful=useful)
    if descending:
        why = (f"sorted by `{first}` descending, the first event is known only at the end",)
        needs: tuple[str, ...] = ("order_by(…) ascending, or with slack=",)
    else:
        why = (waiting_for("sorted events", below, [first]),)
        needs = tuple(w.replace(": each value", " up to") for w in below.wanted([first]))
    return Verdict("unbounded", "held back", flow, why, needs, useful=useful)


def bound_order(operator: OrderBy, below: Rates, measured: Measurements) -> tuple[Bound, Rates]:
    """Events that an earlier one may still precede.

    >>> import penstock as ps
    >>> from penstock.analysis.bounds import bounds
    >>> numbers = ps.stream("n", "t int", time="t").disorder(100).expect(rate=4)
    >>> [bounds(query.plan)["orderby-1"].rows for query in (numbers.order_by("t"), numbers.order_by("t", slack=9))]
    [485, 10]
    """
    width = widths(operator.schema.arrow, HASH)
    if operator.slack is not None:
        few = operator.slack + 1
        late = None if below.rate is None or not below.rate.rate else math.ceil(few / below.rate.rate)
        return bounding.sized(few, width, late, (), "the slack"), below
    first, descending = operator.by[0]
    term = below.on([first]).get(frozenset({(first, "+")}))
    if term is None or descending:
        return Bound(None, None, None, None), below
    by_rate = None if term.ticks is None else below.held(term.ticks, measured.epoch)
    return bounding.least(below, term, by_rate, None, "", (), width, term.ticks), below
