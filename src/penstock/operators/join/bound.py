"""Bounds of joins: a row of one input stays until the others have spoken of everything that could join it.

How long that is, for an input k with respect to another h, is the soonest of what h tells: when its time has passed
the reach of the row, `high + λ` of h's time; or when its key has ended there, λ of the key. Of several others, the
slowest decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.contract.flow import Tags
from penstock.contract.rates import Arrivals, Pace, Term, Untold, soonest, step_of
from penstock.contract.size import HASH, Bound, said, widths
from penstock.operators.join.meeting import Meeting, meeting_of
from penstock.operators.join.operator import Join
from penstock.operators.multijoin.operator import MultiJoin
from penstock.plan.domain import domains_behind

#: The inputs of each kind of join whose rows may come out unmatched, so that results wait for them to leave.
_PRESERVED: Mapping[str, tuple[int, ...]] = {"left": (0,), "right": (1,), "full": (0, 1), "anti": (0,)}


@dataclass(frozen=True)
class _Stay:
    """How long rows of one input stay, in ticks after their moments."""

    term: Term
    rows: int | None


def bound_join(operator: Join, below: Sequence[Pace], epoch: int | None) -> tuple[Bound, Pace]:
    """Both sides together. Results of matches appear at once, unmatched rows when they leave.

    >>> from penstock.builder.stream import Stream
    >>> from penstock.operators.source.operator import Source
    >>> from penstock.pattern.schema import Schema
    >>> from penstock.analysis.bounds import bounds
    >>> s = Schema.parse("t int, k int", "t")
    >>> a, b = (Stream(Source((), s, name=n)).disorder(5).expect(rate=2, lag=0) for n in "ab")
    >>> found = bounds(a.join(b, on="k", how="left", within=20).plan)["join-1"]
    >>> found.rows, found.late, found.why
    (162, '25 ticks', 'left: 2 a tick for 25 ticks; right: 2 a tick for 25 ticks')
    """
    bound, stays = _bound(operator, below, ("left", "right"), epoch)
    waits = [stays[k].term.ticks for k in _PRESERVED.get(operator.how, ())]
    late = None if None in waits else max((t for t in waits if t is not None), default=0)
    return replace(bound, delay=late), _behind(operator, below, stays)


def bound_multijoin(operator: MultiJoin, below: Sequence[Pace], epoch: int | None) -> tuple[Bound, Pace]:
    """All inputs together; results appear at once."""
    bound, stays = _bound(operator, below, [f"input {k + 1}" for k in range(len(below))], epoch)
    return replace(bound, delay=0), _behind(operator, below, stays)


def bound_rows_join(operator: Join, below: Sequence[Pace], epoch: int | None) -> tuple[Bound, Pace]:
    """Rows that wait for their place until both times have passed, and the last n of each key."""
    assert operator.rows is not None and operator.times is not None
    terms = [p.on([t]).get(frozenset({(t, "+")}), Term(None)) for p, t in zip(below, operator.times, strict=True)]
    known = [t.ticks for t in terms if t.ticks is not None]
    slowest = max(known) if len(known) == 2 else None
    rows: int | None = 0
    size: int | None = 0
    lacks = [t.lacks for t in terms if t.lacks]
    why: list[str] = []
    for k, (pace, name, limit) in enumerate(zip(below, ("left", "right"), operator.rows, strict=True)):
        keys = pace.together(pair[k] for pair in operator.keys)
        waiting = None if slowest is None else pace.held(slowest, epoch)
        if waiting is None and pace.rate is None:
            lacks.append(pace.lacks)
        if keys is None or limit is None:
            lacks += [f"{_owner(pace)}.expect(keys={{'{operator.keys[0][k]}': …}})"] if limit is not None else []
        if keys is None or limit is None or waiting is None or rows is None:
            rows = size = None
            continue
        why.append(f"{name}: {keys:,} keys × {limit:,} rows, {waiting:,} waiting")
        kept = keys * limit + waiting
        width = widths(operator.inputs[k].schema.arrow, HASH)
        size = None if size is None or width is None else size + kept * width
        rows += kept
    rate = None
    if below[0].rate is not None and below[1].rate is not None and None not in operator.rows:
        n, m = (limit or 0 for limit in operator.rows)
        rate = below[0].rate.times(max(1, m)) + below[1].rate.times(max(1, n))
    bound = Bound(rows, rows, size, slowest, lacks=_each(lacks), why="; ".join(why))
    return bound, replace(_joined(operator, below), rate=rate)


def _bound(
    operator: Join | MultiJoin, below: Sequence[Pace], names: Sequence[str], epoch: int | None
) -> tuple[Bound, list[_Stay]]:
    meeting = meeting_of(operator)
    stays: list[_Stay] = []
    lacks: list[str] = []
    why: list[str] = []
    size: int | None = 0
    for k, pace in enumerate(below):
        others = [_wait(meeting, below, k, h) for h in range(len(below)) if h != k]
        unknown = next((t for t in others if t.ticks is None), None)
        term = unknown or max(others, key=lambda t: t.ticks or 0)
        rows = None if term.ticks is None else pace.held(term.ticks, epoch)
        stays.append(_Stay(term, rows))
        if rows is None or term.ticks is None:
            lacks += [term.lacks] if term.ticks is None else [pace.lacks]
            continue
        why.append(f"{names[k]}: {said(pace, term.ticks)}")
        stored = _stored(operator, meeting, k)
        width = widths([f for f in operator.inputs[k].schema.arrow if f.name in stored], HASH)
        size = None if size is None or width is None else size + rows * width
    counts = [s.rows for s in stays]
    if any(c is None for c in counts):
        return Bound(None, None, None, None, lacks=_each(lacks)), stays
    total = sum(c for c in counts if c is not None)
    return Bound(total, total, size, None, why="; ".join(why)), stays


def _wait(meeting: Meeting, below: Sequence[Pace], k: int, h: int) -> Term:
    """How long a row of k waits for what h has to say."""
    mine, its = meeting.sides[k], meeting.sides[h]
    high = meeting.reach[k, h][1]
    if below[k].clock != below[h].clock:
        return Term(None, Untold("its inputs have different kinds of time, which cannot be compared"))
    attributes = list(its.keys)
    timed = high is not None and its.time is not None and mine.time in below[k].moment
    if timed and its.time is not None:
        attributes.append(its.time)
    found: dict[Tags, Term] = {}
    for tags, term in below[h].on(attributes, across=True).items():
        reached = its.time not in its.keys and any(n == its.time for n, _ in tags)
        if reached and not all(c == "+" for n, c in tags if n == its.time):
            continue
        step = 1 if its.time is None else step_of(its.schema.type_of(its.time))
        found[tags] = term.later((high or 0) * step) if reached else term
    best = soonest(found)
    if best is None:
        return Term(None)
    return best if best.ticks is None else Term(max(0, best.ticks))


def _stored(operator: Join | MultiJoin, meeting: Meeting, k: int) -> set[str]:
    """The attributes of an input that are kept: those that decide about partners or go out."""
    side = meeting.sides[k]
    used = set(side.keys) | ({side.time} if side.time is not None else set())
    used |= {n for column in operator.columns for port, n in column.origins if port == k}
    if isinstance(operator, Join) and operator.residual is not None:
        used |= {a for port, a, n in operator.pair if port == k and n in operator.residual.columns}
    return used


# --- what flows on ----------------------------------------------------------------------------------------------------


def _behind(operator: Join | MultiJoin, below: Sequence[Pace], stays: Sequence[_Stay]) -> Pace:
    """Results, each with the moment of its row of one input; spoken of once that has been, and has left.

    How many there are is known only where each such row has at most one partner in the others.
    """
    pace = _joined(operator, below)
    lead, single = _leading(operator, below)
    side = meeting_of(operator).sides[lead]
    mine = below[lead]
    lifted = {n: name for n, name in side.lifted.items() if name in operator.schema}
    stay = stays[lead].term
    terms: dict[Tags, Term] = {}
    for tags, term in mine.terms.items():
        if all(n in lifted for n, _ in tags):
            moved = frozenset((lifted[n], c) for n, c in tags)
            unknown = next((t for t in (term, stay) if t.ticks is None), None)
            terms[moved] = unknown or Term(max(term.ticks or 0, stay.ticks or 0))
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


def _leading(operator: Join | MultiJoin, below: Sequence[Pace]) -> tuple[int, bool]:
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


def _joined(operator: Join | MultiJoin, below: Sequence[Pace]) -> Pace:
    """What holds of results in any case."""
    clocks = {p.clock for p in below}
    values: dict[str, int] = {}
    for column in operator.columns:
        counts = [below[k].values.get(n) for k, n in column.origins]
        known = [c for c in counts if c is not None]
        if known and len(known) == len(counts):
            values[column.name] = sum(known)
    return Pace(
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


def _each(lacks: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(x for x in lacks if x))


def _owner(pace: Pace) -> str:
    return " and ".join(sorted(pace.sources)) or "the stream"
