"""Instrument: lets everything pass and issues feedback."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.operators.instrument.operator import Instrument
from penstock.plan.spec import Fact, Lineage, Measurements, Retraction, Spec, Told, Traits, found_in, made_in, same

if TYPE_CHECKING:
    import random

    from penstock.contract.flow import Flow, Verdict
    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound
    from penstock.pattern.pattern import Pattern
    from penstock.plan.response import Response


class InstrumentSpec(Spec[Instrument]):
    operator = Instrument

    def traits(self, operator: Instrument) -> Traits:
        return Traits(
            keeps_state=False, heeds_order=False, at_once=True, makes="one",
            exact=True, listens=False, queues=False, retracts=Retraction.PASSES,
        )  # fmt: skip

    def lineage(self, operator: Instrument) -> Lineage:
        return same(operator)

    def facts(self, operator: Instrument) -> Mapping[str, Fact]:
        return {}

    def reads(self, operator: Instrument, port: int, wanted: frozenset[str]) -> Collection[str]:
        return operator.inputs[port].schema.names

    def computed(self, operator: Instrument, below: Sequence[frozenset[str]], wanted: frozenset[str]) -> frozenset[str]:
        return below[0]

    def definition(self, operator: Instrument) -> str:
        return operator.detail

    def held(self, operator: Instrument) -> dict[str, Any] | None:
        return None

    behaviour = made_in("punctuation", "InstrumentBehaviour")

    def judge(self, operator: Instrument, below: Sequence[Flow]) -> Verdict:
        from penstock.contract.passing import passing

        return passing(operator, below[0])

    def bound(self, operator: Instrument, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        from penstock.contract.bounding import passing_rates
        from penstock.contract.size import Bound

        return Bound(), passing_rates(operator, below[0])

    def total(self, operator: Instrument, below: Sequence[int | None]) -> int | None:
        return below[0]

    def respond(self, operator: Instrument, pattern: Pattern) -> Response:
        from penstock.plan.responses import unchanged

        return unchanged(operator, pattern)

    def passes_all(self, operator: Instrument, pattern: Pattern) -> bool:
        return True

    def issues(self, operator: Instrument, below: Sequence[Flow]) -> Iterable[Told]:
        from penstock.operators.instrument.punctuation import said

        return [Told(0, said(operator, operator.every or 1), widening=isinstance(operator.says, str))]

    step = found_in("step", "step_of")
    reference = made_in("reference", "InstrumentReference")

    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        """It speaks of what never comes: results stay as they are, but guards are kept and told upstream."""
        from pyarrow.types import is_integer

        numbers = [k for k, attribute in enumerate(below.schema) if is_integer(attribute.type)]
        if not numbers:
            return None
        parts = ["*"] * len(below.schema)
        # Every type of integers has it, and nothing in the data of tests is so low.
        parts[random.choice(numbers)] = "< -100"
        return below.instrument(f"not [{', '.join(parts)}]", every=random.choice((None, 3)))


SPEC = InstrumentSpec()
