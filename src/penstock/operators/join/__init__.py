"""Join: two inputs on equal keys, within a band of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.operators.join.operator import PADDED, Join, join_definition, lineage_of
from penstock.plan.spec import Fact, Lineage, Measurements, Retraction, Spec, Traits, found_in, made_in

if TYPE_CHECKING:
    import random
    from collections.abc import Collection, Mapping, Sequence

    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound
    from penstock.pattern.pattern import Pattern
    from penstock.plan.behaviour import Behaviour


class JoinSpec(Spec[Join]):
    """Rows wait for partners until the other side has promised that none comes, and may come out alone then."""

    operator = Join

    # --- the plan
    def traits(self, operator: Join) -> Traits:
        return Traits(
            keeps_state=True, heeds_order=False, at_once=False, makes="any",
            exact=True, listens=True, queues=False, retracts=Retraction.REFUSES,
        )  # fmt: skip

    def lineage(self, operator: Join) -> Lineage:
        return lineage_of(operator.columns, PADDED[operator.how])

    def facts(self, operator: Join) -> Mapping[str, Fact]:
        return {}

    def reads(self, operator: Join, port: int, wanted: frozenset[str]) -> Collection[str]:
        from penstock.operators.join.meeting import used_by

        return used_by(operator, port)

    def computed(self, operator: Join, below: Sequence[frozenset[str]], wanted: frozenset[str]) -> frozenset[str]:
        return frozenset(operator.schema.names)

    def definition(self, operator: Join) -> str:
        return join_definition(operator)

    def held(self, operator: Join) -> dict[str, Any] | None:
        from penstock.operators.join.meeting import held_by

        return held_by(operator)

    # --- punctuation
    def behaviour(self, operator: Join, heard: bool) -> Behaviour:
        from penstock.operators.join.punctuation import JoinBehaviour

        return JoinBehaviour(operator, asks=heard)

    # --- contracts
    judge = found_in("contract", "judge_join")

    def bound(self, operator: Join, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        from penstock.operators.join.bound import bound_join

        return bound_join(operator, below, measured.epoch)

    def total(self, operator: Join, below: Sequence[int | None]) -> int | None:
        return None  # Each event may meet many.

    # --- feedback
    respond = found_in("feedback", "respond_join")

    def passes_all(self, operator: Join, pattern: Pattern) -> bool:
        return False

    issues = found_in("feedback", "issues_join")

    # --- running it
    step = found_in("step", "step_of")
    reference = made_in("reference", "JoinReference")

    # --- tests
    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        from penstock.operators.join.example import banded, drawn

        return drawn(random, below, other, thrifty=random.random() < 0.2, **banded(random, below, other))


SPEC = JoinSpec()
