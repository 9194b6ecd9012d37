"""Limit: the first events, and then the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.operators.limit.operator import Limit
from penstock.operators.shared.answers import behind_only, kept_by
from penstock.operators.shared.families import KeepingSpec
from penstock.plan.spec import Measurements, Retraction, Told, Traits, given, made_in, of_one

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Sequence

    from penstock.contract.flow import Flow
    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound


class LimitSpec(KeepingSpec[Limit]):
    """It counts what it lets through, and says that nothing more is wanted when there is enough."""

    operator = Limit

    # --- the plan
    traits = given(Traits(
        keeps_state=True, heeds_order=True, at_once=False, makes="one",
        exact=True, listens=False, queues=False, retracts=Retraction.REFUSES,
    ))  # fmt: skip

    # --- punctuation
    behaviour = made_in("punctuation", "LimitBehaviour")

    # --- contracts
    judge = of_one("contract", "judge_limit")

    def bound(self, operator: Limit, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        from penstock.contract.bounding import sized
        from penstock.contract.size import HASH

        return sized(1, HASH, 0, (), "a count"), below[0]

    def total(self, operator: Limit, below: Sequence[int | None]) -> int | None:
        return min([operator.count, *(n for n in below if n is not None)])

    # --- feedback
    # The first n are counted before anybody looks at them.
    respond = behind_only("what is dropped before it would let others in")

    def issues(self, operator: Limit, below: Sequence[Flow]) -> Iterable[Told]:
        """When there is enough, nothing is wanted."""
        from penstock.pattern.example import unwanted

        return [Told(0, unwanted(operator.inputs[0].schema, {}), widening=True)]

    # --- running it
    step = kept_by("LimitKernel")
    reference = made_in("reference", "LimitReference")

    # --- tests
    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        return below.limit(random.randint(1, 5))


SPEC = LimitSpec()
