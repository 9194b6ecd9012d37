"""What `distinct` offers, and how much it keeps."""

from __future__ import annotations

from dataclasses import replace

from penstock.contract.bounding import least
from penstock.contract.flow import Flow, Verdict, behind
from penstock.contract.rates import Rates, soonest
from penstock.contract.size import HASH, Bound, widths
from penstock.contract.verdicts import assumed_of, waiting_for
from penstock.operators.distinct.operator import Distinct
from penstock.plan.spec import Measurements


def judge_distinct(operator: Distinct, below: Flow) -> Verdict:
    """In = PS, not empty; Out = PS: any punctuation says that the events it matches cannot come again."""
    flow = behind(operator, below, below.promised)
    # Anything releases here; time is what streams have.
    names = operator.schema.names
    useful = tuple((0, n) for n in [n for n in names if below.is_time(n) and n in below.origins] or names)
    if all(n in below.finite for n in operator.schema.names):
        return Verdict("constant", "at once", flow, ("every attribute takes only declared values",), useful=useful)
    if below.promised:
        why = (f"events are forgotten on {below.any_of(below.promised)}",)
        return Verdict("bounded", "at once", flow, why, (), assumed_of(below.promised), useful)
    if below.open:
        return Verdict("as the data says", "at once", flow, (waiting_for("remembered events", below, ()),))
    needs = below.wanted(below.schema.times or below.schema.names)
    return Verdict("unbounded", "at once", flow, (waiting_for("remembered events", below, ()),), needs, useful=useful)


def bound_distinct(operator: Distinct, below: Rates, measured: Measurements) -> tuple[Bound, Rates]:
    """Events that may come again. A file of them is rewritten when half of its time is over: twice the time is stored.

    >>> import penstock as ps
    >>> from penstock.analysis.bounds import bounds
    >>> numbers = ps.stream("n", "t int", time="t").disorder(100).expect(rate=4)
    >>> bounds(numbers.distinct().plan)["distinct-1"].rows  # 4 · 100, and what clusters
    485
    """
    passed = replace(below, unique=below.unique | {frozenset(operator.schema.names)})
    term = soonest(below.terms)
    few = below.together(operator.schema.names)
    width = widths(operator.schema.arrow, HASH)
    if term is None and few is None:
        return Bound(None, None, None, 0), passed
    by_rate = None if term is None or term.ticks is None else below.held(term.ticks, measured.epoch)
    bound = least(below, term, by_rate, few, f"{few} combinations of values", (), width, 0)
    twice = None if term is None or term.ticks is None else below.held(2 * term.ticks, measured.epoch)
    known = [n for n in (twice, few) if n is not None]
    return replace(bound, stored=min(known, default=None)), passed
