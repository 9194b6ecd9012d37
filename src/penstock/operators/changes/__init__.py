"""Changes: what events of a stream with lifetimes say, as rows that hold from now on, or no longer do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.operators.changes.operator import Changes
from penstock.operators.shared.answers import as_it_is, behind_only, passing_carried
from penstock.operators.shared.families import AtOnceSpec
from penstock.plan.spec import Lineage, Retraction, Traits, given, made_in, of_one, same

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from penstock.contract.rates import Rates


class ChangesSpec(AtOnceSpec[Changes]):
    """It stands right behind a source whose events have lifetimes."""

    operator = Changes

    traits = given(Traits(
        keeps_state=False, heeds_order=False, at_once=True, makes="several",
        exact=True, listens=False, queues=False, retracts=Retraction.PASSES,
    ))  # fmt: skip

    heeds_lifetimes = given(True)

    def lineage(self, operator: Changes) -> Lineage:
        """All but the end, which a retraction moves."""
        return same(operator, [n for n in operator.inputs[0].schema.names if n != operator.lifetime.end])

    def reads(self, operator: Changes, port: int, wanted: frozenset[str]) -> Collection[str]:
        return {*wanted, *operator.lifetime.attributes} & {*operator.inputs[0].schema.names}

    revised = as_it_is
    behaviour = passing_carried
    judge = of_one("contract", "judge_changes")

    def rates(self, operator: Changes, below: Sequence[Rates]) -> Rates:
        """An event becomes two rows at most."""
        from dataclasses import replace

        return replace(below[0], schema=operator.schema, rate=None, unique=frozenset())

    respond = behind_only("a retraction is about an event that came before")
    passes_all = given(False)
    step = made_in("step", "ChangesStep")
    reference = made_in("reference", "ChangesReference")
    example = given(None)  # Nobody writes one: a stream whose events have lifetimes says it.


SPEC = ChangesSpec()
