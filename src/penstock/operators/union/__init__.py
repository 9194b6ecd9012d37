"""Union: all events of all inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.operators.union.operator import Union, alike, of_any
from penstock.plan.spec import Fact, Lineage, Measured, Retraction, Spec, Surroundings, Told, Traits

if TYPE_CHECKING:
    import random
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from penstock.contract.flow import Flow, Verdict
    from penstock.contract.rates import Pace
    from penstock.contract.size import Bound
    from penstock.pattern.pattern import Pattern
    from penstock.plan.behaviour import Behaviour
    from penstock.plan.response import Response
    from penstock.reference.running import Running


class UnionSpec(Spec[Union]):
    """Events pass as they come; what is promised of them, all inputs must have promised."""

    operator = Union

    # --- the plan
    def traits(self, operator: Union) -> Traits:
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

    def lineage(self, operator: Union) -> Lineage:
        return of_any(operator)

    def facts(self, operator: Union) -> Mapping[str, Fact]:
        return {}

    def reads(self, operator: Union, port: int, wanted: frozenset[str]) -> Collection[str]:
        return wanted

    def computed(self, operator: Union, below: Sequence[frozenset[str]], wanted: frozenset[str]) -> frozenset[str]:
        lost = {n for i, had in zip(operator.inputs, below, strict=True) for n in set(i.schema.names) - had}
        return frozenset(operator.schema.names) - lost

    def definition(self, operator: Union) -> str:
        return f"union of {len(operator.inputs)}"

    def held(self, operator: Union) -> dict[str, Any] | None:
        return None

    # --- punctuation
    def behaviour(self, operator: Union, heard: bool) -> Behaviour:
        from penstock.operators.union.punctuation import UnionBehaviour

        return UnionBehaviour(operator)

    # --- contracts
    def judge(self, operator: Union, below: Sequence[Flow]) -> Verdict:
        from penstock.operators.union.contract import judge_union

        return judge_union(operator, below)

    def bound(self, operator: Union, below: Sequence[Pace], measured: Measured) -> tuple[Bound, Pace]:
        from penstock.contract.size import Bound
        from penstock.operators.union.contract import united

        return Bound(), united(operator, below)

    def total(self, operator: Union, below: Sequence[int | None]) -> int | None:
        from penstock.operators.union.contract import added

        return added(below)

    # --- feedback
    def respond(self, operator: Union, pattern: Pattern) -> Response:
        from penstock.operators.union.feedback import respond_union

        return respond_union(operator, pattern)

    def passes_all(self, operator: Union, pattern: Pattern) -> bool:
        return True

    def issues(self, operator: Union, below: Sequence[Flow]) -> Iterable[Told]:
        return ()

    # --- running it
    def step(self, operator: Union, node_id: str) -> Any:
        from penstock.operators.union.step import step_of

        return step_of(operator, node_id)

    def reference(self, operator: Union, around: Surroundings) -> Running:
        from penstock.operators.union import reference

        return reference.Union(operator)

    # --- tests
    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        return below.union(other) if other is not None and alike(below.schema, other.schema) else None


SPEC = UnionSpec()
