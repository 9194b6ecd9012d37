"""Submitting: from the plan of an epoch to tasks that scan it, in a thread of their own."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.engine.epoch.begun import Begun
from penstock.engine.source.frontier import count_spared, plan_tasks, tell_spared
from penstock.engine.source.split import Split
from penstock.engine.spark import jobs
from penstock.engine.spark.session import is_local
from penstock.engine.tally import added
from penstock.engine.tasks.job import Job
from penstock.engine.tasks.merge import Merge
from penstock.engine.tasks.report import TaskReport
from penstock.feedback.guards import Guards
from penstock.kernels.stateful import Laziness, Word

if TYPE_CHECKING:
    from penstock.engine.epoch.driver import Driver
    from penstock.engine.spark.residents import Residents

#: How the folders of parcels begin, followed by the number of the driver's process.
_PARCELS = "penstock-parcels-"
#: A second task costs about as much as reading this many bytes. Of an epoch of fewer one task scans and one merges, so
#: that on two cores one epoch is merged while the next is scanned, and nothing is done twice.
SMALLEST_TASK = 2 << 20
#: Epochs of fewer bytes go to tasks that stay, if nothing else is said: those on one machine, where a large parcel is a
#: file of which only the name travels, and those on several, where Spark is better at moving much.
RESIDENT_HERE, RESIDENT_ANYWHERE = 1 << 30, 64 << 20
#: State of so many rows is closed by one task as fast as by several.
SMALL_STATE = 200_000


def submit(driver: Driver, begun: Begun) -> None:
    """Start the scan of an epoch in its own thread, unless it is so small that it goes with the merge."""
    records: list[str] = []
    size = sum(s["bytes"] for splits in begun.plan.splits.values() for s in splits)
    begun.residents = _residents(driver, size)
    begun.patience = driver.settings.hung_after + size / (1 << 20)
    fuse_below = driver.settings.fuse_below
    for node_id, partitions in begun.plan.partitions.items():
        driver.promises[node_id].register(partitions)
    for node_id, (slack, _) in begun.plan.dial.items():
        driver.promises[node_id].turn(slack)
    # Sorted, as records are: a plan that is read back gives the same tasks in the same order.
    for node_id, stored in sorted(begun.plan.splits.items()):
        state = driver.promises[node_id]
        splits = [Split.from_json(s) for s in stored]
        begun.unreadable += [s for s in splits if s.unreadable]
        begun.spared += [(node_id, told) for told in tell_spared(state.promises, splits)]
        saved, shed = count_spared(driver.sources[node_id].name, splits)
        begun.saved, begun.shed = added([begun.saved, saved]), added([begun.shed, shed])
        for task in plan_tasks(state, splits, _tasks_for(splits, driver.parallelism)):
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
        guards=driver.inverted.patterns(guards, begun.plan.tables) if begun.to_drop is None else begun.to_drop,
        purges=guards.fresh if guards.epoch == begun.plan.epoch else {},
        told=_told(driver, begun.plan.told, guards),
        on_error=driver.settings.on_error,
        dropping=driver.shedder.dropping(begun.plan),
        groups=driver.buckets if driver.pipeline.labours or size >= SMALLEST_TASK or state_rows >= SMALL_STATE else 1,
        fused=bool(records) and driver.pipeline.levels == 1 and size < fuse_below,
    )
    if begun.residents is not None and begun.job.fused:
        # One of the tasks that stay does all of a tiny epoch, unless the next one can begin beside it.
        alone = size < SMALLEST_TASK and begun.job.groups == 1 and not (driver.settings.overlap and driver.hurried)
        begun.job = replace(begun.job, fused=alone)
    # Those that stay hand over little in memory.
    much = begun.residents is None or size >= RESIDENT_ANYWHERE
    if records and much and not begun.job.fused:
        begun.job = replace(begun.job, depot=_depot(driver, begun))
    if not records:
        begun.reports = Future()
        begun.reports.set_result([])
    elif not begun.job.fused:
        begun.reports = driver.scanner.submit(_scan, driver, begun)


def _told(driver: Driver, said: Mapping[str, Any], guards: Guards) -> dict[str, Word]:
    """What tasks are told, operator by operator: by behaviours, by feedback, and by settings."""
    lazy = Laziness(driver.settings.rewrite_above, driver.settings.merge_above)
    first, sweeps = guards.preferred, guards.sweeps
    ids = {**driver.pipeline.keepers, **said}
    return {i: Word(said.get(i), first.get(i, ()), sweeps.get(i, ()), lazy) for i in ids}


def _residents(driver: Driver, size: int) -> Residents | None:
    """The tasks that stay, for an epoch that is small enough; an ordinary job may need their slots."""
    if driver.lodging is None:
        return None
    below = driver.settings.resident_below
    if below is None:
        below = RESIDENT_HERE if _on_one_machine(driver) else RESIDENT_ANYWHERE
    small = size < below and driver.plain != driver.manifest.epoch
    found = driver.lodging.at_hand() if small else None
    if found is None:
        driver.lodging.make_room()
    return found


def _on_one_machine(driver: Driver) -> bool:
    return is_local(getattr(driver.spark.sparkContext, "master", None) or "")


def sweep_depots() -> None:
    """Delete the parcels of drivers that were killed, which had no time for it."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PARCELS}*-*"):
        number = folder.name.removeprefix(_PARCELS).partition("-")[0]
        if number.isdecimal() and not Path(f"/proc/{number}").exists() and Path("/proc/self").exists():
            shutil.rmtree(folder, ignore_errors=True)


def _depot(driver: Driver, begun: Begun) -> str | None:
    """A folder for parcels that is there as long as the epoch is under way; None if tasks may be on other machines."""
    if not _on_one_machine(driver):
        return None
    folder = tempfile.mkdtemp(prefix=f"{_PARCELS}{os.getpid()}-")
    weakref.finalize(begun, shutil.rmtree, folder, ignore_errors=True)
    return folder


def _scan(driver: Driver, begun: Begun) -> list[TaskReport]:
    assert begun.job is not None
    context, levels = driver.spark.sparkContext, driver.pipeline.levels
    if begun.residents is not None:
        begun.shelves, found = begun.residents.scan_alone(begun.job, begun.assignments, begun.patience)
    else:
        begun.parcels, found = jobs.scan_alone(context, begun.job, begun.assignments, levels)
    return found


def both(driver: Driver, begun: Begun, merging: Merge) -> tuple[list[TaskReport], list[TaskReport]]:
    """Scan and merge in one go; the reports of each."""
    assert begun.job is not None
    if begun.residents is not None:
        return begun.residents.scan_and_merge(begun.job, merging, begun.assignments, begun.patience)
    return jobs.scan_and_merge(driver.spark.sparkContext, begun.job, merging, begun.assignments)


def merge(driver: Driver, begun: Begun, merging: Merge) -> list[TaskReport]:
    """Merge what was scanned, by the same tasks."""
    assert begun.job is not None
    context, levels = driver.spark.sparkContext, driver.pipeline.levels
    if begun.residents is not None:
        return begun.residents.merge_alone(begun.job, merging, begun.shelves, levels, begun.patience)
    return jobs.merge_alone(context, begun.job, merging, begun.parcels, levels)


def _tasks_for(splits: Sequence[Split], parallelism: int) -> int:
    """As many tasks as cores, fewer when there is little to read."""
    return max(1, min(parallelism, sum(s.bytes for s in splits) // SMALLEST_TASK))
