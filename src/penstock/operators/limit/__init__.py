"""Limit: the first events, and then the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.operators.limit.operator import Limit
from penstock.plan.spec import Fact, Lineage, Measurements, Retraction, Spec, Told, Traits, found_in, made_in, same

if TYPE_CHECKING:
    import random
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from penstock.contract.flow import Flow, Verdict
    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound
    from penstock.pattern.pattern import Pattern
    from penstock.plan.response import Response


class LimitSpec(Spec[Limit]):
    """It counts what it lets through, and says that nothing more is wanted when there is enough."""

    operator = Limit

    # --- the plan
    def traits(self, operator: Limit) -> Traits:
        return Traits(
            keeps_state=True, heeds_order=True, at_once=False, makes="one",
            exact=True, listens=False, queues=False, retracts=Retraction.REFUSES,
        )  # fmt: skip

    def lineage(self, operator: Limit) -> Lineage:
        return same(operator)

    def facts(self, operator: Limit) -> Mapping[str, Fact]:
        return {}

    def reads(self, operator: Limit, port: int, wanted: frozenset[str]) -> Collection[str]:
        return operator.inputs[port].schema.names

    def computed(self, operator: Limit, below: Sequence[frozenset[str]], wanted: frozenset[str]) -> frozenset[str]:
        return frozenset(operator.schema.names)

    def definition(self, operator: Limit) -> str:
        return operator.detail

    def held(self, operator: Limit) -> dict[str, Any] | None:
        return {"kind": operator.kind}

    # --- punctuation
    behaviour = made_in("punctuation", "LimitBehaviour")

    # --- contracts
    def judge(self, operator: Limit, below: Sequence[Flow]) -> Verdict:
        from penstock.operators.limit.contract import judge_limit

        return judge_limit(operator, below[0])

    def bound(self, operator: Limit, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        from penstock.contract.bounding import sized
        from penstock.contract.size import HASH

        return sized(1, HASH, 0, (), "a count"), below[0]

    def total(self, operator: Limit, below: Sequence[int | None]) -> int | None:
        return min([operator.count, *(n for n in below if n is not None)])

    # --- feedback
    def respond(self, operator: Limit, pattern: Pattern) -> Response:
        from penstock.plan.responses import behind_only

        # The first n are counted before anybody looks at them.
        return behind_only(operator, "what is dropped before it would let others in")

    def passes_all(self, operator: Limit, pattern: Pattern) -> bool:
        return False

    def issues(self, operator: Limit, below: Sequence[Flow]) -> Iterable[Told]:
        """When there is enough, nothing is wanted."""
        from penstock.pattern.example import unwanted

        return [Told(0, unwanted(operator.inputs[0].schema, {}), widening=True)]

    # --- running it
    step = found_in("step", "step_of")
    reference = made_in("reference", "LimitReference")

    # --- tests
    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        return below.limit(random.randint(1, 5))


SPEC = LimitSpec()
