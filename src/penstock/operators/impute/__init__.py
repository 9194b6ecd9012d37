"""Impute: an expensive function behind a queue."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.operators.impute.operator import Impute
from penstock.operators.map import unchanged
from penstock.plan.spec import Fact, Lineage, Measurements, Retraction, Spec, Told, Traits, found_in, made_in, same

if TYPE_CHECKING:
    import random

    from penstock.contract.flow import Flow, Verdict
    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound
    from penstock.pattern.pattern import Pattern
    from penstock.plan.behaviour import Behaviour


class ImputeSpec(Spec[Impute]):
    operator = Impute

    def traits(self, operator: Impute) -> Traits:
        return Traits(
            keeps_state=True, heeds_order=False, at_once=False, makes="any",
            exact=True, listens=False, queues=True, retracts=Retraction.REFUSES,
        )  # fmt: skip

    def lineage(self, operator: Impute) -> Lineage:
        return same(operator, operator.keeps)

    def facts(self, operator: Impute) -> Mapping[str, Fact]:
        return {}

    def reads(self, operator: Impute, port: int, wanted: frozenset[str]) -> Collection[str]:
        return operator.inputs[port].schema.names

    def computed(self, operator: Impute, below: Sequence[frozenset[str]], wanted: frozenset[str]) -> frozenset[str]:
        return frozenset(operator.schema.names)

    def definition(self, operator: Impute) -> str:
        return operator.meaning

    def held(self, operator: Impute) -> dict[str, Any] | None:
        return {"kind": operator.kind}

    def behaviour(self, operator: Impute, heard: bool) -> Behaviour:
        from penstock.operators.impute.punctuation import QueueBehaviour

        return QueueBehaviour(operator, asks=heard)

    def judge(self, operator: Impute, below: Sequence[Flow]) -> Verdict:
        from penstock.operators.impute.contract import judge_impute

        return judge_impute(operator, below[0])

    def bound(self, operator: Impute, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        from penstock.operators.impute.contract import bound_impute

        return bound_impute(operator, below[0], measured.epoch)

    def total(self, operator: Impute, below: Sequence[int | None]) -> int | None:
        return None  # A function may make any number of events of one.

    respond = found_in("feedback", "respond_impute")

    def passes_all(self, operator: Impute, pattern: Pattern) -> bool:
        return True

    def issues(self, operator: Impute, below: Sequence[Flow]) -> Iterable[Told]:
        return ()

    step = found_in("step", "step_of")
    reference = made_in("reference", "ImputeReference")

    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        names, budget = below.schema.names, random.choice((1, 7, 1000))
        keeps = random.sample(names, random.randint(0, len(names)))
        return below.impute(unchanged, budget=budget, keeps=keeps)


SPEC = ImputeSpec()
