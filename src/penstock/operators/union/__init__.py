"""Union: all events of all inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.operators.union.operator import Union, alike, of_any
from penstock.plan.spec import Fact, Lineage, Measurements, Retraction, Spec, Told, Traits, found_in, made_in

if TYPE_CHECKING:
    import random
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from penstock.contract.flow import Flow
    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound
    from penstock.pattern.pattern import Pattern
    from penstock.plan.operator import Operator


class UnionSpec(Spec[Union]):
    """Events pass as they come; what is promised of them, all inputs must have promised."""

    operator = Union

    # --- the plan
    def traits(self, operator: Union) -> Traits:
        return Traits(
            keeps_state=False, heeds_order=False, at_once=True, makes="one",
            exact=True, listens=False, queues=False, retracts=Retraction.PASSES,
        )  # fmt: skip

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

    # --- speculation
    def revised(self, operator: Union, inputs: Sequence[Operator]) -> Operator:
        """Rows of an input that takes none back hold once and for all."""
        from penstock.operators.project.operator import Project
        from penstock.plan.weight import WEIGHT, is_weighted, passing_weights, with_weight
        from penstock.sql.expression import Expression

        if not any(map(is_weighted, inputs)):
            return passing_weights(operator, inputs)
        even = []
        for i in inputs:
            texts = [*((n, f"`{n.replace('`', '``')}`") for n in i.schema.names), (WEIGHT, "CAST(1 AS BIGINT)")]
            columns = tuple((n, Expression.parse(text, i.schema)) for n, text in texts)
            even.append(i if is_weighted(i) else Project((i,), with_weight(i.schema), columns=columns))
        return passing_weights(operator, even)

    # --- punctuation
    behaviour = made_in("punctuation", "UnionBehaviour")

    # --- contracts
    judge = found_in("contract", "judge_union")

    def bound(self, operator: Union, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        from penstock.contract.size import Bound
        from penstock.operators.union.contract import united

        return Bound(), united(operator, below)

    def total(self, operator: Union, below: Sequence[int | None]) -> int | None:
        from penstock.operators.union.contract import added

        return added(below)

    # --- feedback
    respond = found_in("feedback", "respond_union")

    def passes_all(self, operator: Union, pattern: Pattern) -> bool:
        return True

    def issues(self, operator: Union, below: Sequence[Flow]) -> Iterable[Told]:
        return ()

    # --- running it
    step = found_in("step", "step_of")
    reference = made_in("reference", "UnionReference")

    # --- tests
    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        return below.union(other) if other is not None and alike(below.schema, other.schema) else None


SPEC = UnionSpec()
