"""Sink: where results go."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.operators.sink.operator import Sink
from penstock.plan.spec import Fact, Lineage, Measurements, Retraction, Spec, Surroundings, Told, Traits, found_in, same

if TYPE_CHECKING:
    import random

    from penstock.contract.flow import Flow, Verdict
    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound
    from penstock.pattern.pattern import Pattern
    from penstock.plan.behaviour import Behaviour
    from penstock.plan.response import Response
    from penstock.reference.running import Running


class SinkSpec(Spec[Sink]):
    operator = Sink

    def traits(self, operator: Sink) -> Traits:
        return Traits(
            keeps_state=False, heeds_order=False, at_once=True, makes="one",
            exact=True, listens=False, queues=False, retracts=Retraction.PASSES,
        )  # fmt: skip

    def lineage(self, operator: Sink) -> Lineage:
        return same(operator)

    def facts(self, operator: Sink) -> Mapping[str, Fact]:
        return {}

    def reads(self, operator: Sink, port: int, wanted: frozenset[str]) -> Collection[str]:
        return operator.inputs[port].schema.names

    def computed(self, operator: Sink, below: Sequence[frozenset[str]], wanted: frozenset[str]) -> frozenset[str]:
        return frozenset(operator.schema.names)

    def definition(self, operator: Sink) -> str:
        return operator.detail

    def held(self, operator: Sink) -> dict[str, Any] | None:
        return None

    def behaviour(self, operator: Sink, heard: bool) -> Behaviour:
        from penstock.plan.behaviour import ThroughBehaviour

        return ThroughBehaviour(lambda pattern: [pattern.over(operator.schema)])

    def judge(self, operator: Sink, below: Sequence[Flow]) -> Verdict:
        from penstock.contract.passing import passing

        return passing(operator, below[0])

    def bound(self, operator: Sink, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        from penstock.contract.bounding import passing_rates
        from penstock.contract.size import Bound

        return Bound(), passing_rates(operator, below[0])

    def total(self, operator: Sink, below: Sequence[int | None]) -> int | None:
        return below[0]

    def respond(self, operator: Sink, pattern: Pattern) -> Response:
        from penstock.plan.responses import unchanged

        return unchanged(operator, pattern)

    def passes_all(self, operator: Sink, pattern: Pattern) -> bool:
        return False

    def issues(self, operator: Sink, below: Sequence[Flow]) -> Iterable[Told]:
        return ()

    step = found_in("step", "step_of")

    def reference(self, operator: Sink, around: Surroundings) -> Running:
        from penstock.operators.sink.reference import SinkReference

        return SinkReference()

    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        return None  # Nothing stands on a sink: whoever runs a plan ends it with one.


SPEC = SinkSpec()
