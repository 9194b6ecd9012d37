"""What joins offer: rows of one input leave on the promises of the others.

The general form, for input k of m, with J the join key and W the time as far as the window bounds it: rows of k leave
on templates of every other input that tag a non-empty part of J ∪ {W}, in whatever classes. Binary joins of all kinds
are m = 2; the kind only decides whose results wait until its rows leave. Output has, for each input, its templates
together with those that settle its rows, lifted to the output.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import pyarrow as pa

from penstock.contract.flow import (
    Aside,
    AttributeOrigin,
    Flow,
    Promised,
    Tags,
    Verdict,
    also_ends,
    asides_behind,
    end_together,
    goes_on,
    least,
    met,
    none_null,
    ordered,
)
from penstock.contract.report import Output, State
from penstock.contract.template import Class
from penstock.operators.join.meeting import Meeting, meeting_of
from penstock.operators.join.operator import LONELY, PADDED, Join, Joined
from penstock.operators.multijoin.operator import MultiJoin
from penstock.plan.domain import domains_behind


def judge_join(operator: Join, below: Sequence[Flow]) -> Verdict:
    """inner, semi: results at once; left, right, full, anti: when the rows of the preserved input leave.

    In1 = {[[J:c, L:-]]} or {[[W:+, …]]}, In2 likewise, in any mix of classes over J.
    """
    return judge_sides(operator, below, LONELY[operator.how], PADDED[operator.how])


def judge_sides(
    operator: Join | MultiJoin, below: Sequence[Flow], preserved: Sequence[int] = (), padded: Collection[int] = ()
) -> Verdict:
    """The general form, for a join of any number of inputs.

    Rows of the `preserved` come out even without a partner, and those of the `padded` may be missing in results.
    """
    meeting = meeting_of(operator)
    ports = range(len(below))
    inputs = [called(name, flow) for name, flow in zip(operator.side_names, below, strict=True)]
    rows = [called(f"{name} rows", flow) for name, flow in zip(operator.side_names, below, strict=True)]
    # settling[k][h]: templates of h that settle rows of k, in the attributes of k.
    nulls = isinstance(operator, Join) and operator.null_safe
    settling = {(k, h): _translated(meeting, below, h, k, nulls) for k in ports for h in ports if h != k}
    settled = [met([settling[k, h] for h in ports if h != k]) for k in ports]
    why: list[str] = []
    needs: list[str] = []
    assumes: list[str] = []
    fates: list[State] = []
    for k in ports:
        others = [h for h in ports if h != k]
        lacking = [h for h in others if not settling[k, h]]
        closed = [h for h in lacking if not below[h].open]
        if closed:
            fates.append("unbounded")
            h = closed[0]
            wanted = _wanted(meeting, k, h)
            said = " or ".join(f"`{n}`" for n in wanted)
            arrives = below[h].words
            why.append(f"{rows[k]} never leave: nothing from {inputs[h]} promises {said} (what arrives: {arrives})")
            needs += [w for h in closed for w in below[h].wanted(_wanted(meeting, k, h))]
            continue
        parts = [
            f"{inputs[h]} "
            + (below[h].any_of(_settling(meeting, below[h], h, k)) if settling[k, h] else "saying so in band")
            for h in others
        ]
        why.append(f"{rows[k]} leave on {' and '.join(parts)}")
        fates.append("as the data says" if lacking else "bounded")
        for h in others:
            if settling[k, h]:
                assumes += sorted(settling[k, h][ordered(settling[k, h])[0]])
    if (
        "unbounded" in fates
        and isinstance(operator, Join)
        and operator.band is None
        and all(f.schema.times for f in below)
    ):
        needs.append('partners near in time instead: join(…, within="1 h"), and time up to from both')
    state: State = next((s for s in ("unbounded", "as the data says") if s in fates), "bounded")
    # Rows that may have no partner wait until they leave: whatever becomes of the others, they come as that is told.
    waiting = [fates[k] for k in preserved]
    output: Output = "complete" if preserved else "at once"
    if "unbounded" in waiting:
        output = "held back"
    elif state == "unbounded" and "as the data says" in waiting:
        output = "as the data says"
    lifted = [entry for k in ports for entry in _lifted(meeting, below, settled[k], k, preserved, padded)]
    promised = least((tags, assumed) for tags, assumed in lifted if assumed is not None)
    partly = {Aside.but_nulls(tags) for tags, assumed in lifted if assumed is None}
    speaking = any(f.open for f in below) and any(
        (below[k].open or below[k].promised) and all(settling[k, h] or below[h].open for h in ports if h != k)
        for k in ports
    )
    useful = tuple(
        (h, n) for h in ports for n in dict.fromkeys(m for k in ports if k != h for m in _wanted(meeting, k, h))
    )
    return Verdict(
        state,
        output,
        replace(flow_behind(operator, below, promised, speaking), asides=asides_behind(operator, below) | partly),
        tuple(why),
        tuple(dict.fromkeys(needs)),
        tuple(dict.fromkeys(assumes)),
        useful,
    )


def called(name: str, flow: Flow) -> str:
    """An input by its place and, if it is known, its stream."""
    return f"{name} ({flow.name})" if flow.name else name


def _wanted(meeting: Meeting, k: int, h: int) -> list[str]:
    """The attributes of h on which promises settle rows of k: its key, and its time if the window bounds it."""
    side = meeting.sides[h]
    bounded = side.time is not None and side.time not in side.keys and meeting.reach[k, h][1] is not None
    return [*side.keys, *([side.time] if bounded and side.time is not None else [])]


def _settling(meeting: Meeting, flow: Flow, h: int, k: int) -> dict[Tags, frozenset[str]]:
    """Templates of h that settle rows of k, in the attributes of h.

    Time settles by `+` where the window has an end; one value of it, where partners have exactly one time.
    """
    side = meeting.sides[h]
    low, high = meeting.reach[k, h]
    attributes = [*side.keys, *([side.time] if side.time is not None and side.time not in side.keys else [])]

    def fits(name: str, how: str) -> bool:
        return name in side.keys or (high is not None if how == "+" else low is not None and low == high)

    found = flow.described(attributes)
    return {t: a for t, a in found.items() if all(fits(n, c) for n, c in t)}


def _translated(
    meeting: Meeting, below: Sequence[Flow], h: int, k: int, nulls: bool = False
) -> dict[Tags, frozenset[str]]:
    """What settles rows of k, in the attributes of k, with what that assumes of the values.

    Rows with a null key wait for nobody, unless `nulls` are alike.
    """
    mine, its = meeting.sides[k], meeting.sides[h]
    # A key may be paired twice (a = x and a = y); then the promise tells of both.
    pairs = list(zip(its.keys, mine.keys, strict=True))
    found: list[tuple[Tags, frozenset[str]]] = []
    for tags, assumed in _settling(meeting, below[h], h, k).items():
        moved: dict[str, Class] = {}
        if its.time is not None and its.time not in its.keys and (its.time, "+") in tags:
            assumed = assumed | goes_on(below[h], its.time, tags)
        for name, how in tags:
            for target in [b for a, b in pairs if a == name] or ([mine.time] if mine.time is not None else []):
                moved[target] = how
                if how != "+":
                    assumed = assumed | also_ends(below[k], target, below[h], name)
                elif name in its.keys:
                    assumed = assumed | goes_on(below[h], name, tags)
        valued = [(target, name) for name, how in tags if how != "+" for target in moved if (name, target) in pairs]
        assumed = assumed | end_together(below[k], below[h], sorted(valued))
        values = none_null((below[k], target) for target in moved) if nulls else frozenset()
        if values is not None:
            found.append((frozenset(moved.items()), assumed | values))
    return least(found)


def _lifted(
    meeting: Meeting,
    below: Sequence[Flow],
    settled: Promised,
    k: int,
    preserved: Sequence[int],
    padded: Collection[int],
) -> list[tuple[Tags, frozenset[str] | None]]:
    """Templates behind the join that speak of attributes of input k; with None those that do not speak of all events.

    Its own together with those that settle its rows; and, since the state is asked how far its rows reach, its own
    `+` on one attribute as soon as rows leave at all; and any of its own once time alone settles them. Rows whose key
    is null have no partners. Of a preserved input they come out all the same, and no template on the key matches them.
    """
    side, flow = meeting.sides[k], below[k]
    found = list(met([flow.promised, settled]).items())
    if settled:
        best = settled[ordered(settled)[0]]
        timed = [a for t, a in settled.items() if t == {(side.time, "+")}]
        for tags, assumed in flow.promised.items():
            alone = side.guarded and all(n in side.keys for n, _ in tags)
            if alone or {n for n, _ in tags} == {side.time}:
                continue
            if _rises(flow, tags):
                found.append((tags, assumed | best))
            elif timed:
                found.append((tags, assumed | timed[0]))
    lifted: list[tuple[Tags, frozenset[str] | None]] = []
    for tags, assumed in least(found).items():
        if not all(n in side.lifted for n, _ in tags):
            continue
        keys = [place for place, key in enumerate(side.keys) if any(key == n for n, _ in tags)]
        values = none_null((below[h], meeting.sides[h].keys[place]) for h in preserved for place in keys)
        if k in padded and any(n not in side.keys for n, _ in tags):
            values = None  # Unmatched rows of the other input are null there: no punctuation on it matches them.
        moved: Tags = frozenset((side.lifted[n], c) for n, c in tags)
        lifted.append((moved, None if values is None else assumed | values))
    return lifted


def _pads(operator: Joined, ports: Sequence[int]) -> bool:
    """Whether a column that is taken from these inputs may be left null: a row has one input at least."""
    padded = PADDED[operator.how]
    return all(k in padded for k in ports) and len(set(ports)) < len(operator.inputs)


def _rises(flow: Flow, tags: Tags) -> bool:
    """Whether a template is `+` on one attribute whose least waiting value the state can tell."""
    if len(tags) != 1:
        return False
    ((name, how),) = tags
    t = flow.schema.type_of(name)
    return how == "+" and (pa.types.is_integer(t) or pa.types.is_date(t) or pa.types.is_timestamp(t))


def flow_behind(operator: Joined | MultiJoin, below: Sequence[Flow], promised: Promised, speaking: bool) -> Flow:
    """What flows behind a join that promises this; `speaking`: what the data says in band gets through."""
    origins: dict[str, tuple[AttributeOrigin, ...]] = {}
    for column in operator.columns:
        known = [below[k].origins.get(n, ()) for k, n in column.origins]
        if all(known):
            origins[column.name] = tuple(dict.fromkeys(o for part in known for o in part))
            if isinstance(operator, Joined) and _pads(operator, [k for k, _ in column.origins]):
                origins[column.name] = tuple(replace(o, padded=True) for o in origins[column.name])
    return Flow(
        operator.schema,
        tuple(dict.fromkeys(s for f in below for s in f.streams)),
        promised,
        speaking,
        all(f.ends for f in below),
        origins,
        domains_behind(operator, [f.finite for f in below]),
    )
