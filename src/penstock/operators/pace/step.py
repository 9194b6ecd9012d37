"""What tasks do with the events of this operator."""

from __future__ import annotations

import pyarrow as pa

from penstock.kernels.duck import literal, quote
from penstock.kernels.step import Noting, TableStep
from penstock.kernels.ticks import from_tick
from penstock.operators.pace.kernel import pace
from penstock.operators.pace.operator import Pace
from penstock.pattern.duration import format_duration

#: Why such an event is a dead letter.
PACED = "paced"


class PaceStep(TableStep):
    """Drops those that are too far behind. They become dead letters, and these show all of them."""

    def __init__(self, operator: Pace) -> None:
        self.operator = operator
        self.takes = operator.schema

    def run(self, rows: pa.Table, noting: Noting) -> pa.Table:
        floor = noting.told
        found = pace(rows, self.operator.on, floor)
        if found.high is not None:
            noting.saw(found.high, max)
        if found.dropped.num_rows:
            assert floor is not None
            on = self.operator.on
            time = on if pa.types.is_timestamp(self.operator.schema.type_of(on)) else None
            noting.reject(found.dropped, self.operator.schema, PACED, self._told(floor), time)
        return found.passed

    def _told(self, floor: int) -> str:
        """What a dead letter says, in SQL: half a stream may be too far behind, so they are not made one by one."""
        on, bound = self.operator.on, self.operator.bound
        t = self.operator.schema.type_of(on)
        extent = format_duration(bound) if pa.types.is_timestamp(t) else f"{bound:,}"
        told = f" is more than {extent} behind the latest: before {from_tick(floor, t)}"
        return f"{literal(on + ' ')} || CAST({quote(on)} AS VARCHAR) || {literal(told)}"
