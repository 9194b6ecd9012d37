"""Impute: an expensive function behind a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.operators.impute.operator import Impute
from penstock.operators.map import unchanged
from penstock.operators.shared.answers import as_carried, kept_by
from penstock.operators.shared.families import KeepingSpec
from penstock.plan.spec import Lineage, Retraction, Traits, found_in, given, made_in, of_one, same

if TYPE_CHECKING:
    import random


class ImputeSpec(KeepingSpec[Impute]):
    operator = Impute

    traits = given(Traits(
        keeps_state=True, heeds_order=False, at_once=False, makes="any",
        exact=True, listens=False, queues=True, retracts=Retraction.REFUSES,
    ))  # fmt: skip

    def lineage(self, operator: Impute) -> Lineage:
        return same(operator, operator.keeps)

    behaviour = found_in("punctuation", "QueueBehaviour")
    judge = of_one("contract", "judge_impute")
    bound = of_one("contract", "bound_impute")
    # What waits in the queue may go too. Nothing of it has come out, so no guard need stay.
    respond = as_carried("not among those that the function keeps", purge=True)
    passes_all = given(True)
    step = kept_by("QueueKernel", labours=True)
    # A budget spreads work over epochs, and one event at a time there are none: each has its turn when it arrives.
    reference = made_in("penstock.operators.map.reference", "MapReference")

    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        names, budget = below.schema.names, random.choice((1, 7, 1000))
        keeps = random.sample(names, random.randint(0, len(names)))
        return below.impute(unchanged, budget=budget, keeps=keeps)


SPEC = ImputeSpec()
