"""Revised join: results at once, taken back when a partner comes or goes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.operators.join.operator import PADDED, join_definition, lineage_of
from penstock.operators.revised_join.operator import RevisedJoin
from penstock.plan.spec import Fact, Lineage, Measurements, Retraction, Spec, Told, Traits, found_in, made_in

if TYPE_CHECKING:
    import random
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from penstock.contract.flow import Flow, Verdict
    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound
    from penstock.pattern.pattern import Pattern
    from penstock.plan.behaviour import Behaviour
    from penstock.plan.operator import Operator
    from penstock.plan.response import Response


class RevisedJoinSpec(Spec[RevisedJoin]):
    """As a join, but that nothing waits: rows are kept until the other side has promised that nothing changes."""

    operator = RevisedJoin

    # --- the plan
    def traits(self, operator: RevisedJoin) -> Traits:
        return Traits(
            keeps_state=True, heeds_order=False, at_once=True, makes="any",
            exact=False, listens=True, queues=False, retracts=Retraction.ANSWERS,
        )  # fmt: skip

    def lineage(self, operator: RevisedJoin) -> Lineage:
        return lineage_of(operator.columns, PADDED[operator.how])

    def facts(self, operator: RevisedJoin) -> Mapping[str, Fact]:
        return {}

    def reads(self, operator: RevisedJoin, port: int, wanted: frozenset[str]) -> Collection[str]:
        from penstock.operators.join.meeting import used_by
        from penstock.plan.weight import WEIGHT

        return used_by(operator, port) | ({WEIGHT} if operator.weighted[port] else set())

    def computed(
        self, operator: RevisedJoin, below: Sequence[frozenset[str]], wanted: frozenset[str]
    ) -> frozenset[str]:
        return frozenset(operator.schema.names)

    def definition(self, operator: RevisedJoin) -> str:
        return join_definition(operator)

    def held(self, operator: RevisedJoin) -> dict[str, Any] | None:
        from penstock.operators.join.meeting import held_by

        return held_by(operator)

    # --- speculation
    def revised(self, operator: RevisedJoin, inputs: Sequence[Operator]) -> Operator:
        return replace(operator, inputs=tuple(inputs))

    # --- punctuation
    def behaviour(self, operator: RevisedJoin, heard: bool) -> Behaviour:
        from penstock.operators.join.punctuation import JoinBehaviour

        return JoinBehaviour(operator, asks=heard)

    # --- contracts
    def judge(self, operator: RevisedJoin, below: Sequence[Flow]) -> Verdict:
        from penstock.operators.join.contract import judge_join

        return replace(judge_join(operator, below), output="at once")

    def bound(self, operator: RevisedJoin, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        from penstock.operators.join.bound import bound_join

        bound, behind = bound_join(operator, below, measured.epoch)
        return replace(bound, delay=0), replace(behind, rate=None, unique=frozenset())

    def total(self, operator: RevisedJoin, below: Sequence[int | None]) -> int | None:
        return None

    # --- feedback
    def respond(self, operator: RevisedJoin, pattern: Pattern) -> Response:
        from penstock.plan.responses import behind_only

        return behind_only(operator, "results that are corrected later are told apart behind it")

    def passes_all(self, operator: RevisedJoin, pattern: Pattern) -> bool:
        return False

    def issues(self, operator: RevisedJoin, below: Sequence[Flow]) -> Iterable[Told]:
        return ()

    # --- running it
    step = found_in("step", "step_of")
    reference = made_in("reference", "RevisedJoinReference")

    # --- tests
    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        return None  # Nobody writes one: a query that speculates is made of one that does not.


SPEC = RevisedJoinSpec()
