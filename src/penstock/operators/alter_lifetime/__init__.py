"""AlterLifetime: rows that hold at other times, by a rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.operators.alter_lifetime.operator import AlterLifetime
from penstock.operators.shared.answers import behind_only
from penstock.operators.shared.families import AtOnceSpec
from penstock.pattern.schema import SYNC
from penstock.plan.spec import Lineage, Retraction, Traits, given, made_in, of_one, same
from penstock.plan.weight import WEIGHT, is_weighted

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from penstock.contract.rates import Rates
    from penstock.plan.behaviour import Behaviour


class AlterLifetimeSpec(AtOnceSpec[AlterLifetime]):
    """A row at a time; a retraction becomes one, or nothing."""

    operator = AlterLifetime

    traits = given(Traits(
        keeps_state=False, heeds_order=False, at_once=True, makes="any",
        exact=True, listens=True, queues=False, retracts=Retraction.PASSES,
    ))  # fmt: skip
    heeds_lifetimes = given(True)

    def lineage(self, operator: AlterLifetime) -> Lineage:
        """All but when rows hold."""
        gone = {*operator.schema.lifetime, SYNC, WEIGHT}
        return same(operator, [n for n in operator.schema.names if n not in gone])

    def reads(self, operator: AlterLifetime, port: int, wanted: frozenset[str]) -> Collection[str]:
        return operator.inputs[0].schema.names

    def behaviour(self, operator: AlterLifetime, heard: bool) -> Behaviour:
        from functools import partial

        from penstock.operators.alter_lifetime.punctuation import altered
        from penstock.plan.behaviour import ThroughBehaviour

        return ThroughBehaviour(partial(altered, operator))

    judge = of_one("contract", "judge_altered")

    def rates(self, operator: AlterLifetime, below: Sequence[Rates]) -> Rates:
        from dataclasses import replace

        known = replace(below[0], schema=operator.schema, unique=frozenset())
        return replace(known, rate=None) if is_weighted(operator) else known

    respond = behind_only("when rows hold is altered here")
    passes_all = given(False)
    step = made_in("step", "AlterLifetimeStep")
    reference = made_in("reference", "AlterLifetimeReference")
    example = given(None)  # It stands on streams with lifetimes alone, which random plans have none of.


SPEC = AlterLifetimeSpec()
