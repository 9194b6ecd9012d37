"""Join: two inputs on equal keys, within a band of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.operators.join.operator import PADDED, Join, join_definition, lineage_of
from penstock.operators.shared.answers import kept_by
from penstock.operators.shared.families import KeepingSpec
from penstock.plan.spec import Lineage, Retraction, Traits, found_in, given, made_in

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from penstock.plan.consistency import Consistency
    from penstock.plan.operator import Operator


class JoinSpec(KeepingSpec[Join]):
    """Rows wait for partners until the other side has promised that none comes, and may come out alone then."""

    operator = Join

    # --- the plan
    traits = given(Traits(
        keeps_state=True, heeds_order=False, at_once=False, makes="any",
        exact=True, listens=True, queues=False, retracts=Retraction.ANSWERS,
    ))  # fmt: skip

    def lineage(self, operator: Join) -> Lineage:
        return lineage_of(operator.columns, PADDED[operator.how])

    reads = found_in("meeting", "used_by", lambda operator, port, wanted: (operator, port))

    def definition(self, operator: Join) -> str:
        return join_definition(operator)

    held = made_in("meeting", "held_by")

    # --- speculation
    def revised(self, operator: Join, inputs: Sequence[Operator], consistency: Consistency) -> Operator:
        """What is told at once anyway stays as it is, where nothing is taken back."""
        from dataclasses import fields, replace

        from penstock.operators.join.operator import LONELY
        from penstock.operators.revised_join.operator import RevisedJoin
        from penstock.plan.weight import is_weighted, with_weight

        waits = consistency.speculates and LONELY[operator.how]
        if not any(map(is_weighted, inputs)) and not waits:
            return replace(operator, inputs=tuple(inputs))
        known = {f.name: getattr(operator, f.name) for f in fields(operator)}
        return RevisedJoin(**known | {"inputs": tuple(inputs), "schema": with_weight(operator.schema)})

    # --- punctuation
    behaviour = found_in("penstock.operators.join.punctuation", "JoinBehaviour")

    # --- contracts
    judge = found_in("contract", "judge_join")
    bound = found_in("bound", "bound_join")

    # --- feedback
    respond = found_in("feedback", "respond_join")
    issues = found_in("feedback", "issues_join")

    # --- running it
    step = kept_by("JoinKernel")
    reference = made_in("reference", "JoinReference")

    # --- tests
    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        from penstock.operators.join.example import banded, drawn

        return drawn(random, below, other, thrifty=random.random() < 0.2, **banded(random, below, other))


SPEC = JoinSpec()
