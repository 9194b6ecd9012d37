"""Source: events from outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.operators.shared.families import UsualSpec
from penstock.operators.source.operator import Source
from penstock.plan.spec import Measurements, Retraction, Surroundings, Traits, found_in, given, made_in

if TYPE_CHECKING:
    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound
    from penstock.pattern.pattern import Pattern
    from penstock.plan.behaviour import Behaviour
    from penstock.plan.consistency import Consistency
    from penstock.plan.operator import Operator
    from penstock.plan.response import Response
    from penstock.reference.running import Running


class SourceSpec(UsualSpec[Source]):
    operator = Source

    traits = given(Traits(
        keeps_state=False, heeds_order=False, at_once=True, makes="one",
        exact=True, listens=False, queues=True, retracts=Retraction.PASSES,
    ))  # fmt: skip

    heeds_lifetimes = given(True)

    lineage = given({})
    facts = made_in("declared", "facts_of")
    reads = given(())
    definition = made_in("declared", "definition_of")
    held = given(None)

    def revised(self, operator: Source, inputs: Sequence[Operator], consistency: Consistency) -> Operator:
        from penstock.operators.source.consistency import revise_source

        return revise_source(operator, consistency)

    def behaviour(self, operator: Source, heard: bool) -> Behaviour:
        """Nothing arrives here: what a source says, it is told by its promises."""
        from penstock.plan.behaviour import ThroughBehaviour

        return ThroughBehaviour(lambda pattern: [pattern])

    judge = made_in("contract", "judge_source")

    def bound(self, operator: Source, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        from penstock.contract.size import Bound
        from penstock.operators.source.rates import pace_of

        return Bound(), pace_of(operator, measured.alone, measured.rate)

    total = given(None)

    def respond(self, operator: Source, pattern: Pattern) -> Response:
        from penstock.plan.response import Response

        return Response(output=True)

    passes_all = given(False)
    step = found_in("penstock.kernels.step", "Reading", lambda *_: ())

    def reference(self, operator: Source, around: Surroundings) -> Running:
        from penstock.operators.source import reference

        return reference.SourceReference(operator, around.partitions)

    example = given(None)  # It stands on nothing.


SPEC = SourceSpec()
