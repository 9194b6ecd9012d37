"""Aggregates whose state is not a bag of partial rows: windows by count, and landmark windows.

Both keep one run per bucket and rewrite it when something changes. By count, an event's windows depend on how many
events its group has had, so the counts are state too. A landmark window never ends for good: its totals stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.checkpoint.runs import Change, UnitKey, read_run, write_run
from penstock.errors import FailingError
from penstock.kernels.duck import to_the_letter
from penstock.kernels.fold import matching
from penstock.pattern.pattern import Pattern
from penstock.plan.window import from_tick, to_tick

if TYPE_CHECKING:
    from penstock.engine.tasks.pipeline import Exchange
    from penstock.engine.tasks.task import Job, Merge, Report

PARTIALS, POSITIONS = 0, 1


def fold_special(
    job: Job,
    merging: Merge,
    exchange: Exchange,
    bucket: int,
    delta: Sequence[pa.Table],
    closers: Sequence[Pattern],
    report: Report,
) -> pa.Table:
    if not delta and not closers:
        return exchange.kernel.output_schema.arrow.empty_table()
    if exchange.by_count:
        return _by_count(job, merging, exchange, bucket, delta, closers, report)
    return _landmark(job, merging, exchange, bucket, delta, closers, report)


def _load(job: Job, merging: Merge, key: UnitKey, empty: pa.Schema) -> pa.Table:
    assert job.checkpoint is not None
    tables = [read_run(job.checkpoint, key, r) for r in merging.units.get(key, ())]
    return pa.concat_tables(tables) if tables else empty.empty_table()


def _store(job: Job, merging: Merge, key: UnitKey, table: pa.Table, report: Report) -> None:
    assert job.checkpoint is not None
    dropped = tuple(r.name for r in merging.units.get(key, ()))
    added = (write_run(job.checkpoint, key, job.epoch, table.combine_chunks(), None, None),) if table.num_rows else ()
    if dropped or added:
        report.changes.append(Change(key, dropped=dropped, added=added))


def _by_count(
    job: Job,
    merging: Merge,
    exchange: Exchange,
    bucket: int,
    delta: Sequence[pa.Table],
    closers: Sequence[Pattern],
    report: Report,
) -> pa.Table:
    kernel = exchange.kernel
    open_key, count_key = UnitKey(exchange.id, bucket, PARTIALS), UnitKey(exchange.id, bucket, POSITIONS)
    partials = _load(job, merging, open_key, kernel.partial_schema)
    positions = _load(job, merging, count_key, kernel.position_schema)
    results: list[pa.Table] = []
    if delta:
        events = pa.concat_tables(delta)
        try:
            fresh, counted = kernel.count_windows(events, positions)
        except FailingError:
            # No argument fails on any of them where a condition is there to prevent it: that was tried before.
            with to_the_letter():
                fresh, counted = kernel.count_windows(events, positions)
        positions = counted
        full, partials = kernel.close_counted(kernel.merge([partials, fresh]), positions)
        results.append(full)
    if closers:
        # A group that is over gives what its last windows have, full or not.
        done = matching(partials, closers)
        results.append(kernel.finalize(partials.filter(done)))
        partials = partials.filter(pc.invert(done))
        positions = positions.filter(pc.invert(matching(positions, closers)))
    _store(job, merging, open_key, partials, report)
    _store(job, merging, count_key, positions, report)
    return pa.concat_tables(results)


def _landmark(
    job: Job,
    merging: Merge,
    exchange: Exchange,
    bucket: int,
    delta: Sequence[pa.Table],
    closers: Sequence[Pattern],
    report: Report,
) -> pa.Table:
    kernel, window = exchange.kernel, exchange.window
    key = UnitKey(exchange.id, bucket)
    partials = kernel.merge([_load(job, merging, key, kernel.partial_schema), *delta])
    output = kernel.output_schema.arrow.empty_table()
    if closers and partials.num_rows:
        assert window is not None
        bounds = [_bound(c, window.label) for c in closers]
        over = any(b is None for b in bounds)
        # At the end of everything: up to the latest event, or to a frontier that has gone further.
        reached = [b for b in bounds if b is not None]
        upto = max([*reached, pc.max(partials[window.label]).as_py()] if over else reached)
        tick = merging.since.get(exchange.id)
        since = None if tick is None else from_tick(tick, window.unit)  # type: ignore[attr-defined]
        if since is None or to_tick(upto, window.unit) > to_tick(since, window.unit):  # type: ignore[attr-defined]
            output, partials = kernel.landmark(partials, upto, since)
        if over:
            partials = partials.slice(0, 0)
    _store(job, merging, key, partials, report)
    return output


def _bound(closer: Pattern, label: str) -> Any:
    """The label up to which a closer reaches; None for the end of everything."""
    return getattr(closer[label], "high", None)
