"""OrderBy: events in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.operators.order_by.operator import OrderBy
from penstock.plan.spec import Fact, Lineage, Measurements, Retraction, Spec, Told, Traits, found_in, made_in, same

if TYPE_CHECKING:
    import random
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from penstock.contract.flow import Flow, Verdict
    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound
    from penstock.pattern.pattern import Pattern
    from penstock.plan.response import Response


class OrderBySpec(Spec[OrderBy]):
    """Exactly, a sorted prefix at a time as punctuation completes it; or roughly and at once, with a buffer (slack)."""

    operator = OrderBy

    # --- the plan
    def traits(self, operator: OrderBy) -> Traits:
        return Traits(
            keeps_state=True, heeds_order=operator.slack is not None, at_once=False, makes="one",
            exact=True, listens=True, queues=False, retracts=Retraction.REFUSES,
        )  # fmt: skip

    def lineage(self, operator: OrderBy) -> Lineage:
        return same(operator)

    def facts(self, operator: OrderBy) -> Mapping[str, Fact]:
        return {}

    def reads(self, operator: OrderBy, port: int, wanted: frozenset[str]) -> Collection[str]:
        return operator.inputs[port].schema.names

    def computed(self, operator: OrderBy, below: Sequence[frozenset[str]], wanted: frozenset[str]) -> frozenset[str]:
        return frozenset(operator.schema.names)

    def definition(self, operator: OrderBy) -> str:
        return operator.detail

    def held(self, operator: OrderBy) -> dict[str, Any] | None:
        return {"kind": "order", "by": [n for n, _ in operator.by]}

    # --- punctuation
    behaviour = made_in("punctuation", "OrderBehaviour")

    # --- contracts
    def judge(self, operator: OrderBy, below: Sequence[Flow]) -> Verdict:
        from penstock.operators.order_by.contract import judge_order

        return judge_order(operator, below[0])

    def bound(self, operator: OrderBy, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        from penstock.operators.order_by.contract import bound_order

        return bound_order(operator, below[0], measured.epoch)

    def total(self, operator: OrderBy, below: Sequence[int | None]) -> int | None:
        return below[0]

    # --- feedback
    def respond(self, operator: OrderBy, pattern: Pattern) -> Response:
        from penstock.plan.response import Response
        from penstock.plan.responses import behind_only

        if operator.slack is not None:
            return behind_only(operator, "each event pushes another one out of the buffer")
        # Whatever the order of the others becomes, they all come out.
        mine = pattern.over(operator.inputs[0].schema)
        return Response(inputs=(mine,), send=((mine,),), purge=True)

    def passes_all(self, operator: OrderBy, pattern: Pattern) -> bool:
        return False

    def issues(self, operator: OrderBy, below: Sequence[Flow]) -> Iterable[Told]:
        return ()

    # --- running it
    step = found_in("step", "step_of")
    reference = made_in("reference", "OrderByReference")

    # --- tests
    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        names = below.schema.names
        chosen = random.sample(names, random.randint(1, min(2, len(names))))
        by = [name + random.choice(("", "", " desc")) for name in chosen]
        return below.order_by(*by, slack=random.choice((None, None, None, 2)))


SPEC = OrderBySpec()
