"""Snapshot: what rows come to that hold at the same time."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from penstock.operators.shared.answers import behind_only
from penstock.operators.shared.families import KeepingSpec
from penstock.operators.snapshot.operator import SnapshotAggregate
from penstock.pattern.schema import SYNC
from penstock.plan.spec import Lineage, Retraction, Traits, found_in, given, made_in, of_one, same
from penstock.plan.weight import WEIGHT, is_weighted, passing_weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.plan.consistency import Consistency
    from penstock.plan.operator import Operator


class SnapshotSpec(KeepingSpec[SnapshotAggregate]):
    """It tells at once, corrects, and forgets what has ended."""

    operator = SnapshotAggregate

    # --- the plan
    traits = given(Traits(
        keeps_state=True, heeds_order=False, at_once=True, makes="any",
        exact=False, listens=True, queues=False, retracts=Retraction.ANSWERS,
    ))  # fmt: skip
    heeds_lifetimes = given(True)

    def lineage(self, operator: SnapshotAggregate) -> Lineage:
        """When a change of a result matters follows from when those of its rows do."""
        return same(operator, operator.keys)

    def reads(self, operator: SnapshotAggregate, port: int, wanted: frozenset[str]) -> Collection[str]:
        (below,) = operator.inputs
        needed = {*below.schema.lifetime, SYNC, *operator.keys, *(c for a in operator.aggregations for c in a.columns)}
        return {*needed, *((WEIGHT,) if is_weighted(below) else ())}

    def held(self, operator: SnapshotAggregate) -> dict[str, Any] | None:
        zero = {"empty": operator.empty} if operator.empty != "skip" else {}
        part = {"copies": operator.aggregations[0].text} if operator.copies is not None else {}
        return {"kind": operator.kind, "keys": list(operator.keys), **zero, **part}

    # --- speculation
    def revised(self, operator: SnapshotAggregate, inputs: Sequence[Operator], consistency: Consistency) -> Operator:
        return passing_weights(operator, inputs)

    # --- punctuation
    behaviour = made_in("punctuation", "SnapshotBehaviour")

    # --- contracts
    judge = of_one("contract", "judge_snapshot")
    bound = of_one("contract", "bound_snapshot")

    # --- feedback
    respond = behind_only("results that are corrected later are told apart behind it")

    # --- running it
    step = found_in("step", "step_of")
    reference = made_in("reference", "SnapshotReference")

    # --- tests
    example = given(None)  # It stands on streams with lifetimes alone, which random plans have none of.


SPEC = SnapshotSpec()
