"""What a union offers, and when and how often its events come. `pace` builds on both."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.contract.flow import Aside, AttributeOrigin, Flow, Tags, Verdict, also_ends, asides_behind, met, none_null
from penstock.contract.rates import Delay, Rates
from penstock.plan.domain import domains_behind
from penstock.plan.operator import Operator


def judge_union(operator: Operator, below: Sequence[Flow]) -> Verdict:
    """In_i = {T_i}, Out = {T_1 ∧ … ∧ T_m}, attribute by attribute: what all inputs have promised."""
    parts: list[dict[Tags, frozenset[str]]] = []
    for i, flow in enumerate(below):
        # A value that one input ends may still come from another: it must end there too.
        others = [f for k, f in enumerate(below) if k != i]
        also = {t: _ending(t, flow, others) for t in flow.promised}
        parts.append({t: a | more for t, a in flow.promised.items() if (more := also[t]) is not None})
    speaking = all(f.open or f.promised for f in below)
    origins: dict[str, tuple[AttributeOrigin, ...]] = {}
    for name in operator.schema.names:
        if all(name in f.origins for f in below):
            origins[name] = tuple(dict.fromkeys(o for f in below for o in f.origins[name]))
    told = met(parts)
    flow = Flow(
        operator.schema,
        tuple(dict.fromkeys(s for f in below for s in f.streams)),
        told,
        speaking and any(f.open for f in below),
        all(f.ends for f in below),
        origins,
        domains_behind(operator, [f.finite for f in below]),
        asides=asides_behind(operator, below)
        | {Aside.but_nulls(t) for t in met([f.promised for f in below]) if t not in told},
    )
    return Verdict("none", "at once", flow)


def _ending(tags: Tags, flow: Flow, others: Sequence[Flow]) -> frozenset[str] | None:
    """What must hold of the others. Of nulls nothing is said, whatever is said of values: who brings some, has none."""
    some = none_null((o, n) for o in others for n, _ in tags)
    return (
        None if some is None else some.union(*(also_ends(o, n, flow, n) for o in others for n, c in tags if c != "+"))
    )


def united(operator: Operator, below: Sequence[Rates]) -> Rates:
    """Events of all inputs; what all inputs have spoken of, so the latest of their terms."""
    clocks = {p.clock for p in below}
    terms: dict[Tags, Delay] = {}
    across = [p.on(p.schema.names, across=True) for p in below]
    for tags in set.intersection(*(set(t) for t in across)):
        found = [t[tags] for t in across]
        unknown = next((t for t in found if t.ticks is None), None)
        terms[tags] = unknown or max(found, key=lambda t: t.ticks or 0)
    rates = [p.rate for p in below]
    known = [r for r in rates if r is not None]
    same = len(clocks) == 1
    counted = set.intersection(*(set(p.values) for p in below))
    return Rates(
        operator.schema,
        clocks.pop() if same else None,
        sum(known[1:], known[0]) if same and len(known) == len(rates) else None,
        next((p.lacks for p in below if p.lacks), ""),
        terms,
        frozenset.intersection(*(p.moment for p in below)),
        {n: sum(p.values[n] for p in below) for n in counted},
        domains_behind(operator, [p.finite for p in below]),
        after=min(p.after for p in below),
        sources=(sources := frozenset[str]().union(*(p.sources for p in below))),
        # A source that comes in by two ways brings each event twice.
        fan=max((sum(p.fan for p in below if s in p.sources) for s in sources), default=max(p.fan for p in below)),
    )


def added(below: Sequence[int | None]) -> int | None:
    """How many events all inputs bring in all, if that is known of each."""
    known = [b for b in below if b is not None]
    return sum(known) if len(known) == len(below) else None
