"""What snapshots offer: rows leave when they have ended and all up to then is final."""

from __future__ import annotations

from dataclasses import replace

from penstock.contract.flow import Flow, Verdict, behind
from penstock.contract.rates import Rates
from penstock.contract.size import Bound
from penstock.contract.verdicts import assumed_of, endless_state, waiting_for
from penstock.operators.snapshot.operator import SnapshotAggregate
from penstock.pattern.schema import SYNC
from penstock.plan.spec import Measurements


def judge_snapshot(operator: SnapshotAggregate, below: Flow) -> Verdict:
    """In: templates on when changes matter, or on part of the key; Out: the same.

    What is kept are rows that have not ended, so a stream whose rows never end is bounded by what it says itself.
    """
    closing = {tags: assumed for tags, assumed in below.described((SYNC, *operator.keys)).items() if _tells(tags)}
    # Zeros hold for ever: a group that has been seen stays, unless its key is over.
    stays = operator.empty == "zero" and bool(operator.keys)
    going = {tags: assumed for tags, assumed in closing.items() if not stays or all(n != SYNC for n, _ in tags)}
    kept = (SYNC, *operator.keys)
    flow = behind(operator, below, closing, {n: below.origins[n] for n in kept if n in below.origins})
    useful = tuple((0, n) for n in kept)
    if going:
        why = (f"rows leave when they have ended, on {below.any_of(going)}",)
        return Verdict("bounded", "at once", flow, why, (), assumed_of(going), useful)
    needed = operator.keys if stays else (SYNC,)
    needs = () if below.open else below.wanted(needed)
    why = (waiting_for("groups that are told for ever" if stays else "rows that have ended", below, needed),)
    return Verdict(endless_state(below), "at once", flow, why, needs, useful=useful)


def _tells(tags: frozenset[tuple[str, str]]) -> bool:
    return (SYNC, "+") in tags if len(tags) == 1 else not any(n == SYNC for n, _ in tags)


def bound_snapshot(operator: SnapshotAggregate, below: Rates, measured: Measurements) -> tuple[Bound, Rates]:
    """How long rows hold is theirs to say, so there is no telling how many do at a time."""
    return Bound(None, None, None, 0), replace(below, schema=operator.schema, rate=None, unique=frozenset())
