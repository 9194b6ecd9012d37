"""What aggregates offer: when groups leave, and how many there are at a time.

The rules are those that the engine follows. What several kinds of aggregates need of them is public here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from penstock.contract.bounding import PARTS, least, owner, renamed, sized, times, why
from penstock.contract.flow import Flow, Promised, Tags, Verdict, behind
from penstock.contract.rates import Arrivals, Delay, Rates, soonest
from penstock.contract.report import State
from penstock.contract.size import Bound, widths
from penstock.contract.verdicts import appearing, assumed_of, endless_state, output_of, waiting_for
from penstock.errors import counted
from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.window.contract import clock_ticks
from penstock.plan.spec import Measurements
from penstock.plan.window import TimeWindow
from penstock.sql.aggregation import decompose

# --- is it bounded, do results appear ---------------------------------------------------------------------------------


def judge_aggregate(operator: Aggregate, below: Flow) -> Verdict:
    """In: {[[K:c, …]]} with a non-empty part K of the grouping attributes tagged, whatever c; Out: the same.

    So punctuation on part of a grouping key closes all groups it matches. Without a grouping attribute there is one
    group, which only the end closes. Groups that are finitely many need no release, but their results wait for one.
    """
    keys = operator.keys
    closing = below.described(keys)
    flow = flow_of_groups(operator, below, closing)
    if not all(k in below.finite for k in keys):
        return judge_leaving("groups", keys, below, closing, flow)
    growing = growing_with_events(operator)
    size = f"only declared values of {' and '.join(f'`{k}`' for k in keys)}" if keys else "one group"
    told = (
        waiting_for("results", below, keys) if keys or below.open else "which nothing but the end of the stream closes"
    )
    said = (size, f"results: on {below.any_of(closing)}" if closing else told, *growing)
    done = appearing(closing, below)
    needs = () if done != "held back" else below.wanted(keys) or ("a window, or a grouping attribute that ends",)
    state: State = "constant" if not growing else "bounded" if closing else endless_state(below)
    return Verdict(state, done, flow, said, needs, assumed_of(closing), on_attributes(keys))


def judge_leaving(what: str, keys: Sequence[str], below: Flow, closing: Promised, flow: Flow) -> Verdict:
    """The verdict on groups that may be ever so many: each has to leave."""
    useful = on_attributes(keys)
    if closing:
        leave = f"{what} leave on {below.any_of(closing)}"
        return Verdict("bounded", "complete", flow, (leave,), (), assumed_of(closing), useful)
    state = endless_state(below)
    waits = (waiting_for(what, below, keys),)
    return Verdict(state, output_of(state), flow, waits, () if below.open else below.wanted(keys), useful=useful)


def flow_of_groups(operator: Aggregate, below: Flow, closing: Promised) -> Flow:
    """What is known behind an aggregate that passes these templates on."""
    return behind(operator, below, closing, {k: below.origins[k] for k in operator.keys if k in below.origins})


def on_attributes(names: Sequence[str]) -> tuple[tuple[int, str], ...]:
    """Attributes of the one input on which punctuation could help."""
    return tuple((0, n) for n in names)


def growing_with_events(operator: Aggregate) -> tuple[str, ...]:
    """Aggregates whose state for one group grows with its events: `count(distinct x)` keeps every x."""
    kept = [a for a in operator.aggregations if any(pa.types.is_list(p.type) for p in a.partials)]
    return tuple(f"`{a.text}` keeps every value until its group leaves" for a in kept)


# --- how much ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Groups:
    """How many groups there are at a time, by their keys; the label of a window is none of them.

    `together` is None if that is not known, and then `missing` says what to declare. `many` says it in words. `width`
    are the bytes of a group, `behind` is how fast results go.
    """

    keys: tuple[str, ...]
    together: int | None
    many: str
    missing: tuple[str, ...]
    width: int | None
    behind: Rates


def groups_of(operator: Aggregate, below: Rates) -> Groups:
    """What the keys of an aggregate tell, of whatever kind it is."""
    keys = operator.without_label
    together = below.together(keys)
    many = "" if not keys else counted(together, "key") if together is not None else "? keys"
    missing = tuple(f"{owner(below)}.expect(keys={{'{k}': …}})" for k in keys if below.together([k]) is None)
    known = renamed(below, operator, {k: (k,) for k in operator.keys})
    results = replace(known, unique=known.unique | {frozenset(operator.keys)}, moment=frozenset())
    return Groups(keys, together, many, missing, _width(operator), results)


def bound_aggregate(operator: Aggregate, below: Rates, measured: Measurements) -> tuple[Bound, Rates]:
    """Groups that are not complete: as many as keys occur together, or at most one for each event that is waiting."""
    groups = groups_of(operator, below)
    closing = below.on(operator.keys)
    if isinstance(operator.window, TimeWindow):
        return _windowed(operator.window, below, groups, closing, measured.epoch)
    term = soonest(closing)
    keys, together = groups.keys, groups.together
    if not keys or (term is None and together is not None and all(k in below.finite for k in keys)):
        few = 1 if together is None else together
        delay = None if term is None else term.ticks
        one = sized(few, groups.width, delay, (), groups.many or "one group")
        return replace(one, stored=few * PARTS), groups.behind
    if term is None:
        return Bound(None, None, None, None), groups.behind
    by_rate = None if term.ticks is None else below.held(term.ticks, measured.epoch)
    bound = least(below, term, by_rate, together, groups.many, groups.missing, groups.width, term.ticks)
    return bound, groups.behind


def _windowed(
    window: TimeWindow, below: Rates, groups: Groups, closing: Mapping[Tags, Delay], epoch: int | None
) -> tuple[Bound, Rates]:
    """Groups of windows: those whose window is not over yet, for each key, or at most one for each event in them.

    >>> from penstock.analysis.bounds import bounds
    >>> from penstock.builder.stream import StreamBuilder
    >>> from penstock.operators.source.operator import Source
    >>> from penstock.pattern.schema import Schema
    >>> numbers = StreamBuilder(Source((), Schema.parse("t int, k int", "t"), name="n")).disorder(5)
    >>> query = numbers.expect(rate=2, keys={"k": 10}).window(60, slide=20).group_by("k").agg(n="count(*)")
    >>> bounds(query.plan)["aggregate-1"].rows
    40
    """
    step = clock_ticks(window)
    size, slide = window.size * step, window.slide * step
    term = soonest(closing)
    if term is None or term.ticks is None:
        lacks = () if term is None else (term.lacks,)
        return Bound(None, None, None, None, lacks=lacks), groups.behind
    by_label = any(t.ticks == term.ticks and (window.label, "+") in tags for tags, t in closing.items())
    windows = (term.ticks + (0 if by_label else size)) // slide + 1
    together = groups.together
    many = why(groups.many if together is not None else "", counted(windows, "window"))
    delay = max(0, term.ticks - size) if by_label else term.ticks
    by_keys = times(together, windows)
    bound = least(below, term, below.held(term.ticks, epoch), by_keys, many, groups.missing, groups.width, delay)
    # A result stands for its window: as many a slide as there are keys, or events in a window.
    fan = math.ceil(window.size / window.slide)
    rate = None
    if together is not None:
        rate = Arrivals(together / slide, together)
    elif below.rate is not None:
        each = below.rate.times(1 / fan).within(size)
        rate = Arrivals(each / slide, each)
    terms = {t: v if (window.label, "+") in t else v.later(size) for t, v in groups.behind.terms.items()}
    only = all((window.label, "+") in tags for tags in closing)
    return bound, replace(
        groups.behind,
        rate=rate,
        terms=terms,
        moment=frozenset({window.label}),
        after=size if only else 0,
        fan=below.fan,
    )


def _width(operator: Aggregate) -> int | None:
    """Keys and partials of a group; a sum of floating numbers is kept in two doubles and a list, usually null."""
    keys = [operator.schema.type_of(k) for k in operator.keys]
    partials = [p.type for p in decompose(operator.aggregations).partials for _ in range(3 if p.is_float_sum else 1)]
    return widths(pa.schema([(str(i), t) for i, t in enumerate([*keys, *partials])]))
