"""Results where nothing holds: what SQL has aggregates of no rows come to, from the first moment of a group on."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.kernels.duck import query
from penstock.kernels.index import Mask, Positions
from penstock.kernels.ticks import Ticks
from penstock.operators.aggregate.kernel import NOT_OF_NOTHING, AggregateKernel
from penstock.operators.shared.stock import FOREVER
from penstock.operators.snapshot.intervals import Line


class Zeros:
    """Of the groups of an epoch, what they come to where nothing holds.

    `keys` says the key of each group; it is a table with a row for each.
    """

    def __init__(self, groups: AggregateKernel, keys: pa.Table) -> None:
        self.groups, self.keys = groups, keys

    def first(self, count: int, *seen: tuple[Positions, Ticks]) -> Ticks:
        """Where each group begins: at the first of some moments of it. One that has none begins never."""
        found = np.full(count, FOREVER)
        for group, at in seen:
            np.minimum.at(found, group, at)
        return found

    def between(
        self, line: Line, bounds: Positions, intervals: Positions, full: Mask, first: Ticks, number: str
    ) -> pa.Table:
        """Partial rows of the intervals that are not full, as far as their group has begun."""
        group = line.group(bounds[intervals])
        some = ~full & (line.tick(bounds[intervals]) >= first[group])
        chosen = {number: pa.array(intervals[some], pa.int64())}
        keys = self.keys.take(pa.array(group[some]))
        chosen |= {n: keys[n] for n in self.groups.keys if n != number}
        nothing = self._of_nothing.take(pa.array(np.zeros(int(some.sum()), dtype=np.int64)))
        chosen |= {n: nothing[n] for n in nothing.column_names}
        return self.groups.partial_table(pa.table(chosen))

    @property
    def _of_nothing(self) -> pa.Table:
        """The one partial row of no rows."""
        groups = self.groups
        alone = AggregateKernel(groups.input_schema, (), groups.aggregations, time=groups.time)
        sql = alone.partial_sql("SELECT * FROM events").replace(NOT_OF_NOTHING, "")
        return alone.partial_table(query(sql, events=groups.input_schema.arrow.empty_table()))
