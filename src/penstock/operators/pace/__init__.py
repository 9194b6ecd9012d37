"""Pace: a union whose inputs may not fall behind each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.operators.pace.operator import Pace
from penstock.operators.shared.families import AtOnceSpec
from penstock.operators.union.operator import alike, of_any
from penstock.plan.spec import Lineage, Retraction, Surroundings, Told, Traits, found_in, given, made_in

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Sequence

    from penstock.contract.flow import Flow
    from penstock.pattern.pattern import Pattern
    from penstock.plan.response import Response
    from penstock.reference.running import Running


class PaceSpec(AtOnceSpec[Pace]):
    """A union that knows how far time has got, drops what is too far behind, and promises that it does.

    How far time has got is a matter of epochs, so results depend on how the stream is cut into them.
    """

    operator = Pace

    # --- the plan
    traits = given(Traits(
        keeps_state=False, heeds_order=True, at_once=True, makes="one",
        exact=False, listens=False, queues=False, retracts=Retraction.REFUSES,
    ))  # fmt: skip

    def lineage(self, operator: Pace) -> Lineage:
        return of_any(operator)

    # --- punctuation
    behaviour = found_in("punctuation", "PaceBehaviour")

    # --- contracts
    judge = found_in("contract", "judge_pace")
    rates = found_in("contract", "paced")
    total = found_in("penstock.operators.union.contract", "added", lambda operator, below: (below,))

    # --- feedback
    def respond(self, operator: Pace, pattern: Pattern) -> Response:
        from penstock.plan.responses import behind_only

        # Without the latest event others would not be too far behind, and come out though they never would have.
        why = f"its events tell how far `{operator.on}` has got, and so what is too far behind"
        return behind_only(operator, why)

    passes_all = given(False)

    def issues(self, operator: Pace, below: Sequence[Flow]) -> Iterable[Told]:
        """Each input is told what is too far behind by now."""
        from penstock.pattern.example import unwanted
        from penstock.pattern.restriction import less

        told = [unwanted(i.schema, {operator.on: less}) for i in operator.inputs]
        return [Told(port, feedback, widening=True) for port, feedback in enumerate(told)]

    # --- running it
    step = made_in("step", "PaceStep")

    def reference(self, operator: Pace, around: Surroundings) -> Running:
        from penstock.operators.pace import reference

        return reference.PaceReference(operator, around.node_id)

    # --- tests
    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        if other is None or not below.schema.times or not alike(below.schema, other.schema):
            return None
        from pyarrow.types import is_integer

        on, bound = random.choice(below.schema.times), random.choice((5, 40))
        return below.pace(other, on=on, bound=bound if is_integer(below.schema.type_of(on)) else f"{bound} s")


SPEC = PaceSpec()
