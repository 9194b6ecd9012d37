"""Instrument: lets everything pass and issues feedback."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from penstock.operators.instrument.operator import Instrument
from penstock.operators.shared.thinning import ThinningSpec
from penstock.plan.spec import Told, found_in, made_in

if TYPE_CHECKING:
    import random

    from penstock.contract.flow import Flow


class InstrumentSpec(ThinningSpec[Instrument]):
    operator = Instrument

    def looks_at(self, operator: Instrument) -> Collection[str]:
        return operator.schema.names

    behaviour = made_in("punctuation", "InstrumentBehaviour")

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
