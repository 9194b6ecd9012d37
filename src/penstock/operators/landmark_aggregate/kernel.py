"""Aggregates over landmark windows: all that has come since the origin, at the end of each period.

Such a window never ends for good: its totals stay. There is one run per bucket, rewritten when something changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import UserError
from penstock.kernels.duck import query, quote
from penstock.kernels.stateful import Fresh, Held, Orders, Step
from penstock.operators.aggregate.folding import GroupKernel
from penstock.operators.aggregate.kernel import AggregateKernel
from penstock.pattern.pattern import Pattern
from penstock.plan.window import LandmarkWindow, from_tick, to_tick

#: So many landmark windows may end in one epoch: each has a result of every group.
_PERIODS = 1_000_000


class LandmarkGroups(AggregateKernel):
    """The aggregates of landmark windows."""

    def landmark(self, partials: pa.Table, upto: Any, since: Any = None) -> tuple[pa.Table, pa.Table]:
        """Answers of the landmark windows that end in (since, upto], and the partial rows to carry on with.

        A window holds all periods up to its end, so each group that exists by then answers in each window. The rows
        carried on are one per group for all that has ended, and those of later periods.
        """
        window = self.window
        assert isinstance(window, LandmarkWindow)
        merged = self.merge([partials])
        label = merged.column(window.label)
        past, later = merged.filter(pc.less_equal(label, upto)), merged.filter(pc.greater(label, upto))
        if not past.num_rows:
            return self.output_schema.arrow.empty_table(), later
        if since is None:  # Before the first period with an event there is no group to answer for.
            first = to_tick(pc.min(past.column(window.label)).as_py(), window.unit)
        else:
            first = to_tick(since, window.unit) + window.every
        last = window.end((to_tick(upto, window.unit) - window.origin) // window.every)
        periods = range(first, last + 1, window.every)
        if len(periods) > _PERIODS:
            raise UserError(
                f"{self.operator_id}: {len(periods):,} landmark windows end at once, from "
                f"{from_tick(first, window.unit)} to {from_tick(last, window.unit)}",
                hint=f"a longer period in window(landmark=…): at most {_PERIODS:,} of them fit between two epochs",
            )
        ends = pa.array([from_tick(t, window.unit) for t in periods], label.type)
        ended = self._up_to(past, ends)
        base = self._up_to(past, pa.array([from_tick(last, window.unit)], label.type))
        return self.finalize(ended), pa.concat_tables([base, later])

    def _up_to(self, partials: pa.Table, ends: pa.Array) -> pa.Table:
        """For each end, the groups that exist by then, merged over all periods up to it."""
        assert self.window is not None
        label = quote(self.window.label)
        keys = "".join(f", p.{quote(k)}" for k in self.keys)
        sql = (
            f"SELECT e.__end AS {label}{keys}{self.merging()} FROM partials p JOIN ends e ON p.{label} <= e.__end"
            f" GROUP BY e.__end{keys}"
        )
        return self.partial_table(query(sql, partials=partials, ends=pa.table({"__end": ends})))


class LandmarkKernel(GroupKernel):
    """One epoch of landmark windows."""

    groups: LandmarkGroups

    def __init__(self, groups: LandmarkGroups) -> None:
        # Windows end for all groups together, so all of them are in one bucket: when the stream is over, the last
        # window is that of the latest event of any group.
        super().__init__(groups, ())

    def step(self, fresh: Sequence[pa.Table | None], held: Sequence[Sequence[Held]], orders: Orders) -> Step:
        """Add what arrived to the totals; the windows that have ended since give the results of all groups."""
        (delta,), (closers,), (runs,) = fresh, orders.release, held
        if delta is None and not closers:
            return Step(self.nothing)
        kernel = self.groups
        partials = kernel.merge([*(run.rows for run in runs), *([] if delta is None else [delta])])
        output = self.nothing
        # The end of the last window that was answered: closed by a frontier, or by the latest event when nothing could
        # come any more. How far that was only the state knows.
        known = [self.circumstances.closed, *(run.high for run in runs)]
        done = max((tick for tick in known if tick is not None), default=None)
        if closers and partials.num_rows:
            output, partials, done = self._end(partials, closers, done)
        added = (Fresh(0, partials.combine_chunks(), high=done),) if partials.num_rows else ()
        return Step(output, tuple(run.name for run in runs), added=added)

    def _end(
        self, partials: pa.Table, closers: Sequence[Pattern], done: int | None
    ) -> tuple[pa.Table, pa.Table, int | None]:
        window = self.groups.window
        assert isinstance(window, LandmarkWindow)
        bounds = [_bound(c, window.label) for c in closers]
        ends = [to_tick(b, window.unit) for b in bounds if b is not None]
        if None in bounds:
            # Nothing can come any more: up to the latest event, or to a frontier that has gone further.
            ends.append(to_tick(pc.max(partials[window.label]).as_py(), window.unit))
        upto, output = max(ends), self.nothing
        if done is None or upto > done:
            since = None if done is None else from_tick(done, window.unit)
            output, partials = self.groups.landmark(partials, from_tick(upto, window.unit), since)
            done = upto
        over = not all(c.restricted for c in closers)
        return output, partials.slice(0, 0) if over else partials, done


def _bound(closer: Pattern, label: str) -> Any:
    """The label up to which a closer reaches; None if it completes all windows."""
    return getattr(closer[label], "high", None)
