"""Settle: what can no longer change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.operators.settle.operator import Settle
from penstock.plan.operator import Operator
from penstock.plan.spec import Fact, Lineage, Measurements, Retraction, Spec, Told, Traits, found_in, made_in, same

if TYPE_CHECKING:
    import random

    from penstock.contract.flow import Flow, Verdict
    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound
    from penstock.pattern.pattern import Pattern
    from penstock.plan.consistency import Consistency
    from penstock.plan.response import Response

H = TypeVar("H", bound=Operator)


class HoldingSpec(Spec[H]):
    """What operators answer alike that keep the rows that hold; nobody writes one, sinks ask for them."""

    def traits(self, operator: H) -> Traits:
        return Traits(
            keeps_state=True, heeds_order=False, at_once=False, makes="any",
            exact=True, listens=True, queues=False, retracts=Retraction.ANSWERS,
        )  # fmt: skip

    def lineage(self, operator: H) -> Lineage:
        return same(operator)

    def facts(self, operator: H) -> Mapping[str, Fact]:
        return {}

    def reads(self, operator: H, port: int, wanted: frozenset[str]) -> Collection[str]:
        return operator.inputs[port].schema.names

    def computed(self, operator: H, below: Sequence[frozenset[str]], wanted: frozenset[str]) -> frozenset[str]:
        return frozenset(operator.schema.names)

    def definition(self, operator: H) -> str:
        return operator.detail

    def held(self, operator: H) -> dict[str, Any] | None:
        return {"kind": operator.kind}

    def bound(self, operator: H, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        from penstock.contract.size import Bound

        return Bound(None, None, None, None), replace(below[0], schema=operator.schema, rate=None)

    def total(self, operator: H, below: Sequence[int | None]) -> int | None:
        return None

    def passes_all(self, operator: H, pattern: Pattern) -> bool:
        return False

    def issues(self, operator: H, below: Sequence[Flow]) -> Iterable[Told]:
        return ()

    def revised(self, operator: H, inputs: Sequence[Operator], consistency: Consistency) -> Operator:
        return replace(operator, inputs=tuple(inputs))

    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        return None


class SettleSpec(HoldingSpec[Settle]):
    """A row is held as long as it may change."""

    operator = Settle

    behaviour = made_in("punctuation", "SettlingBehaviour")

    def judge(self, operator: Settle, below: Sequence[Flow]) -> Verdict:
        from penstock.operators.settle.contract import judge_settle

        return judge_settle(operator, below[0])

    def respond(self, operator: Settle, pattern: Pattern) -> Response:
        from penstock.plan.responses import behind_only

        return behind_only(operator, "what is final is told apart behind it")

    step = found_in("step", "step_of")
    reference = made_in("reference", "SettleReference")


SPEC = SettleSpec()
