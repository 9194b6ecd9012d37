"""Aggregates over landmark windows: all that has come since the origin, at the end of each period.

Such a window never ends for good: its totals stay. There is one run per bucket, rewritten when something changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.stateful import Fresh, Held, Orders, Step
from penstock.operators.aggregate.folding import GroupKernel
from penstock.operators.aggregate.kernel import AggregateKernel
from penstock.pattern.pattern import Pattern
from penstock.plan.window import LandmarkWindow, from_tick, to_tick


class LandmarkKernel(GroupKernel):
    """One epoch of landmark windows."""

    def __init__(self, groups: AggregateKernel) -> None:
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
        if closers and partials.num_rows:
            output, partials = self._end(partials, closers)
        added = (Fresh(0, partials.combine_chunks()),) if partials.num_rows else ()
        return Step(output, tuple(run.name for run in runs), added=added)

    def _end(self, partials: pa.Table, closers: Sequence[Pattern]) -> tuple[pa.Table, pa.Table]:
        window = self.groups.window
        assert isinstance(window, LandmarkWindow)
        bounds = [_bound(c, window.label) for c in closers]
        over = any(b is None for b in bounds)
        # At the end of everything: up to the latest event, or to a frontier that has gone further.
        reached = [b for b in bounds if b is not None]
        upto = max([*reached, pc.max(partials[window.label]).as_py()] if over else reached)
        tick = self.circumstances.closed
        since = None if tick is None else from_tick(tick, window.unit)
        output = self.nothing
        if since is None or to_tick(upto, window.unit) > to_tick(since, window.unit):
            output, partials = self.groups.landmark(partials, upto, since)
        return output, partials.slice(0, 0) if over else partials


def _bound(closer: Pattern, label: str) -> Any:
    """The label up to which a closer reaches; None for the end of everything."""
    return getattr(closer[label], "high", None)
