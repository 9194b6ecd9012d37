"""What is known of every operator that lets some events pass, unchanged and at once, and drops the others.

Which of them is its own affair: it says so in its step and its reference. All else follows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, TypeVar

from penstock.operators.shared.answers import unchanged
from penstock.operators.shared.families import AtOnceSpec
from penstock.plan.operator import Operator
from penstock.plan.spec import Lineage, Retraction, Traits, given, of_one, same

if TYPE_CHECKING:
    from penstock.plan.behaviour import Behaviour

O = TypeVar("O", bound=Operator)  # noqa: E741


class ThinningSpec(AtOnceSpec[O]):
    """A spec of which `looks_at`, `step`, `reference` and `example` are left to write."""

    @abstractmethod
    def looks_at(self, operator: O) -> Collection[str]:
        """The attributes that decide which events pass."""

    traits = given(Traits(
        keeps_state=False, heeds_order=False, at_once=True, makes="one",
        exact=True, listens=False, queues=False, retracts=Retraction.PASSES,
    ))  # fmt: skip

    heeds_lifetimes = given(True)

    def lineage(self, operator: O) -> Lineage:
        return same(operator)

    def reads(self, operator: O, port: int, wanted: frozenset[str]) -> Collection[str]:
        return {*self.looks_at(operator), *wanted}

    def computed(self, operator: O, below: Sequence[frozenset[str]], wanted: frozenset[str]) -> frozenset[str]:
        return below[0]

    def behaviour(self, operator: O, heard: bool) -> Behaviour:
        """What holds of all events holds of some of them, so every punctuation passes."""
        from penstock.plan.behaviour import ThroughBehaviour

        return ThroughBehaviour(lambda pattern: [pattern.over(operator.schema)])

    judge = of_one("penstock.contract.verdicts", "passing")

    rates = of_one("penstock.contract.bounding", "passing_rates")

    respond = unchanged()
