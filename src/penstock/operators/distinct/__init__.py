"""Distinct: each event once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.operators.distinct.operator import Distinct
from penstock.plan.spec import Fact, Lineage, Measurements, Retraction, Spec, Told, Traits, found_in, made_in, same

if TYPE_CHECKING:
    import random
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from penstock.contract.flow import Flow, Verdict
    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound
    from penstock.pattern.pattern import Pattern
    from penstock.plan.response import Response


class DistinctSpec(Spec[Distinct]):
    """An event passes at its first appearance, and is remembered until it cannot come again."""

    operator = Distinct

    # --- the plan
    def traits(self, operator: Distinct) -> Traits:
        return Traits(
            keeps_state=True, heeds_order=False, at_once=False, makes="one",
            exact=True, listens=True, queues=False, retracts=Retraction.REFUSES,
        )  # fmt: skip

    def lineage(self, operator: Distinct) -> Lineage:
        return same(operator)

    def facts(self, operator: Distinct) -> Mapping[str, Fact]:
        return {}

    def reads(self, operator: Distinct, port: int, wanted: frozenset[str]) -> Collection[str]:
        return operator.inputs[port].schema.names

    def computed(self, operator: Distinct, below: Sequence[frozenset[str]], wanted: frozenset[str]) -> frozenset[str]:
        return frozenset(operator.schema.names)

    def definition(self, operator: Distinct) -> str:
        return operator.detail

    def held(self, operator: Distinct) -> dict[str, Any] | None:
        return {"kind": operator.kind}

    # --- punctuation
    behaviour = made_in("punctuation", "DistinctBehaviour")

    # --- contracts
    def judge(self, operator: Distinct, below: Sequence[Flow]) -> Verdict:
        from penstock.operators.distinct.contract import judge_distinct

        return judge_distinct(operator, below[0])

    def bound(self, operator: Distinct, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        from penstock.operators.distinct.contract import bound_distinct

        return bound_distinct(operator, below[0], measured.epoch)

    def total(self, operator: Distinct, below: Sequence[int | None]) -> int | None:
        return below[0]

    # --- feedback
    def respond(self, operator: Distinct, pattern: Pattern) -> Response:
        from penstock.plan.response import Response

        # Copies of an event match alike, so all go or none. Once its first copy is forgotten, a later one would
        # come out as new: the guard stays.
        mine = pattern.over(operator.inputs[0].schema)
        return Response(inputs=(mine,), send=((mine,),), purge=True, pinned=True)

    def passes_all(self, operator: Distinct, pattern: Pattern) -> bool:
        return False

    def issues(self, operator: Distinct, below: Sequence[Flow]) -> Iterable[Told]:
        return ()

    # --- running it
    step = found_in("step", "step_of")
    reference = made_in("reference", "DistinctReference")

    # --- tests
    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        return below.distinct()


SPEC = DistinctSpec()
