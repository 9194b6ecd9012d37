"""Aggregates over windows of so many events.

An event's windows depend on how many events its group has had, so these counts are state too. There is one run of
partial rows per bucket, and one of counts; both are rewritten when something changes.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import FailingError
from penstock.kernels.duck import to_the_letter
from penstock.kernels.fold import matching
from penstock.kernels.stateful import Fresh, Held, Orders, Step
from penstock.operators.aggregate.folding import GroupKernel
from penstock.operators.aggregate.kernel import AggregateKernel

#: Runs of partial rows, and of how many events each group has had.
PARTIALS, POSITIONS = 0, 1


class CountKernel(GroupKernel):
    """One epoch of windows by count."""

    def __init__(self, groups: AggregateKernel) -> None:
        super().__init__(groups, groups.keys)

    def step(self, fresh: Sequence[pa.Table | None], held: Sequence[Sequence[Held]], orders: Orders) -> Step:
        """Count events into windows; those that are full give their results, and all of a group that is over."""
        (events,), (closers,), (runs,) = fresh, orders.release, held
        if events is None and not closers:
            return Step(self.nothing)
        kernel = self.groups
        partials = _rows(runs, PARTIALS, kernel.partial_schema)
        positions = _rows(runs, POSITIONS, kernel.position_schema)
        results: list[pa.Table] = []
        if events is not None:
            try:
                new, counted = kernel.count_windows(events, positions)
            except FailingError:
                # No argument fails on any of them where a condition is there to prevent it: that was tried before.
                with to_the_letter():
                    new, counted = kernel.count_windows(events, positions)
            positions = counted
            full, partials = kernel.close_counted(kernel.merge([partials, new]), positions)
            results.append(full)
        if closers:
            # A group that is over gives what its last windows have, full or not.
            done = matching(partials, closers)
            results.append(kernel.finalize(partials.filter(done)))
            partials = partials.filter(pc.invert(done))
            positions = positions.filter(pc.invert(matching(positions, closers)))
        kept = ((PARTIALS, partials), (POSITIONS, positions))
        added = tuple(Fresh(0, table.combine_chunks(), group) for group, table in kept if table.num_rows)
        return Step(pa.concat_tables(results), tuple(run.name for run in runs), added=added)


def _rows(runs: Sequence[Held], group: int, schema: pa.Schema) -> pa.Table:
    return pa.concat_tables([schema.empty_table(), *(run.rows for run in runs if run.group == group)])
