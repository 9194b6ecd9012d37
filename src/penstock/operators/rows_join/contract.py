"""What joins with the last rows of each key offer: rows take their places as time goes on, and the last ones stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.contract.bounding import owner
from penstock.contract.flow import Flow, Tags, Verdict, also_ends
from penstock.contract.rates import Delay, Rates
from penstock.contract.report import Output, State
from penstock.contract.size import HASH, Bound, widths
from penstock.errors import counted
from penstock.operators.join.bound import each_once, pace_of_any
from penstock.operators.join.contract import called, flow_behind
from penstock.operators.join.operator import LONELY
from penstock.operators.rows_join.operator import RowsJoin
from penstock.plan.spec import Measurements


def judge_rows_join(operator: RowsJoin, below: Sequence[Flow]) -> Verdict:
    """In1 = {[[T1:+]]}, In2 = {[[T2:+]]}: events take their places in order of time; Out = {[[T1:+, T2:+]]}.

    The last rows of each key stay for partners to come, so there must be finitely many keys and a limit of rows, or
    keys must end in both inputs. Results of unmatched rows wait for newer ones that displace them, or for that end.
    """
    names = [called(side, flow) for side, flow in zip(operator.side_names, below, strict=True)]
    ready: list[dict[Tags, frozenset[str]]] = []
    why: list[str] = []
    needs: list[str] = []
    state: State = "bounded"
    output: Output = "complete"
    for time, flow, name in zip(operator.times, below, names, strict=True):
        up_to: Tags = frozenset({(time, "+")})
        ready.append({t: a for t, a in flow.promised.items() if t == up_to})
        if ready[-1]:
            continue
        if flow.open:
            state = "as the data says" if state == "bounded" else state
            output = "as the data says"
            why.append(f"rows take their places on what the data says in {name}")
        else:
            state = "unbounded"
            why.append(f"rows wait for ever: nothing from {name} promises `{time}` alone (what arrives: {flow.words})")
            needs += [w.replace(": each value", " up to") for w in flow.wanted([time])]
    if not why:
        why.append(
            "rows take their places on " + " and ".join(f"{n} `{t} up to`" for n, t in zip(names, operator.times))
        )
    held = state == "unbounded"
    kept = LONELY[operator.how]
    over = _over(operator, below)
    if over is not None:
        why.append(f"rows of a key leave when it has ended in both: {over[0]}")
    for k, (flow, name, limit) in enumerate(zip(below, names, operator.rows, strict=True)):
        if over is not None:
            break
        keys = [pair[k] for pair in operator.keys]
        endless = [key for key in keys if key not in flow.finite]
        if limit is None:
            why.append(f"all rows of {name} stay: rows= sets no limit for them")
            needs.append(f"a limit for {name}: rows=(n, m)")
        elif endless:
            said = " and ".join(f"`{key}`" for key in endless)
            why.append(f"the last {limit:,} rows of each {said} of {name} stay for ever")
            needs.append(f'all values of {said} in {name}: ps.Punctuate.values("{endless[0]}", […])')
        if limit is None or endless:
            state = "unbounded"
            # The last rows of a key that has no more events are displaced by nothing.
            held = held or k in kept
    assumed = frozenset().union(*(a for side in ready for a in side.values()))
    if over is not None:
        assumed |= over[1]
    elif kept:
        assumed |= {"every key goes on having events: unmatched rows leave when newer ones displace them"}
    lifted = [next((c.name for c in operator.columns if (k, operator.times[k]) in c.origins), None) for k in (0, 1)]
    promised: dict[Tags, frozenset[str]] = {}
    if operator.how == "inner" and all(ready) and lifted[0] is not None and lifted[1] is not None:
        promised = {frozenset({(lifted[0], "+"), (lifted[1], "+")}): assumed}
    flow = flow_behind(operator, below, promised, any(f.open for f in below) and not held)
    useful = tuple(enumerate(operator.times))
    safe = state != "unbounded" and not held
    return Verdict(
        state,
        "held back" if held else output if state == "unbounded" else "complete",
        flow,
        tuple(why),
        tuple(dict.fromkeys(needs)),
        tuple(sorted(assumed)) if safe else (),
        useful,
    )


def _over(operator: RowsJoin, below: Sequence[Flow]) -> tuple[str, frozenset[str]] | None:
    """A key attribute whose values end in both inputs, in words, and what that assumes."""
    left, right = below
    for a, b in operator.keys:
        mine, its = (f.promised.get(frozenset({(n, "#")})) for f, n in ((left, a), (right, b)))
        if mine is not None and its is not None:
            said = f"`{a}: each value`" if a == b else f"`{a}: each value` and `{b}: each value`"
            return said, mine | its | also_ends(left, a, right, b) | also_ends(right, b, left, a)
    return None


def bound_rows_join(operator: RowsJoin, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
    """Rows that wait for their place until both times have passed, and the last n of each key."""
    terms = [p.on([t]).get(frozenset({(t, "+")}), Delay(None)) for p, t in zip(below, operator.times, strict=True)]
    known = [t.ticks for t in terms if t.ticks is not None]
    slowest = max(known) if len(known) == 2 else None
    rows: int | None = 0
    size: int | None = 0
    lacks = [t.lacks for t in terms if t.lacks]
    why: list[str] = []
    for k, (pace, name, limit) in enumerate(zip(below, operator.side_names, operator.rows, strict=True)):
        keys = pace.together(pair[k] for pair in operator.keys)
        waiting = None if slowest is None else pace.held(slowest, measured.epoch)
        if waiting is None and pace.rate is None:
            lacks.append(pace.lacks)
        if keys is None or limit is None:
            lacks += [f"{owner(pace)}.expect(keys={{'{operator.keys[0][k]}': …}})"] if limit is not None else []
        if keys is None or limit is None or waiting is None or rows is None:
            rows = size = None
            continue
        why.append(f"{name}: {counted(keys, 'key')} × {counted(limit, 'row')}, {waiting:,} waiting")
        kept = keys * limit + waiting
        width = widths(operator.inputs[k].schema.arrow, HASH)
        size = None if size is None or width is None else size + kept * width
        rows += kept
    rate = None
    if below[0].rate is not None and below[1].rate is not None and None not in operator.rows:
        n, m = (limit or 0 for limit in operator.rows)
        rate = below[0].rate.times(max(1, m)) + below[1].rate.times(max(1, n))
    bound = Bound(rows, rows, size, slowest, lacks=each_once(lacks), why="; ".join(why))
    return bound, replace(pace_of_any(operator, below), rate=rate)
