"""Settle: what can no longer change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from penstock.operators.settle.operator import Settle
from penstock.operators.shared.answers import as_it_is, behind_only
from penstock.operators.shared.families import KeepingSpec
from penstock.plan.operator import Operator
from penstock.plan.spec import Measurements, Retraction, Traits, found_in, given, made_in, of_one

if TYPE_CHECKING:
    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound

H = TypeVar("H", bound=Operator)


class HoldingSpec(KeepingSpec[H]):
    """What operators answer alike that keep the rows that hold; nobody writes one, sinks ask for them."""

    def traits(self, operator: H) -> Traits:
        return Traits(
            keeps_state=True, heeds_order=False, at_once=False, makes="any",
            exact=True, listens=True, queues=False, retracts=Retraction.ANSWERS,
        )  # fmt: skip

    def bound(self, operator: H, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        from penstock.contract.size import Bound

        return Bound(None, None, None, None), replace(below[0], schema=operator.schema, rate=None)

    revised = as_it_is
    heeds_lifetimes = given(True)
    example = given(None)


class SettleSpec(HoldingSpec[Settle]):
    """A row is held as long as it may change."""

    operator = Settle

    behaviour = made_in("penstock.operators.shared.releasing", "ReleasingBehaviour")
    judge = of_one("contract", "judge_settle")
    respond = behind_only("what is final is told apart behind it")
    step = found_in("step", "step_of")
    reference = made_in("reference", "SettleReference")


SPEC = SettleSpec()
