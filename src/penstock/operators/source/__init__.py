"""Source: events from outside."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.operators.source.operator import Source
from penstock.plan.spec import Fact, Lineage, Measurements, Retraction, Spec, Surroundings, Told, Traits, found_in

if TYPE_CHECKING:
    import random

    from penstock.contract.flow import Flow, Verdict
    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound
    from penstock.pattern.pattern import Pattern
    from penstock.plan.behaviour import Behaviour
    from penstock.plan.response import Response
    from penstock.reference.running import Running


class SourceSpec(Spec[Source]):
    operator = Source

    def traits(self, operator: Source) -> Traits:
        return Traits(
            keeps_state=False, heeds_order=False, at_once=True, makes="one",
            exact=True, listens=False, queues=True, retracts=Retraction.PASSES,
        )  # fmt: skip

    def lineage(self, operator: Source) -> Lineage:
        return {}

    def facts(self, operator: Source) -> Mapping[str, Fact]:
        from penstock.operators.source.declared import facts_of

        return facts_of(operator)

    def reads(self, operator: Source, port: int, wanted: frozenset[str]) -> Collection[str]:
        return ()

    def computed(self, operator: Source, below: Sequence[frozenset[str]], wanted: frozenset[str]) -> frozenset[str]:
        return frozenset(operator.schema.names)

    def definition(self, operator: Source) -> str:
        from penstock.operators.source.declared import definition_of

        return definition_of(operator)

    def held(self, operator: Source) -> dict[str, Any] | None:
        return None

    def behaviour(self, operator: Source, heard: bool) -> Behaviour:
        """Nothing arrives here: what a source says, it is told by its promises."""
        from penstock.plan.behaviour import ThroughBehaviour

        return ThroughBehaviour(lambda pattern: [pattern])

    def judge(self, operator: Source, below: Sequence[Flow]) -> Verdict:
        from penstock.operators.source.contract import judge_source

        return judge_source(operator)

    def bound(self, operator: Source, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        from penstock.contract.size import Bound
        from penstock.operators.source.rates import pace_of

        return Bound(), pace_of(operator, measured.alone, measured.rate)

    def total(self, operator: Source, below: Sequence[int | None]) -> int | None:
        return None

    def respond(self, operator: Source, pattern: Pattern) -> Response:
        from penstock.plan.response import Response

        return Response(output=True)

    def passes_all(self, operator: Source, pattern: Pattern) -> bool:
        return False

    def issues(self, operator: Source, below: Sequence[Flow]) -> Iterable[Told]:
        return ()

    step = found_in("step", "step_of")

    def reference(self, operator: Source, around: Surroundings) -> Running:
        from penstock.operators.source import reference

        return reference.SourceReference(operator, around.partitions)

    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        return None  # It stands on nothing.


SPEC = SourceSpec()
