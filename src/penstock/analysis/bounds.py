"""Bounds: how many rows and bytes each operator of a plan keeps at most, and how late its results are at most.

`check` says yes or no; with rates, lifetimes and numbers of keys declared (`expect`) or measured, this says how much.
In the terms of `pace`: A(t) is how many events have their moments in t ticks of event time, λ how long after its
moment an event is spoken of by the punctuation that releases it, K how many keys occur together.

    operator                    rows kept, the least of what is known                       results after
    window of s, one every d    K · (⌊(s + λ) / d⌋ + 1), A(s + λ) · ⌈s / d⌉                 the window's end: λ
    groups by ended keys        K, A(λ)                                                     the first event: λ
    count window of s, every d  K · (⌈s / d⌉ + 1)                                           at once
    landmark every d            K · (⌊λ / d⌋ + 3)                                           the window's end: λ
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

import math
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from penstock.analysis.judge import weigh
from penstock.analysis.rates_behind import pace_behind
from penstock.analysis.total import at_most, total_behind
from penstock.contract.bounding import PARTS, least, owner, renamed, sized, times, why
from penstock.contract.flow import Tags
from penstock.contract.rates import DAY, Arrivals, Pace, Term, Untold, soonest
from penstock.contract.report import Report
from penstock.contract.size import HASH, Bound, widths
from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.distinct.contract import bound_distinct
from penstock.operators.distinct.operator import Distinct
from penstock.operators.impute.contract import bound_impute
from penstock.operators.impute.operator import Impute
from penstock.operators.instrument.operator import Instrument
from penstock.operators.join.bound import bound_join, bound_multijoin, bound_rows_join
from penstock.operators.join.operator import Join
from penstock.operators.limit.operator import Limit
from penstock.operators.lookup.operator import TableJoin
from penstock.operators.map.operator import Map
from penstock.operators.multijoin.operator import MultiJoin
from penstock.operators.order_by.contract import bound_order
from penstock.operators.order_by.operator import OrderBy
from penstock.operators.pace.operator import Pace as Pacing
from penstock.operators.project.operator import Project
from penstock.operators.select.operator import Select
from penstock.operators.sink.operator import Sink
from penstock.operators.source.operator import Source
from penstock.operators.source.rates import pace_of
from penstock.operators.top.contract import bound_top
from penstock.operators.top.operator import Top
from penstock.operators.union.operator import Union
from penstock.operators.window.operator import Bucket
from penstock.plan.operator import unknown
from penstock.plan.plan import Plan
from penstock.plan.window import CountWindow, LandmarkWindow, TimeWindow
from penstock.sql.aggregation import decompose

__all__ = ["Bound", "bounds", "with_bounds"]


def bounds(plan: Plan, rates: Mapping[str, float] | None = None, epoch: int | None = None) -> dict[str, Bound]:
    """The bound of every operator of a plan.

    `rates` are measured rates in events a second (a tick of integer time), by stream name, or by the id of an operator
    for what it gives out: the results of a join, which nobody can declare. `epoch` is how many rows of each source an
    epoch reads at most (the setting `max_rows`); without it the bounds are for what stays between epochs.

    >>> from penstock.builder.stream import Stream
    >>> from penstock.pattern.schema import Schema
    >>> cars = Stream(Source((), Schema.parse("ts timestamp, segment int", "ts"), name="cars")).disorder("10 s")
    >>> counts = cars.window("1 min").group_by("segment").agg(n="count(*)")
    >>> print(bounds(counts.plan)["aggregate-1"])
    rows unknown: declare cars.expect(rate=…) or cars.expect(keys={'segment': …})
    >>> expected = cars.expect(rate=1000, keys={"segment": 500}).window("1 min").group_by("segment").agg(n="count(*)")
    >>> print(bounds(expected.plan)["aggregate-1"])
    at most 1,000 rows (500 keys × 2 windows), 20 kB; results within 10 s
    """
    measured = rates or {}
    paces: dict[str, Pace] = {}
    found: dict[str, Bound] = {}
    totals: dict[str, int | None] = {}
    verdicts = weigh(plan)
    alone = len(plan.sources) == 1
    for node in plan.nodes:
        operator = node.operator
        below = [paces[i] for i in node.inputs]
        match operator:
            case Source():
                per_tick = _per_tick(measured.get(operator.name), operator)
                bound, pace = Bound(), pace_of(operator, alone, per_tick)
            case Aggregate():
                bound, pace = _aggregate(operator, below[0], epoch)
            case Impute():
                bound, pace = bound_impute(operator, below[0], epoch)
            case Distinct():
                bound, pace = bound_distinct(operator, below[0], epoch)
            case OrderBy():
                bound, pace = bound_order(operator, below[0], epoch)
            case Top():
                bound, pace = bound_top(operator, below[0], epoch)
            case Limit():
                bound, pace = sized(1, HASH, 0, (), "a count"), below[0]
            case Join() if operator.rows is not None:
                bound, pace = bound_rows_join(operator, below, epoch)
            case Join():
                bound, pace = bound_join(operator, below, epoch)
            case MultiJoin():
                bound, pace = bound_multijoin(operator, below, epoch)
            case Select() | Project() | Map() | TableJoin() | Union() | Pacing() | Instrument() | Bucket() | Sink():
                bound, pace = Bound(), pace_behind(operator, below)
            case _:
                raise unknown(operator, "how many rows it keeps")
        if node.inputs:
            known = measured.get(node.id)
            if known is not None:
                pace = replace(pace, rate=Arrivals.at(known / (1_000_000 if pace.clock == "us" else 1)), lacks="")
            elif pace.rate is None and not pace.lacks:
                pace = replace(pace, lacks=f"the rate of {node.id}, as in bounds(…, rates={{'{node.id}': …}})")
            # Only what gets through is of use behind.
            untold = Term(None, Untold(f"when {node.id} passes on what it hears cannot be told"))
            pace = replace(pace, terms={t: pace.terms.get(t, untold) for t in verdicts[node.id].behind.promised})
        if verdicts[node.id].state == "unbounded":
            bound = Bound(None, None, None, None)  # However few keys there are at a time: what has been, stays.
        arriving = [totals[i] for i in node.inputs]
        totals[node.id] = total_behind(operator, arriving)
        bound = at_most(bound, operator, arriving)
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


def _per_tick(rate: float | None, source: Source) -> float | None:
    if rate is None:
        return None
    clock = pace_of(source, True).clock
    return rate / 1_000_000 if clock == "us" else rate


# --- with state -------------------------------------------------------------------------------------------------------


def _aggregate(operator: Aggregate, below: Pace, epoch: int | None) -> tuple[Bound, Pace]:
    bucket = operator.inputs[0]
    window = bucket.window if isinstance(bucket, Bucket) and bucket.window.label in operator.keys else None
    keys = [k for k in operator.keys if window is None or k != window.label]
    behind = renamed(below, operator, {k: (k,) for k in operator.keys})
    behind = replace(behind, unique=behind.unique | {frozenset(operator.keys)}, moment=frozenset())
    width = _width(operator)
    together = below.together(keys)
    many = "" if not keys else f"{together:,} keys" if together is not None else "? keys"
    missing = tuple(f"{owner(below)}.expect(keys={{'{k}': …}})" for k in keys if below.together([k]) is None)
    if isinstance(window, CountWindow):
        parts = math.ceil(window.size / window.slide) + 1
        return sized(times(together, parts), width, 0, missing, why(many, f"{parts} rows")), behind
    if isinstance(window, LandmarkWindow):
        step = DAY if window.unit == "day" else 1
        term = soonest(below.on([window.label]))
        late = None if term is None or term.ticks is None else max(0, term.ticks - window.every * step)
        parts = 0 if late is None else late // (window.every * step) + 3
        rows = None if late is None else times(together, parts)
        lacks = missing if term is None or term.ticks is not None else (*missing, term.lacks)
        return sized(rows, width, late, lacks, why(many, f"{parts} periods")), behind
    closing = below.on(operator.keys)
    term = soonest(closing)
    if isinstance(window, TimeWindow):
        return _windowed(operator, window, below, behind, closing, epoch, width)
    if not keys or (term is None and together is not None and all(k in below.finite for k in keys)):
        few = 1 if together is None else together
        delay = None if term is None else term.ticks
        return replace(sized(few, width, delay, (), many or "one group"), stored=few * PARTS), behind
    if term is None:
        return Bound(None, None, None, None), behind
    by_rate = None if term.ticks is None else below.held(term.ticks, epoch)
    return least(below, term, by_rate, together, many, missing, width, term.ticks), behind


def _windowed(
    operator: Aggregate,
    window: TimeWindow,
    below: Pace,
    behind: Pace,
    closing: Mapping[Tags, Term],
    epoch: int | None,
    width: int | None,
) -> tuple[Bound, Pace]:
    """Groups of windows: those whose window is not over yet, for each key, or at most one for each event in them.

    >>> from penstock.builder.stream import Stream
    >>> from penstock.pattern.schema import Schema
    >>> numbers = Stream(Source((), Schema.parse("t int, k int", "t"), name="n")).disorder(5)
    >>> query = numbers.expect(rate=2, keys={"k": 10}).window(60, slide=20).group_by("k").agg(n="count(*)")
    >>> bounds(query.plan)["aggregate-1"].rows
    40
    """
    step = DAY if window.unit == "day" else 1
    size, slide = window.size * step, window.slide * step
    keys = [k for k in operator.keys if k != window.label]
    missing = tuple(f"{owner(below)}.expect(keys={{'{k}': …}})" for k in keys if below.together([k]) is None)
    together = below.together(keys)
    term = soonest(closing)
    if term is None or term.ticks is None:
        lacks = () if term is None else (term.lacks,)
        return Bound(None, None, None, None, lacks=lacks), behind
    by_label = any(t.ticks == term.ticks and (window.label, "+") in tags for tags, t in closing.items())
    windows = (term.ticks + (0 if by_label else size)) // slide + 1
    groups = times(together, windows)
    many = why(f"{together:,} keys" if keys and together is not None else "", f"{windows:,} windows")
    delay = max(0, term.ticks - size) if by_label else term.ticks
    bound = least(below, term, below.held(term.ticks, epoch), groups, many, missing, width, delay)
    # A result stands for its window: as many a slide as there are keys, or events in a window.
    fan = math.ceil(window.size / window.slide)
    rate = None
    if together is not None:
        rate = Arrivals(together / slide, together)
    elif below.rate is not None:
        each = below.rate.times(1 / fan).within(size)
        rate = Arrivals(each / slide, each)
    terms = {t: v if (window.label, "+") in t else v.later(size) for t, v in behind.terms.items()}
    only = all((window.label, "+") in tags for tags in closing)
    return bound, replace(
        behind, rate=rate, terms=terms, moment=frozenset({window.label}), after=size if only else 0, fan=below.fan
    )


def _width(operator: Aggregate) -> int | None:
    """Keys and partials of a group; a sum of floating numbers is kept in three parts."""
    keys = [operator.schema.type_of(k) for k in operator.keys]
    partials = [
        pa.decimal128(38, 0) if p.is_float_sum else p.type
        for p in decompose(operator.aggregations).partials
        for _ in range(3 if p.is_float_sum else 1)
    ]
    return widths(pa.schema([(str(i), t) for i, t in enumerate([*keys, *partials])]))
