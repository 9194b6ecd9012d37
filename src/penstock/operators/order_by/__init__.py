"""OrderBy: events in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.operators.order_by.operator import OrderBy
from penstock.operators.shared.answers import kept_by
from penstock.operators.shared.families import KeepingSpec
from penstock.plan.spec import Retraction, Traits, made_in, of_one

if TYPE_CHECKING:
    import random

    from penstock.pattern.pattern import Pattern
    from penstock.plan.response import Response


class OrderBySpec(KeepingSpec[OrderBy]):
    """Exactly, a sorted prefix at a time as punctuation completes it; or roughly and at once, with a buffer (slack)."""

    operator = OrderBy

    # --- the plan
    def traits(self, operator: OrderBy) -> Traits:
        return Traits(
            keeps_state=True, heeds_order=operator.slack is not None, at_once=False, makes="one",
            exact=True, listens=True, queues=False, retracts=Retraction.REFUSES,
        )  # fmt: skip

    def held(self, operator: OrderBy) -> dict[str, Any] | None:
        return {"kind": "order", "by": [n for n, _ in operator.by]}

    # --- punctuation
    behaviour = made_in("punctuation", "OrderBehaviour")

    # --- contracts
    judge = of_one("contract", "judge_order")
    bound = of_one("contract", "bound_order")

    # --- feedback
    def respond(self, operator: OrderBy, pattern: Pattern) -> Response:
        from penstock.plan.response import Response
        from penstock.plan.responses import behind_only

        if operator.slack is not None:
            return behind_only(operator, "each event pushes another one out of the buffer")
        # Whatever the order of the others becomes, they all come out.
        mine = pattern.over(operator.inputs[0].schema)
        return Response(inputs=(mine,), send=((mine,),), purge=True)

    # --- running it
    step = kept_by("OrderKernel")
    reference = made_in("reference", "OrderByReference")

    # --- tests
    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        names = below.schema.names
        chosen = random.sample(names, random.randint(1, min(2, len(names))))
        by = [name + random.choice(("", "", " desc")) for name in chosen]
        return below.order_by(*by, slack=random.choice((None, None, None, 2)))


SPEC = OrderBySpec()
