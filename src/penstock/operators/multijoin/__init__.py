"""MultiJoin: several inputs on one key, at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.operators.join.operator import lineage_of, origins_in_words
from penstock.operators.multijoin.operator import MultiJoin
from penstock.plan.spec import Fact, Lineage, Measurements, Retraction, Spec, Told, Traits, found_in, made_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from penstock.contract.flow import Flow
    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound
    from penstock.pattern.pattern import Pattern
    from penstock.plan.behaviour import Behaviour
    from penstock.plan.response import Response


class MultiJoinSpec(Spec[MultiJoin]):
    """The join of two inputs, for any number of them: rows wait until all others have promised that none comes."""

    operator = MultiJoin

    # --- the plan
    def traits(self, operator: MultiJoin) -> Traits:
        return Traits(
            keeps_state=True, heeds_order=False, at_once=False, makes="any",
            exact=True, listens=True, queues=False, retracts=Retraction.REFUSES,
        )  # fmt: skip

    def lineage(self, operator: MultiJoin) -> Lineage:
        return lineage_of(operator.columns)

    def facts(self, operator: MultiJoin) -> Mapping[str, Fact]:
        return {}

    def reads(self, operator: MultiJoin, port: int, wanted: frozenset[str]) -> Collection[str]:
        from penstock.operators.join.meeting import used_by

        return used_by(operator, port)

    def computed(self, operator: MultiJoin, below: Sequence[frozenset[str]], wanted: frozenset[str]) -> frozenset[str]:
        return frozenset(operator.schema.names)

    def definition(self, operator: MultiJoin) -> str:
        return f"{operator.meaning}; {origins_in_words(operator.columns, operator.side_names)}"

    def held(self, operator: MultiJoin) -> dict[str, Any] | None:
        from penstock.operators.join.meeting import held_by

        return held_by(operator)

    # --- punctuation
    def behaviour(self, operator: MultiJoin, heard: bool) -> Behaviour:
        from penstock.operators.join.punctuation import JoinBehaviour

        return JoinBehaviour(operator, asks=heard)

    # --- contracts
    judge = found_in("contract", "judge_multijoin")

    def bound(self, operator: MultiJoin, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        from penstock.operators.multijoin.contract import bound_multijoin

        return bound_multijoin(operator, below, measured.epoch)

    def total(self, operator: MultiJoin, below: Sequence[int | None]) -> int | None:
        return None  # Each event may meet many.

    # --- feedback
    def respond(self, operator: MultiJoin, pattern: Pattern) -> Response:
        from penstock.operators.join.feedback import respond_join

        return respond_join(operator, pattern)

    def passes_all(self, operator: MultiJoin, pattern: Pattern) -> bool:
        return False

    def issues(self, operator: MultiJoin, below: Sequence[Flow]) -> Iterable[Told]:
        return ()

    # --- running it
    step = found_in("step", "step_of")
    reference = made_in("reference", "MultiJoinReference")

    # --- tests
    example = found_in("example", "drawn")


SPEC = MultiJoinSpec()
