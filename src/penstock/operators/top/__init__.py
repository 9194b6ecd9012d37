"""Top: the best events of each group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.operators.shared.answers import kept_by
from penstock.operators.shared.families import KeepingSpec
from penstock.operators.top.operator import Top
from penstock.plan.spec import Retraction, Traits, found_in, given, made_in, of_one

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from penstock.plan.consistency import Consistency
    from penstock.plan.operator import Operator


class TopSpec(KeepingSpec[Top]):
    """As an aggregate: it keeps the best of a group until punctuation says that the group is complete."""

    operator = Top

    # --- the plan
    traits = given(Traits(
        keeps_state=True, heeds_order=False, at_once=False, makes="one",
        exact=True, listens=True, queues=False, retracts=Retraction.ANSWERS,
    ))  # fmt: skip

    def held(self, operator: Top) -> dict[str, Any] | None:
        from penstock.operators.top.operator import window_label

        found: dict[str, Any] = {"kind": operator.kind, "keys": list(operator.per)}
        if (label := window_label(operator)) is not None:
            found |= {"label": label.name, "on": label.window.on, "size": label.window.size}
        return found

    # --- speculation
    def revised(self, operator: Top, inputs: Sequence[Operator], consistency: Consistency) -> Operator:
        from dataclasses import replace

        from penstock.operators.revised_top.operator import RevisedTop
        from penstock.plan.weight import with_weight

        if not consistency.speculates:
            return replace(operator, inputs=tuple(inputs))
        return RevisedTop(
            tuple(inputs), with_weight(operator.schema), switches=operator.switches, label=operator.label,
            count=operator.count, by=operator.by, per=operator.per,
        )  # fmt: skip

    # --- punctuation
    behaviour = found_in(
        "penstock.operators.shared.describing", "ClosingBehaviour", lambda operator, heard: (operator, operator.per)
    )

    # --- contracts
    judge = of_one("contract", "judge_top")
    bound = of_one("contract", "bound_top")

    # --- feedback
    respond = found_in("feedback", "respond_top")
    issues = made_in("feedback", "issues_of")

    # --- running it
    step = kept_by("TopKernel")
    reference = made_in("reference", "TopReference")

    # --- tests
    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        names = below.schema.names
        by = random.choice(names) + random.choice(("", " desc"))
        return below.top(random.randint(1, 3), by, random.sample(names, random.randint(0, min(2, len(names)))))


SPEC = TopSpec()
