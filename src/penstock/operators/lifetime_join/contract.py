"""What lifetime joins offer: rows leave when they have ended and all up to then is final of both inputs."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.contract.flow import Flow, Tags, Verdict
from penstock.contract.rates import Rates
from penstock.contract.report import State
from penstock.contract.size import Bound
from penstock.contract.verdicts import endless_state, waiting_for
from penstock.operators.lifetime_join.operator import LifetimeJoin
from penstock.pattern.schema import SYNC
from penstock.plan.domain import domains_behind
from penstock.plan.spec import Measurements

_UP_TO: Tags = frozenset({(SYNC, "+")})


def judge_lifetime_join(operator: LifetimeJoin, below: Sequence[Flow]) -> Verdict:
    """In: `[[_sync:+]]` of both, Out: the same. Nothing else lets rows go."""
    said = [f.promised.get(_UP_TO) for f in below]
    assumed = frozenset[str]().union(*(s for s in said if s is not None))
    origins = {
        c.name: below[side].origins[name]
        for c in operator.columns
        for side, name in c.origins[:1]
        if name in below[side].origins
    }
    if SYNC in below[0].origins:
        origins[SYNC] = below[0].origins[SYNC]
    flow = Flow(
        operator.schema,
        tuple(dict.fromkeys(s for f in below for s in f.streams)),
        {_UP_TO: assumed} if None not in said else {},
        any(f.open for f in below),
        all(f.ends for f in below),
        origins,
        domains_behind(operator, [f.finite for f in below]),
    )
    useful = ((0, SYNC), (1, SYNC))
    waits = [f for f, s in zip(below, said, strict=True) if s is None]
    if not waits:
        why = (f"rows leave when they have ended, on `{SYNC} up to` of both streams",)
        return Verdict("bounded", "at once", flow, why, (), tuple(sorted(assumed)), useful)
    state: State = "unbounded" if any(endless_state(f) == "unbounded" for f in waits) else "as the data says"
    whys = tuple(waiting_for("rows that have ended", f, (SYNC,)) for f in waits)
    needs = tuple(n for f in waits if not f.open for n in f.wanted((SYNC,)))
    return Verdict(state, "at once", flow, whys, needs, useful=useful)


def bound_lifetime_join(operator: LifetimeJoin, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
    """How long rows hold is theirs to say, so there is no telling how many do at a time."""
    from dataclasses import replace

    known = replace(below[0], schema=operator.schema, rate=None, unique=frozenset(), values={})
    return Bound(None, None, None, 0), known
