"""Select: keeps the events for which a predicate is true."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.operators.select.operator import Select
from penstock.plan.spec import Fact, Lineage, Measured, Retraction, Spec, Surroundings, Told, Traits, same

if TYPE_CHECKING:
    import random

    from penstock.contract.flow import Flow, Verdict
    from penstock.contract.rates import Pace
    from penstock.contract.size import Bound
    from penstock.pattern.pattern import Pattern
    from penstock.plan.behaviour import Behaviour
    from penstock.plan.response import Response
    from penstock.reference.running import Running


class SelectSpec(Spec[Select]):
    operator = Select

    def traits(self, operator: Select) -> Traits:
        return Traits(
            keeps_state=False,
            heeds_order=False,
            at_once=True,
            makes="one",
            exact=True,
            listens=False,
            queues=False,
            retracts=Retraction.PASSES,
        )

    def lineage(self, operator: Select) -> Lineage:
        return same(operator)

    def facts(self, operator: Select) -> Mapping[str, Fact]:
        return {}

    def reads(self, operator: Select, port: int, wanted: frozenset[str]) -> Collection[str]:
        return {*operator.predicate.columns, *wanted}

    def computed(self, operator: Select, below: Sequence[frozenset[str]], wanted: frozenset[str]) -> frozenset[str]:
        return below[0]

    def definition(self, operator: Select) -> str:
        return operator.predicate.sql

    def held(self, operator: Select) -> dict[str, Any] | None:
        return None

    def behaviour(self, operator: Select, heard: bool) -> Behaviour:
        from penstock.plan.behaviour import ThroughBehaviour

        return ThroughBehaviour(lambda pattern: [pattern.over(operator.schema)])

    def judge(self, operator: Select, below: Sequence[Flow]) -> Verdict:
        from penstock.contract.passing import passing

        return passing(operator, below[0])

    def bound(self, operator: Select, below: Sequence[Pace], measured: Measured) -> tuple[Bound, Pace]:
        from penstock.contract.bounding import passing_rates
        from penstock.contract.size import Bound

        return Bound(), passing_rates(operator, below[0])

    def total(self, operator: Select, below: Sequence[int | None]) -> int | None:
        return below[0]

    def respond(self, operator: Select, pattern: Pattern) -> Response:
        from penstock.plan.responses import unchanged

        return unchanged(operator, pattern)

    def passes_all(self, operator: Select, pattern: Pattern) -> bool:
        return True

    def issues(self, operator: Select, below: Sequence[Flow]) -> Iterable[Told]:
        return ()

    def step(self, operator: Select, node_id: str) -> Any:
        from penstock.operators.select.step import step_of

        return step_of(operator, node_id)

    def reference(self, operator: Select, around: Surroundings) -> Running:
        from penstock.operators.select import reference

        return reference.Select(operator)

    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        from pyarrow.types import is_integer

        chosen = random.choice(list(below.schema))
        predicates = [f"`{chosen.name}` is not null"]
        if is_integer(chosen.type):
            predicates += [f"`{chosen.name}` % 5 <> 1", f"`{chosen.name}` > 2"]
        return below.where(random.choice(predicates))


SPEC = SelectSpec()
