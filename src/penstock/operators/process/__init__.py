"""Process: a user's function with a state for each key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.operators.process.operator import Process
from penstock.operators.shared.answers import behind_only, kept_by
from penstock.operators.shared.families import KeepingSpec
from penstock.plan.spec import Lineage, Retraction, Traits, given, made_in, of_one, same

if TYPE_CHECKING:
    import random


class ProcessSpec(KeepingSpec[Process]):
    """What the function does is its own affair; that it keeps to its keys is seen to."""

    operator = Process

    # --- the plan
    traits = given(Traits(
        keeps_state=True, heeds_order=True, at_once=False, makes="any",
        exact=False, listens=True, queues=False, retracts=Retraction.REFUSES,
    ))  # fmt: skip

    def lineage(self, operator: Process) -> Lineage:
        return same(operator, operator.kept)

    def held(self, operator: Process) -> dict[str, Any] | None:
        return {"kind": operator.kind, "keys": list(operator.by)}

    # --- punctuation
    behaviour = made_in("punctuation", "ProcessBehaviour")

    # --- contracts
    judge = of_one("contract", "judge_process")
    bound = of_one("contract", "bound_process")

    # --- feedback
    # What is not wanted now may be what the function has to know later.
    respond = behind_only("the function may need an event for its state, whatever it results in")

    # --- running it
    step = kept_by("ProcessKernel", labours=True)
    reference = made_in("reference", "ProcessReference")

    # --- tests
    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        from penstock.operators.process.example import some_process

        return some_process(random, below)


SPEC = ProcessSpec()
