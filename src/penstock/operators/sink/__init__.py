"""Sink: where results go."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from penstock.operators.shared.thinning import ThinningSpec
from penstock.operators.sink.operator import Sink
from penstock.plan.spec import Surroundings, found_in, given

if TYPE_CHECKING:
    from penstock.reference.running import Running


class SinkSpec(ThinningSpec[Sink]):
    operator = Sink

    def looks_at(self, operator: Sink) -> Collection[str]:
        return operator.schema.names

    def computed(self, operator: Sink, below: Sequence[frozenset[str]], wanted: frozenset[str]) -> frozenset[str]:
        return frozenset(operator.schema.names)

    passes_all = given(False)
    step = found_in("step", "step_of")

    def reference(self, operator: Sink, around: Surroundings) -> Running:
        from penstock.operators.sink.reference import SinkReference

        return SinkReference()

    example = given(None)  # Nothing stands on a sink: whoever runs a plan ends it with one.


SPEC = SinkSpec()
