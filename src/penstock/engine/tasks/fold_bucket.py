"""One bucket of an aggregate in one epoch: which runs to read, what to purge, what is doomed, and what to write.

The kernel (`kernels.fold`) decides on rows; here it is decided on files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.checkpoint.runs import Change, Run, UnitKey, read_run, write_run
from penstock.engine.tasks.pipeline import Exchange
from penstock.engine.tasks.watch import Watch
from penstock.kernels.fold import fold, frontier_of, is_tickable, tick, ticks
from penstock.operators.aggregate.doomed import doomed_groups
from penstock.pattern.pattern import Pattern

if TYPE_CHECKING:
    from penstock.engine.tasks.task import Job, Merge, Report

#: Windows per unit: enough that a query has few units, few enough that a unit is a useful thing to move or drop.
UNIT_WINDOWS = 1024


def fold_bucket(
    job: Job, merging: Merge, exchange: Exchange, bucket: int, delta: list[pa.Table], report: Report, watch: Watch
) -> pa.Table:
    """Fold parcels of an aggregate into its state in one bucket: purge, close, keep the rest; what has closed.

    A group without an answer (its sum is too large for its type) becomes a dead letter, and its state goes.
    """
    exchange = replace(exchange, kernel=exchange.kernel.noting())
    found = _fold(job, merging, exchange, bucket, delta, report, watch)
    watch.failed(exchange.id, exchange.kernel.output_schema, exchange.kernel.failed or ())
    return found


def _fold(
    job: Job, merging: Merge, exchange: Exchange, bucket: int, delta: list[pa.Table], report: Report, watch: Watch
) -> pa.Table:
    assert job.checkpoint is not None
    closers = merging.closers.get(exchange.id, ())
    if exchange.by_count or exchange.landmark:
        from penstock.engine.tasks.special import fold_special

        return fold_special(job, merging, exchange, bucket, delta, closers, report)
    stored: list[tuple[str, pa.Table]] = []
    keys: dict[str, UnitKey] = {}
    purged = job.purges.get(f"{exchange.id}:groups", ())
    sweep = job.sweeps.get(exchange.id, ())
    everything = bool(purged) or bool(job.purges.get(exchange.id))
    for key, runs in merging.units.items():
        if key.operator == exchange.id and key.bucket == bucket:
            for run in runs:
                if everything or _may_close(run, closers, exchange):
                    stored.append((run.name, read_run(job.checkpoint, key, run)))
                    keys[run.name] = key
    if sweep:
        # A group that is doomed by what has arrived now alone is doomed; all of state is looked at once only.
        looked = [*delta, *(t for _, t in stored if everything)]
        doomed = doomed_groups(exchange.kernel, looked, sweep)
        report.doomed.setdefault(exchange.id, []).extend(p.to_json() for p in doomed)
    folded = fold(exchange.kernel, delta, stored, closers, exchange.closing, purged)
    if folded.purged:
        report.saved[f"{exchange.id} purged"] = report.saved.get(f"{exchange.id} purged", 0) + folded.purged
    changes: dict[UnitKey, Change] = {}
    for name in folded.dropped:
        before = changes.get(keys[name], Change(keys[name]))
        changes[keys[name]] = Change(before.key, (*before.dropped, name), before.skipped, before.added)
    for name, rows in folded.skipped:
        before = changes.get(keys[name], Change(keys[name]))
        changes[keys[name]] = Change(before.key, before.dropped, (*before.skipped, (name, rows)), before.added)
    if folded.rest is not None:
        for key, run in write_units(job, exchange, bucket, folded.rest):
            before = changes.get(key, Change(key))
            changes[key] = Change(key, before.dropped, before.skipped, (*before.added, run))
    report.changes.extend(changes.values())
    return folded.output


def _may_close(run: Run, closers: Sequence[Pattern], exchange: Exchange) -> bool:
    """Whether some closer can match a row of the run, judged by what the manifest says of it."""
    for closer in closers:
        frontier = frontier_of(closer, exchange.closing)
        if frontier is None or run.low is None or exchange.closing is None:
            return True
        bound, inclusive = frontier
        at = tick(bound, exchange.kernel.output_schema.type_of(exchange.closing))
        if run.low < at or (inclusive and run.low == at):
            return True
    return False


def write_units(job: Job, exchange: Exchange, bucket: int, table: pa.Table) -> Iterator[tuple[UnitKey, Run]]:
    """Store rows, sorted by the closing attribute, as one run per group of windows."""
    assert job.checkpoint is not None
    column = table[exchange.closing] if exchange.closing is not None else None
    if column is None or not is_tickable(column.type) or column.null_count:
        key = UnitKey(exchange.id, bucket)
        yield key, write_run(job.checkpoint, key, job.epoch, table, None, None)
        return
    values = ticks(column)
    slide = getattr(exchange.window, "slide", None)
    if slide is None:
        cuts, groups = [0, len(values)], [0]
    else:
        group = (values - exchange.window.origin) // (slide * UNIT_WINDOWS)  # type: ignore[union-attr]
        starts = [0, *((group[1:] != group[:-1]).nonzero()[0] + 1).tolist()]
        cuts, groups = [*starts, len(values)], [int(group[s]) for s in starts]
    for k, number in enumerate(groups):
        part = table.slice(cuts[k], cuts[k + 1] - cuts[k])
        key = UnitKey(exchange.id, bucket, number)
        low, high = int(values[cuts[k]]), int(values[cuts[k + 1] - 1])
        yield key, write_run(job.checkpoint, key, job.epoch, part, low, high)
