"""Bounds: how many rows and bytes each operator of a plan keeps at most, and how late its results are at most.

`check` says yes or no; with rates, lifetimes and numbers of keys declared (`expect`) or measured, this says how much.
In the terms of `pace`: A(t) is how many events have their moments in t ticks of event time, λ how long after its
moment an event is spoken of by the punctuation that releases it, K how many keys occur together.

    operator                    rows kept, the least of what is known                       results after
    window of s, one every d    K · (⌊(s + λ) / d⌋ + 1), A(s + λ) · ⌈s / d⌉                 the window's end: λ
    groups by ended keys        K, A(λ)                                                     the first event: λ
    count window of s, every d  K · (⌈s / d⌉ + 1)                                           at once
    landmark every d            K · (⌊λ / d⌋ + 3)                                           the window's end: λ
    sessions, gap of s          K · (⌊λ / s⌋ + 3), A(s + λ)                                 the session's end: λ
    distinct                    A(λ), K of all attributes                                   at once
    order_by                    A(λ); with slack n, n + 1                                   the event: λ
    impute                      an epoch, if none brings more than the budget               its turn
    join, one side              A(reach + λ of the other side's time), A(λ of its keys)     unmatched: the same time
    m-way join, one side        the same for the slowest of the others                      at once

It is what stays between epochs. An epoch under way adds what arrives in it (`epoch` rows of each source), and so does
behind a join the epoch that it needs to ask its state before it passes a promise on. What is not known is None, and
then `lacks` says what to declare; nothing is guessed, except that streams go abreast (see `pace`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from penstock.analysis.judge import weigh
from penstock.contract.rates import Arrivals, Delay, Rates, Untold
from penstock.contract.report import Report
from penstock.contract.size import Bound
from penstock.plan.operator import Operator
from penstock.plan.plan import Plan
from penstock.plan.spec import Measurements, spec_of

__all__ = ["Bound", "bounds", "with_bounds"]


def bounds(plan: Plan, rates: Mapping[str, float] | None = None, epoch: int | None = None) -> dict[str, Bound]:
    """The bound of every operator of a plan.

    `rates` are measured rates in events a second (a tick of integer time), by stream name, or by the id of an operator
    for what it gives out: the results of a join, which nobody can declare. `epoch` is how many rows of each source an
    epoch reads at most (the setting `max_rows`); without it the bounds are for what stays between epochs.

    >>> import penstock as ps
    >>> cars = ps.stream("cars", "ts timestamp, segment int", time="ts").disorder("10 s")
    >>> counts = cars.window("1 min").group_by("segment").agg(n="count(*)")
    >>> print(bounds(counts.plan)["aggregate-1"])
    rows unknown: declare cars.expect(rate=…) or cars.expect(keys={'segment': …})
    >>> expected = cars.expect(rate=1000, keys={"segment": 500}).window("1 min").group_by("segment").agg(n="count(*)")
    >>> print(bounds(expected.plan)["aggregate-1"])
    at most 1,000 rows (500 keys × 2 windows), 20 kB; results within 10 s
    """
    measured = rates or {}
    paces: dict[str, Rates] = {}
    found: dict[str, Bound] = {}
    totals: dict[str, int | None] = {}
    verdicts = weigh(plan)
    alone = len(plan.sources) == 1
    for node in plan.nodes:
        operator = node.operator
        below = [paces[i] for i in node.inputs]
        rate = _per_tick(measured.get(getattr(operator, "name", "")), operator) if not node.inputs else None
        bound, pace = spec_of(operator).bound(operator, below, Measurements(epoch, alone, rate))
        if node.inputs:
            known = measured.get(node.id)
            if known is not None:
                pace = replace(pace, rate=Arrivals.at(known / (1_000_000 if pace.clock == "us" else 1)), lacks="")
            elif pace.rate is None and not pace.lacks:
                pace = replace(pace, lacks=f"the rate of {node.id}, as in bounds(…, rates={{'{node.id}': …}})")
            # Only what gets through is of use behind.
            untold = Delay(None, Untold(f"when {node.id} passes on what it hears cannot be told"))
            pace = replace(pace, terms={t: pace.terms.get(t, untold) for t in verdicts[node.id].behind.promised})
        if verdicts[node.id].state == "unbounded":
            bound = Bound(None, None, None, None)  # However few keys there are at a time: what has been, stays.
        arriving = [totals[i] for i in node.inputs]
        totals[node.id] = spec_of(operator).total(operator, arriving)
        bound = _at_most(bound, arriving)
        paces[node.id], found[node.id] = pace, replace(bound, timed=pace.clock != "unit")
    return found


def with_bounds(
    report: Report, plan: Plan, rates: Mapping[str, float] | None = None, epoch: int | None = None
) -> Report:
    """A report of `check` whose findings also say how much; those that are unsafe or keep nothing stay as they are."""
    found = bounds(plan, rates, epoch)
    findings = []
    for finding in report.findings:
        bound = found[finding.operator]
        if finding.safe and (bound.rows != 0 or bound.delay):
            finding = replace(finding, rows=bound.rows, bytes=bound.bytes, delay=bound.late, bound=str(bound))
        findings.append(finding)
    return replace(report, findings=tuple(findings))


def _per_tick(rate: float | None, source: Operator) -> float | None:
    if rate is None:
        return None
    _, pace = spec_of(source).bound(source, (), Measurements())
    return rate / 1_000_000 if pace.clock == "us" else rate


def _at_most(bound: Bound, below: Sequence[int | None]) -> Bound:
    """The bound of an operator that can keep no more rows than come."""
    if not below or None in below or bound.rows == 0:
        return bound
    rows = sum(b for b in below if b is not None)
    if bound.rows is not None and bound.rows <= rows:
        return bound
    return replace(bound, rows=rows, stored=rows, bytes=None, lacks=(), why="a limit is below")
