"""Aggregates over sessions: windows that last as long as events come.

The state of a session is one partial row: its start, its end and its aggregates so far. Partial rows of sessions that
overlap or touch are put together like those of any group, so no event is kept, in whatever order they come.

A result is promised by its end, the one time of it that makes progress: an event at or behind a frontier T makes or
extends no session that ends before T, and those that do are given out. How far back the starts of the others lie nobody
knows. So what is behind counts time by `window_end`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.errors import UserError
from penstock.operators.aggregate.groups import GroupsSpec
from penstock.operators.session_aggregate.operator import SessionAggregate
from penstock.plan.spec import Retraction, Traits, found_in, made_in, of_one

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from penstock.plan.consistency import Consistency
    from penstock.plan.operator import Operator


class SessionAggregateSpec(GroupsSpec[SessionAggregate]):
    """All that is known of aggregates over sessions, told when they are over or at once."""

    operator = SessionAggregate

    def traits(self, operator: SessionAggregate) -> Traits:
        told = operator.corrected
        return Traits(
            keeps_state=True, heeds_order=False, at_once=told, makes="any" if told else "one",
            exact=not told, listens=True, queues=False, retracts=Retraction.ANSWERS,
        )  # fmt: skip

    def revised(self, operator: SessionAggregate, inputs: Sequence[Operator], consistency: Consistency) -> Operator:
        from penstock.plan.weight import is_weighted, passing_weights, with_weight

        if any(is_weighted(i) for i in inputs):
            raise UserError(
                f"{operator.window!r}: a session keeps no events, so it cannot give one up that is taken back",
                hint="consistency=ps.Consistency.strong(remember=…) waits for what is final",
            )
        if not consistency.speculates:
            return passing_weights(operator, inputs)
        return replace(operator, inputs=tuple(inputs), schema=with_weight(operator.schema), corrected=True)

    def held(self, operator: SessionAggregate) -> dict[str, Any] | None:
        """A session is over when nothing more comes up to its end, nor at it."""
        return {**(super().held(operator) or {}), "size": 0, "through": True}

    judge = of_one("contract", "judge_sessions")
    bound = of_one("contract", "bound_sessions")

    def total(self, operator: SessionAggregate, below: Sequence[int | None]) -> int | None:
        """Each event makes one session at most; each that was told is taken back once at most."""
        return None if below[0] is None else (1 + operator.corrected) * below[0]

    respond = found_in("feedback", "respond_sessions")
    step = found_in("step", "step_of")
    reference = made_in("reference", "SessionAggregateReference")

    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        from penstock.operators.aggregate.example import some_groups
        from penstock.operators.window.example import extent, some_time

        on = some_time(random, below.schema)
        if on is None or any(below.schema.resolve(n) is not None for n in ("window_start", "window_end")):
            return None
        windows = below.window(session=extent(random.choice((1, 4, 10)), on, below.schema), on=on)
        return some_groups(random, windows, below.schema)


SPEC = SessionAggregateSpec()
