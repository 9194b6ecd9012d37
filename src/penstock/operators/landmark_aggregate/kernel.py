"""Aggregates over landmark windows: all that has come since the origin, at the end of each period.

Such a window never ends for good: its totals stay. There is one run per bucket, rewritten when something changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.duck import query, quote
from penstock.kernels.stateful import Fresh, Held, Orders, Stepped
from penstock.operators.aggregate.folding import GroupKernel
from penstock.operators.aggregate.kernel import AggregateKernel
from penstock.pattern.pattern import Pattern
from penstock.plan.window import LandmarkWindow, from_tick


class LandmarkGroups(AggregateKernel):
    """The aggregates of landmark windows."""

    def landmark(self, partials: pa.Table, upto: Any, since: Any = None) -> tuple[pa.Table, pa.Table]:
        """Answers of the landmark windows that end in (since, upto], and the partial rows to carry on with.

        A window holds all periods up to its end; a group answers at the end of each period that has brought it events.
        The rows carried on are one per group for all that has ended, and those of later periods.
        """
        assert self.window is not None
        name = self.window.label
        merged = self.merge([partials])
        ended = pc.less_equal(merged.column(name), upto)
        totals = self._totals(merged.filter(ended))
        keys = ", ".join(quote(k) for k in self.keys)
        latest = f"max({quote(name)}) OVER ({f'PARTITION BY {keys}' if keys else ''})"
        base = self.partial_table(query(f"SELECT * FROM totals QUALIFY {quote(name)} = {latest}", totals=totals))
        fresh = totals if since is None else totals.filter(pc.greater(totals.column(name), since))
        return self.finalize(fresh), pa.concat_tables([base, merged.filter(pc.invert(ended))])

    def _totals(self, partials: pa.Table) -> pa.Table:
        """Each row merged with all earlier ones of its group."""
        assert self.window is not None
        label = quote(self.window.label)
        names = ", ".join(f"e.{quote(n)}" for n in self.grouping)
        same = "".join(f" AND p.{quote(k)} IS NOT DISTINCT FROM e.{quote(k)}" for k in self.keys)
        pairs = f"partials p JOIN ends e ON p.{label} <= e.{label}{same}"
        state = "".join(f", p.{quote(c)}" for c in self.partial_schema.names if c not in self.grouping)
        sql = self.merging(f"SELECT {names}{state} FROM {pairs}", self.grouping)
        return self.partial_table(query(sql, partials=partials, ends=partials.select(list(self.grouping))))


class LandmarkKernel(GroupKernel):
    """One epoch of landmark windows."""

    groups: LandmarkGroups

    def __init__(self, groups: LandmarkGroups) -> None:
        super().__init__(groups, ())  # All groups in one bucket: so checkpoints hold them.

    def step(self, fresh: Sequence[pa.Table | None], held: Sequence[Sequence[Held]], orders: Orders) -> Stepped:
        """Add what arrived to the totals; the periods that have ended since give the results of their groups."""
        (delta,), (closers,), (runs,) = fresh, orders.release, held
        if delta is None and not closers:
            return Stepped(self.nothing)
        kernel = self.groups
        partials = kernel.merge([*(run.rows for run in runs), *([] if delta is None else [delta])])
        output = self.nothing
        if closers and partials.num_rows:
            output, partials = self._end(partials, closers)
        added = (Fresh(0, partials.combine_chunks()),) if partials.num_rows else ()
        return Stepped(output, tuple(run.name for run in runs), added=added)

    def _end(self, partials: pa.Table, closers: Sequence[Pattern]) -> tuple[pa.Table, pa.Table]:
        window = self.groups.window
        assert isinstance(window, LandmarkWindow)
        bounds: list[Any] = [getattr(c[window.label], "high", None) for c in closers]
        over = None in bounds  # Nothing more can come, so all periods have ended.
        upto = pc.max(partials[window.label]).as_py() if over else max(bounds)
        tick = self.circumstances.closed
        since = None if tick is None else from_tick(tick, window.unit)
        output, rest = self.groups.landmark(partials, upto, since)
        return output, rest.slice(0, 0) if over else rest
