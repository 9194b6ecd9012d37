"""Submitting: from the plan of an epoch to tasks that scan it, in a thread of their own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from penstock.engine.epoch.begun import Begun
from penstock.engine.source.frontier import count_spared, plan_tasks, tell_spared
from penstock.engine.source.split import Split
from penstock.engine.spark import jobs
from penstock.engine.tally import added
from penstock.engine.tasks.job import Job
from penstock.engine.tasks.report import Report
from penstock.kernels.stateful import Laziness

if TYPE_CHECKING:
    from penstock.engine.epoch.driver import Driver

#: Starting a task costs about as much as reading this many bytes.
SMALLEST_TASK = 1 << 20
#: State of so many rows is closed by one task as fast as by several.
SMALL_STATE = 200_000


def submit(driver: Driver, begun: Begun) -> None:
    """Start the scan of an epoch in its own thread, unless it is so small that it goes with the merge."""
    context = driver.spark.sparkContext
    records: list[str] = []
    size = 0
    for node_id, partitions in begun.plan.partitions.items():
        driver.promises[node_id].register(partitions)
    # Sorted, as records are: a plan that is read back gives the same tasks in the same order.
    for node_id, stored in sorted(begun.plan.splits.items()):
        state = driver.promises[node_id]
        splits = [Split.from_json(s) for s in stored]
        size += sum(s.bytes for s in splits)
        begun.unreadable += [s for s in splits if s.unreadable]
        begun.spared += [(node_id, told) for told in tell_spared(state.promises, splits)]
        begun.saved = added([begun.saved, count_spared(driver.sources[node_id].name, splits)])
        for task in plan_tasks(state, splits, _tasks_for(splits, context.defaultParallelism)):
            pairs = [(s.to_json(), None if k is None else k.to_json()) for s, k in task]
            records.append(json.dumps({"source": node_id, "splits": pairs}))
    state_rows = sum(r.live for runs in driver.manifest.units.values() for r in runs)
    digest, blob = driver.pipeline.blob
    guards = driver.feedback.under(begun.plan.control)
    begun.assignments = records
    begun.job = Job(
        digest=digest,
        blob=blob,
        epoch=begun.plan.epoch,
        buckets=driver.buckets,
        checkpoint=driver.checkpoint.storage,
        stagings={name: t.staging for name, t in driver.targets.items()},
        batch_rows=driver.settings.batch_rows,
        memory=driver.settings.memory,
        fault=driver.settings.fault,
        tables=begun.plan.tables,
        laziness=Laziness(driver.settings.rewrite_above, driver.settings.merge_above),
        guards=driver.inverted.patterns(guards, begun.plan.tables) if begun.to_drop is None else begun.to_drop,
        purges=guards.fresh if guards.epoch == begun.plan.epoch else {},
        sweeps=guards.sweeps,
        preferred=guards.preferred,
        told=begun.plan.told,
        on_error=driver.settings.on_error,
        groups=driver.buckets if driver.pipeline.labours or size >= SMALLEST_TASK or state_rows >= SMALL_STATE else 1,
        fused=bool(records) and driver.pipeline.levels == 1 and size < driver.settings.fuse_below,
    )
    if not records:
        begun.reports = Future()
        begun.reports.set_result([])
    elif not begun.job.fused:
        begun.reports = driver.scanner.submit(_scan, driver, begun)


def _scan(driver: Driver, begun: Begun) -> list[Report]:
    assert begun.job is not None
    context = driver.spark.sparkContext
    begun.parcels, found = jobs.scan_alone(context, begun.job, begun.assignments, driver.pipeline.levels)
    return found


def _tasks_for(splits: Sequence[Split], parallelism: int) -> int:
    """As many tasks as cores, fewer when there is little to read."""
    return max(1, min(parallelism, sum(s.bytes for s in splits) // SMALLEST_TASK))
