"""Union: all events of all inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.operators.shared.families import AtOnceSpec
from penstock.operators.union.operator import Union, alike, of_any
from penstock.plan.spec import Lineage, Retraction, Traits, found_in, given, made_in

if TYPE_CHECKING:
    import random
    from collections.abc import Collection, Sequence

    from penstock.plan.consistency import Consistency
    from penstock.plan.operator import Operator


class UnionSpec(AtOnceSpec[Union]):
    """Events pass as they come; what is promised of them, all inputs must have promised."""

    operator = Union

    # --- the plan
    traits = given(Traits(
        keeps_state=False, heeds_order=False, at_once=True, makes="one",
        exact=True, listens=False, queues=False, retracts=Retraction.PASSES,
    ))  # fmt: skip

    heeds_lifetimes = given(True)

    def lineage(self, operator: Union) -> Lineage:
        return of_any(operator)

    def reads(self, operator: Union, port: int, wanted: frozenset[str]) -> Collection[str]:
        return wanted

    def computed(self, operator: Union, below: Sequence[frozenset[str]], wanted: frozenset[str]) -> frozenset[str]:
        lost = {n for i, had in zip(operator.inputs, below, strict=True) for n in set(i.schema.names) - had}
        return frozenset(operator.schema.names) - lost

    def definition(self, operator: Union) -> str:
        return f"union of {len(operator.inputs)}"

    # --- speculation
    def revised(self, operator: Union, inputs: Sequence[Operator], consistency: Consistency) -> Operator:
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
    rates = found_in("contract", "united")
    total = found_in("penstock.operators.union.contract", "added", lambda operator, below: (below,))

    # --- feedback
    respond = found_in("feedback", "respond_union")

    # --- running it
    step = found_in("penstock.kernels.step", "Passing", lambda *_: ())
    reference = made_in("reference", "UnionReference")

    # --- tests
    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        return below.union(other) if other is not None and alike(below.schema, other.schema) else None


SPEC = UnionSpec()
