"""Bounds of joins: a row of one input stays until the others have spoken of everything that could join it.

How long that is, for an input k with respect to another h, is the soonest of what h tells: when its time has passed
the reach of the row, `high + λ` of h's time; or when its key has ended there, λ of the key. Of several others, the
slowest decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.contract.flow import Tags
from penstock.contract.rates import Arrivals, Delay, Rates, Untold, soonest, step_of
from penstock.contract.size import HASH, Bound, said, widths
from penstock.operators.join.meeting import Meeting, meeting_of, used_by
from penstock.operators.join.operator import LONELY, Join, Joined
from penstock.operators.multijoin.operator import MultiJoin
from penstock.plan.domain import domains_behind
from penstock.plan.spec import Measurements


@dataclass(frozen=True)
class Stay:
    """How long rows of one input stay, in ticks after their moments."""

    term: Delay
    rows: int | None


def bound_join(operator: Join, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
    """Both sides together. Results of matches appear at once, unmatched rows when they leave.

    >>> from penstock.builder.stream import StreamBuilder
    >>> from penstock.operators.source.operator import Source
    >>> from penstock.pattern.schema import Schema
    >>> from penstock.analysis.bounds import bounds
    >>> s = Schema.parse("t int, k int", "t")
    >>> a, b = (StreamBuilder(Source((), s, name=n)).disorder(5).expect(rate=2, lag=0) for n in "ab")
    >>> found = bounds(a.join(b, on="k", how="left", within=20).plan)["join-1"]
    >>> found.rows, found.late, found.why
    (162, '25 ticks', 'left: 2 a tick for 25 ticks; right: 2 a tick for 25 ticks')
    """
    bound, stays = bound_sides(operator, below, measured.epoch)
    waits = [stays[k].term.ticks for k in LONELY[operator.how]]
    late = None if None in waits else max((t for t in waits if t is not None), default=0)
    return replace(bound, delay=late), pace_behind(operator, below, stays)


def bound_sides(operator: Join | MultiJoin, below: Sequence[Rates], epoch: int | None) -> tuple[Bound, list[Stay]]:
    """The rows of all inputs together, and how long those of each stay."""
    meeting = meeting_of(operator)
    stays: list[Stay] = []
    lacks: list[str] = []
    why: list[str] = []
    size: int | None = 0
    for k, pace in enumerate(below):
        others = [_wait(meeting, below, k, h) for h in range(len(below)) if h != k]
        unknown = next((t for t in others if t.ticks is None), None)
        term = unknown or max(others, key=lambda t: t.ticks or 0)
        rows = None if term.ticks is None else pace.held(term.ticks, epoch)
        stays.append(Stay(term, rows))
        if rows is None or term.ticks is None:
            lacks += [term.lacks] if term.ticks is None else [pace.lacks]
            continue
        why.append(f"{operator.side_names[k]}: {said(pace, term.ticks)}")
        stored = used_by(operator, k)
        width = widths([f for f in operator.inputs[k].schema.arrow if f.name in stored], HASH)
        size = None if size is None or width is None else size + rows * width
    counts = [s.rows for s in stays]
    if any(c is None for c in counts):
        return Bound(None, None, None, None, lacks=each_once(lacks)), stays
    total = sum(c for c in counts if c is not None)
    return Bound(total, total, size, None, why="; ".join(why)), stays


def _wait(meeting: Meeting, below: Sequence[Rates], k: int, h: int) -> Delay:
    """How long a row of k waits for what h has to say."""
    mine, its = meeting.sides[k], meeting.sides[h]
    high = meeting.reach[k, h][1]
    if below[k].clock != below[h].clock:
        return Delay(None, Untold("its inputs have different kinds of time, which cannot be compared"))
    attributes = list(its.keys)
    timed = high is not None and its.time is not None and mine.time in below[k].moment
    if timed and its.time is not None:
        attributes.append(its.time)
    found: dict[Tags, Delay] = {}
    for tags, term in below[h].on(attributes, across=True).items():
        reached = its.time not in its.keys and any(n == its.time for n, _ in tags)
        if reached and not all(c == "+" for n, c in tags if n == its.time):
            continue
        step = 1 if its.time is None else step_of(its.schema.type_of(its.time))
        found[tags] = term.later((high or 0) * step) if reached else term
    best = soonest(found)
    if best is None:
        return Delay(None)
    return best if best.ticks is None else Delay(max(0, best.ticks))


# --- what flows on ----------------------------------------------------------------------------------------------------


def pace_behind(operator: Join | MultiJoin, below: Sequence[Rates], stays: Sequence[Stay]) -> Rates:
    """Results, each with the moment of its row of one input; spoken of once that has been, and has left.

    How many there are is known only where each such row has at most one partner in the others.
    """
    pace = pace_of_any(operator, below)
    lead, single = _leading(operator, below)
    side = meeting_of(operator).sides[lead]
    mine = below[lead]
    lifted = {n: name for n, name in side.lifted.items() if name in operator.schema}
    stay = stays[lead].term
    terms: dict[Tags, Delay] = {}
    for tags, term in mine.terms.items():
        if all(n in lifted for n, _ in tags):
            moved = frozenset((lifted[n], c) for n, c in tags)
            unknown = next((t for t in (term, stay) if t.ticks is None), None)
            terms[moved] = unknown or Delay(max(term.ticks or 0, stay.ticks or 0))
    rate = mine.rate if single else None
    if single and isinstance(operator, Join) and operator.how == "full":
        rate = _summed([p.rate for p in below])
    return replace(
        pace,
        rate=rate,
        lacks=mine.lacks if single and rate is None else "",
        terms=terms,
        moment=frozenset(lifted[n] for n in mine.moment if n in lifted),
        unique=frozenset(frozenset(lifted[n] for n in u) for u in mine.unique if all(n in lifted for n in u))
        if single
        else frozenset(),
        after=mine.after,
        fan=mine.fan,
    )


def _leading(operator: Join | MultiJoin, below: Sequence[Rates]) -> tuple[int, bool]:
    """The input that results take their moments from, and whether each of its rows gives at most one."""
    if isinstance(operator, Join) and operator.how in ("semi", "anti"):
        return 0, True
    keys = [s.keys for s in meeting_of(operator).sides]
    single = [any(u <= set(keys[k]) for u in p.unique) for k, p in enumerate(below)]
    # Unmatched rows of the preserved side come out too, so results go with it.
    fixed = {"left": 0, "right": 1, "full": 0}.get(operator.how) if isinstance(operator, Join) else None
    for k in range(len(below)) if fixed is None else (fixed,):
        if all(one for h, one in enumerate(single) if h != k):
            return k, True
    return fixed or 0, False


def pace_of_any(operator: Joined | MultiJoin, below: Sequence[Rates]) -> Rates:
    """What holds of results in any case."""
    clocks = {p.clock for p in below}
    values: dict[str, int] = {}
    for column in operator.columns:
        counts = [below[k].values.get(n) for k, n in column.origins]
        known = [c for c in counts if c is not None]
        if known and len(known) == len(counts):
            values[column.name] = sum(known)
    return Rates(
        operator.schema,
        clocks.pop() if len(clocks) == 1 else None,
        values=values,
        finite=domains_behind(operator, [p.finite for p in below]),
        sources=frozenset().union(*(p.sources for p in below)),
        fan=max(p.fan for p in below),
    )


def _summed(rates: Sequence[Arrivals | None]) -> Arrivals | None:
    known = [r for r in rates if r is not None]
    return sum(known[1:], known[0]) if len(known) == len(rates) else None


def each_once(lacks: Sequence[str]) -> tuple[str, ...]:
    """What is lacking, named once."""
    return tuple(dict.fromkeys(x for x in lacks if x))
