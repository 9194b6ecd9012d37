"""Joins with the last rows of each key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.operators.join.operator import PADDED, join_definition, lineage_of
from penstock.operators.rows_join.operator import RowsJoin
from penstock.plan.spec import Fact, Lineage, Measurements, Retraction, Spec, Told, Traits, found_in, made_in

if TYPE_CHECKING:
    import random
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from penstock.contract.flow import Flow
    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound
    from penstock.pattern.pattern import Pattern


class RowsJoinSpec(Spec[RowsJoin]):
    """Events take their places in order of time, and the last ones of each key stay for partners to come."""

    operator = RowsJoin

    # --- the plan
    def traits(self, operator: RowsJoin) -> Traits:
        return Traits(
            keeps_state=True, heeds_order=False, at_once=False, makes="any",
            exact=True, listens=True, queues=False, retracts=Retraction.REFUSES,
        )  # fmt: skip

    def lineage(self, operator: RowsJoin) -> Lineage:
        return lineage_of(operator.columns, PADDED[operator.how])

    def facts(self, operator: RowsJoin) -> Mapping[str, Fact]:
        return {}

    def reads(self, operator: RowsJoin, port: int, wanted: frozenset[str]) -> Collection[str]:
        # The content of whole rows decides between events of the same time.
        return operator.inputs[port].schema.names

    def computed(self, operator: RowsJoin, below: Sequence[frozenset[str]], wanted: frozenset[str]) -> frozenset[str]:
        return frozenset(operator.schema.names)

    def definition(self, operator: RowsJoin) -> str:
        return join_definition(operator)

    def held(self, operator: RowsJoin) -> dict[str, Any] | None:
        keys = [[a for a, _ in operator.keys], [b for _, b in operator.keys]]
        return {"kind": "join", "keys": keys, "times": list(operator.times), "reach": {}}

    # --- punctuation
    behaviour = made_in("punctuation", "RowsJoinBehaviour")

    # --- contracts
    judge = found_in("contract", "judge_rows_join")

    def bound(self, operator: RowsJoin, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        from penstock.operators.rows_join.contract import bound_rows_join

        return bound_rows_join(operator, below, measured.epoch)

    def total(self, operator: RowsJoin, below: Sequence[int | None]) -> int | None:
        return None  # Each event may meet many.

    # --- feedback
    respond = found_in("feedback", "respond_rows_join")

    def passes_all(self, operator: RowsJoin, pattern: Pattern) -> bool:
        return False

    def issues(self, operator: RowsJoin, below: Sequence[Flow]) -> Iterable[Told]:
        from penstock.operators.rows_join.feedback import issues_rows_join

        return issues_rows_join(operator)

    # --- running it
    step = found_in("step", "step_of")
    reference = made_in("reference", "RowsJoinReference")

    # --- tests
    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        from penstock.operators.join.example import drawn, times_of

        times = times_of(below, other)
        rows = random.choice((2, (3, 1), (1, None)))
        return None if times is None else drawn(random, below, other, rows=rows, times=times)


SPEC = RowsJoinSpec()
