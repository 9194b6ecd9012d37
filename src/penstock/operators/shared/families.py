"""What follows for whole families of operators, so that their specs say only what is their own.

`Spec` has no defaults. A room that takes the answers of a family says so by its base, and overrides what does not hold.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.plan.operator import Operator
from penstock.plan.spec import Fact, Lineage, Measurements, Spec, Told, given, same

if TYPE_CHECKING:
    from penstock.contract.flow import Flow
    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound

O = TypeVar("O", bound=Operator)  # noqa: E741


class UsualSpec(Spec[O]):
    """It looks at whole events, computes all attributes of its results, and tells nobody anything."""

    def facts(self, operator: O) -> Mapping[str, Fact]:
        return {}

    def reads(self, operator: O, port: int, wanted: frozenset[str]) -> Collection[str]:
        return operator.inputs[port].schema.names

    def computed(self, operator: O, below: Sequence[frozenset[str]], wanted: frozenset[str]) -> frozenset[str]:
        return frozenset(operator.schema.names)

    def definition(self, operator: O) -> str:
        return operator.meaning

    def total(self, operator: O, below: Sequence[int | None]) -> int | None:
        """Of an event comes one at most, or any number."""
        return below[0] if self.traits(operator).makes == "one" else None

    def issues(self, operator: O, below: Sequence[Flow]) -> Iterable[Told]:
        return ()


class KeepingSpec(UsualSpec[O]):
    """It keeps something from epoch to epoch: what was stored before a feedback came is still to be dropped."""

    passes_all = given(False)

    def lineage(self, operator: O) -> Lineage:
        return same(operator)

    def held(self, operator: O) -> dict[str, Any] | None:
        return {"kind": operator.kind}


class AtOnceSpec(UsualSpec[O]):
    """What becomes of an event is given out at once, so nothing is kept."""

    held = given(None)
    passes_all = given(True)

    @abstractmethod
    def rates(self, operator: O, below: Sequence[Rates]) -> Any:
        """How fast its output goes: `Rates`."""

    def bound(self, operator: O, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        from penstock.contract.size import Bound

        return Bound(), self.rates(operator, below)
