"""Aggregates over windows of so many events.

An event's windows depend on how many events its group has had, so these counts are state too. There is one run of
partial rows per bucket, and one of counts; both are rewritten when something changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import FailingError
from penstock.kernels.duck import query, quote, to_the_letter
from penstock.kernels.fold import matching
from penstock.kernels.stateful import Fresh, Held, Orders, Stepped
from penstock.operators.aggregate.folding import GroupKernel
from penstock.operators.aggregate.kernel import AggregateKernel, cast
from penstock.plan.window import CountWindow

#: Runs of partial rows, and of how many events each group has had.
PARTIALS, POSITIONS = 0, 1


class CountGroups(AggregateKernel):
    """The aggregates of windows by count."""

    @cached_property
    def position_schema(self) -> pa.Schema:
        """State of windows by count: how many events each group has had."""
        return pa.schema([*((k, self.input_schema.type_of(k)) for k in self.keys), ("__next", pa.int64())])

    def count_windows(self, events: pa.Table, positions: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Partial rows of events in order of arrival, and the new positions of the groups."""
        window = self.window
        assert isinstance(window, CountWindow)
        numbered = events.append_column("__arrival", pa.array(np.arange(events.num_rows)))
        same = " AND ".join(f"e.{quote(k)} IS NOT DISTINCT FROM s.{quote(k)}" for k in self.keys) or "TRUE"
        over = f"PARTITION BY {', '.join(f'e.{quote(k)}' for k in self.keys)} " if self.keys else ""
        position = f"row_number() OVER ({over}ORDER BY e.__arrival) - 1 + COALESCE(s.__next, 0)"
        placed = f"SELECT e.*, {position} AS __position FROM events e LEFT JOIN positions s ON {same}"
        partials = query(self.windowed(placed, window, '"__position"'), events=numbered, positions=positions)
        keys = ", ".join(quote(k) for k in self.keys)
        counted = (
            f"SELECT {keys + ', ' if keys else ''}count(*) AS __next FROM events {f'GROUP BY {keys}' if keys else ''}"
        )
        both = f"SELECT * FROM positions UNION ALL {counted}"
        group = f"GROUP BY {keys}" if keys else "HAVING sum(__next) > 0"
        total = f"SELECT {keys + ', ' if keys else ''}CAST(sum(__next) AS BIGINT) AS __next FROM ({both}) {group}"
        return self.partial_table(partials), cast(
            query(total, events=events, positions=positions), self.position_schema
        )

    def close_counted(self, partials: pa.Table, positions: pa.Table) -> tuple[pa.Table, pa.Table]:
        """The answers of the windows by count that are full, and the partial rows of the others."""
        window = self.window
        assert isinstance(window, CountWindow)
        same = " AND ".join(f"p.{quote(k)} IS NOT DISTINCT FROM s.{quote(k)}" for k in self.keys) or "TRUE"
        full = f"COALESCE(p.{quote(window.label)} + {window.size} <= s.__next, FALSE)"
        sql = f"SELECT p.*, {full} AS __full FROM partials p LEFT JOIN positions s ON {same}"
        rows = query(sql, partials=partials, positions=positions)
        mask, rows = rows.column("__full"), rows.drop_columns(["__full"])
        return self.finalize(rows.filter(mask)), self.partial_table(rows.filter(pc.invert(mask)))


class CountKernel(GroupKernel):
    """One epoch of windows by count."""

    groups: CountGroups

    def __init__(self, groups: CountGroups) -> None:
        super().__init__(groups, groups.keys)

    def step(self, fresh: Sequence[pa.Table | None], held: Sequence[Sequence[Held]], orders: Orders) -> Stepped:
        """Count events into windows; those that are full give their results, and all of a group that is over."""
        (events,), (closers,), (runs,) = fresh, orders.release, held
        if events is None and not closers:
            return Stepped(self.nothing)
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
        return Stepped(pa.concat_tables(results), tuple(run.name for run in runs), added=added)


def _rows(runs: Sequence[Held], group: int, schema: pa.Schema) -> pa.Table:
    return pa.concat_tables([schema.empty_table(), *(run.rows for run in runs if run.group == group)])
