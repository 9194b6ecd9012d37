"""Joins with the last rows of each key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.operators.join.operator import PADDED, join_definition, lineage_of
from penstock.operators.rows_join.operator import RowsJoin
from penstock.operators.shared.answers import kept_by
from penstock.operators.shared.families import KeepingSpec
from penstock.plan.spec import Lineage, Retraction, Traits, found_in, given, made_in

if TYPE_CHECKING:
    import random


class RowsJoinSpec(KeepingSpec[RowsJoin]):
    """Events take their places in order of time, and the last ones of each key stay for partners to come.

    It is given whole rows: their content decides between events of the same time.
    """

    operator = RowsJoin

    # --- the plan
    traits = given(Traits(
        keeps_state=True, heeds_order=False, at_once=False, makes="any",
        exact=True, listens=True, queues=False, retracts=Retraction.REFUSES,
    ))  # fmt: skip

    def lineage(self, operator: RowsJoin) -> Lineage:
        return lineage_of(operator.columns, PADDED[operator.how])

    def definition(self, operator: RowsJoin) -> str:
        return join_definition(operator)

    def held(self, operator: RowsJoin) -> dict[str, Any] | None:
        keys = [[a for a, _ in operator.keys], [b for _, b in operator.keys]]
        return {"kind": "join", "keys": keys, "times": list(operator.times), "reach": {}}

    # --- punctuation
    behaviour = made_in("punctuation", "RowsJoinBehaviour")

    # --- contracts
    judge = found_in("contract", "judge_rows_join")
    bound = found_in("contract", "bound_rows_join")

    # --- feedback
    respond = found_in("feedback", "respond_rows_join")
    issues = made_in("feedback", "issues_rows_join")

    # --- running it
    step = kept_by("RowsJoinKernel")
    reference = made_in("reference", "RowsJoinReference")

    # --- tests
    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        from penstock.operators.join.example import drawn, times_of

        times = times_of(below, other)
        rows = random.choice((2, (3, 1), (1, None)))
        return None if times is None else drawn(random, below, other, rows=rows, times=times)


SPEC = RowsJoinSpec()
