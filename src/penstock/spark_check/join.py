"""When Spark lets go of the rows that a stream-stream join keeps, and what to add where it does not.

Spark has two ways. A watermarked column among the join keys (on either side) ends rows of both sides. Otherwise a time
range in the condition does, one side at a time: rows of a side go once the *other* side's watermark says that whatever
still comes is too late for them, if this side has a watermark too and Spark can solve the range for its time.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.contract.report import Finding, Fix, Output, State
from penstock.operators.join.operator import Band
from penstock.pattern.duration import format_duration
from penstock.spark_check.plan import (
    TIMES,
    Column,
    Constant,
    Expression,
    Less,
    Opaque,
    SparkJoin,
    SparkNode,
    Sum,
    Through,
    stream_of,
    time_of,
)


def join_name(node: SparkJoin) -> str:
    def pair(left: Expression, right: Expression) -> str:
        return str(left) if str(left) == str(right) else f"{left} = {right}"

    keys = " AND ".join(pair(left, right) for left, right in node.keys)
    ranges = " AND ".join(map(str, node.ranges))
    return "join on " + (" AND ".join(filter(None, (keys, ranges))) or "nothing")


def judge_join(node: SparkJoin) -> tuple[Finding, list[Fix]]:
    left, right = node.inputs
    names = _sides(left, right)
    operator, detail = join_name(node), f"{node.how}, {names[0]} with {names[1]}"
    on_key = next((e for pair in node.keys for e in pair if isinstance(e, Column) and e.delay is not None), None)
    if on_key is not None:
        # One side with a watermark is enough: Spark compares the key of both states with it.
        held = [True, True]
        why = [f"rows of both sides go when the watermark on the join key {on_key} has passed them"]
    else:
        band, held, why = band_of(node), [], []
        bounds = (band.high, band.low) if band is not None else (None, None)
        for which, (name, across, bound) in enumerate(zip(names, names[::-1], bounds, strict=True)):
            expires = _expires(node.ranges, node.inputs[which], node.inputs[1 - which])
            held.append(expires)
            if expires:
                after = f" by {format_duration(abs(bound))}" if bound else ""
                why.append(f"rows of {name} go when the watermark of {across} has passed them{after}")
            else:
                why.append(f"rows of {name} stay for ever: {_reason(node, which, names)}")
    preserved = {"left_outer": (0,), "right_outer": (1,), "full_outer": (0, 1)}.get(node.how, ())
    output: Output = "at once"
    if preserved:
        output = "complete" if all(held[i] for i in preserved) else "held back"
    state: State = "bounded" if all(held) else "unbounded"
    needs, fixes = ((), []) if all(held) else _join_needs(node, operator, names, held)
    never = tuple(f"the event time of {names[i]} is never null" for i in preserved) if state == "bounded" else ()
    return Finding(operator, detail, state, output, tuple(why), needs, never), fixes


def _sides(left: SparkNode, right: SparkNode) -> tuple[str, str]:
    names = (stream_of(left), stream_of(right))
    return names if names[0] != names[1] else (f"{names[0]} (left)", f"{names[1]} (right)")


def terms(expression: Expression, sign: int = 1) -> list[tuple[int, Column | Constant]] | None:
    """The signed columns and constants that add up to it; None if something in it is opaque."""
    if isinstance(expression, Opaque):
        return None
    if not isinstance(expression, Sum):
        return [(sign, expression)]
    found = [terms(part, sign * own) for own, part in expression.parts]
    return None if any(f is None for f in found) else [t for f in found if f is not None for t in f]


def _solved(less: Less, side: SparkNode, other: SparkNode) -> tuple[Column, Column, int | None] | None:
    """`(t, w, c)` if the conjunct says `t > w + c` for a column t of the side and a watermarked w of the other."""
    low, high = terms(less.less), terms(less.more, -1)
    if low is None or high is None:
        return None
    mine = [t for t in low + high if isinstance(t[1], Column) and t[1].id in {c.id for c in side.columns}]
    theirs = [t for t in low + high if isinstance(t[1], Column) and t[1].id in {c.id for c in other.columns}]
    if len(mine) != 1 or len(theirs) != 1:
        return None
    (own_sign, own), (their_sign, their) = mine[0], theirs[0]
    if own_sign > 0 or their_sign < 0 or not isinstance(own, Column) or not isinstance(their, Column):
        return None
    shift: int | None = 0
    for sign, term in low + high:
        if isinstance(term, Constant):
            shift = None if shift is None or term.micros is None else shift + sign * term.micros
    return (own, their, shift) if their.delay is not None else None


def _expires(ranges: tuple[Less, ...], side: SparkNode, other: SparkNode) -> bool:
    # Spark compares the watermarked column of this side's rows with what the other side's watermark leaves possible.
    return any(c.delay is not None for c in side.columns) and any(_solved(r, side, other) for r in ranges)


def band_of(node: SparkJoin) -> Band | None:
    """The tightest bounds that the time ranges of a join give; None if they bound neither side."""
    left, right = node.inputs
    low = [s for s in (_solved(r, right, left) for r in node.ranges) if s is not None]
    high = [s for s in (_solved(r, left, right) for r in node.ranges) if s is not None]
    if not low and not high:
        return None
    times = (low[0][1], low[0][0]) if low else (high[0][0], high[0][1])
    lows, highs = [s[2] for s in low if s[2] is not None], [-s[2] for s in high if s[2] is not None]
    return Band(times[0].name, times[1].name, max(lows, default=None), min(highs, default=None))


def _reason(node: SparkJoin, which: int, names: tuple[str, str]) -> str:
    for one in (which, 1 - which):
        time = time_of(node, one)
        if time.missing:
            return f"{names[one]} has no watermark"
        if time.reach == "lost":
            return f"the watermark of {names[one]} (on {time.name}) does not get to the join"
    for less in node.ranges:
        if any(isinstance(part, Opaque) for part in _parts(less)):
            return f"Spark cannot solve `{less}` for a time: it knows columns plus or minus fixed intervals"
    bare = [str(p) for less in node.ranges for p in _parts(less) if isinstance(p, Column) and p.delay is None]
    if bare and not _would(node, which):
        return f"{' and '.join(dict.fromkeys(bare))} in the time range has no watermark"
    return f"no time range says how much later than them {names[1 - which]} can be"


def _parts(less: Less) -> Iterator[Expression]:
    stack: list[Expression] = [less.less, less.more]
    while stack:
        one = stack.pop()
        yield one
        if isinstance(one, Sum):
            stack += [part for _, part in one.parts]


def _join_needs(
    node: SparkJoin, operator: str, names: tuple[str, str], held: list[bool]
) -> tuple[tuple[str, ...], list[Fix]]:
    times = [time_of(node, 0), time_of(node, 1)]
    fixes = [
        Fix(stream_of(input), f'.withWatermark("{time.name}", "10 minutes")', (operator,))
        for input, time in zip(node.inputs, times, strict=True)
        if time.missing
    ]
    needs = [f"{fix.declaration} on {fix.stream}" for fix in fixes]
    needs += [
        f"select {t.name} of {name} along to the join"
        for t, name in zip(times, names, strict=True)
        if t.reach == "lost"
    ]
    # Ranges that do their work as soon as the watermarks are there need no second one.
    ahead, behind = _would(node, 0), _would(node, 1)
    left, right = (time.name for time in times)
    if left == right:
        left, right = (f"{n.split(' ')[0]}.{t}" if " and " not in n else t for n, t in zip(names, (left, right)))
        if left == right:
            left, right = f"left.{left}", f"right.{right}"
    if not ahead and not behind:
        needs.append(f"AND {right} BETWEEN {left} AND {left} + INTERVAL 1 HOUR")
    elif not ahead and not held[0]:
        needs.append(f"AND {right} <= {left} + INTERVAL 1 HOUR")
    elif not behind and not held[1]:
        needs.append(f"AND {right} >= {left} - INTERVAL 1 HOUR")
    return tuple(needs), fixes


def _would(node: SparkJoin, which: int) -> bool:
    """Whether a range would bound that side once both sides have a watermark: on the one they have, else on any."""
    known = {
        c.id for i, n in enumerate(node.inputs) for c in n.columns if c.delay is not None or time_of(node, i).missing
    }

    def mark(e: Expression) -> Expression:
        if isinstance(e, Sum):
            return Sum(tuple((sign, mark(part)) for sign, part in e.parts))
        if isinstance(e, Column) and e.id in known and e.type in TIMES:
            return Column(e.id, e.name, e.type, 0)
        return e

    def marked(input: SparkNode) -> SparkNode:
        return Through(tuple(c for c in map(mark, input.columns) if isinstance(c, Column)))

    ranges = tuple(Less(mark(r.less), mark(r.more), r.strict) for r in node.ranges)
    return _expires(ranges, marked(node.inputs[which]), marked(node.inputs[1 - which]))
