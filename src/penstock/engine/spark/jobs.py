"""The Spark jobs of an epoch: how scan and merge become stages.

A large epoch is two jobs. The first runs the scan and fetches its reports; asking Spark for the one shuffle partition
that holds them makes it run the whole scan and keep its shuffle files. The second is the merge. So the driver knows
what the sources promise before anything is merged, and the next scan can run beside the merge.

A small epoch is one job: the reports go to the merge tasks themselves, which draw the same conclusions from them. That
saves a job and a Python task, about a third of the fixed cost.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.engine.tasks.exchange import REPORT, Parcel, place
from penstock.engine.tasks.job import Job
from penstock.engine.tasks.merge import Merge, merge
from penstock.engine.tasks.report import TaskReport
from penstock.engine.tasks.scan import scan

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext


def scanned(context: SparkContext, job: Job, assignments: Sequence[str]) -> RDD[Any]:
    """The scan: one task per assignment."""
    records = context.parallelize(list(assignments), len(assignments))
    return records.mapPartitionsWithIndex(partial(scan, job))


def exchanged(job: Job, records: RDD[Any]) -> RDD[Any]:
    """Parcels at their buckets; the last partition is for reports."""
    return records.partitionBy(job.groups + 1, partial(place, job.buckets, job.groups))


def scan_alone(
    context: SparkContext, job: Job, assignments: Sequence[str], levels: int
) -> tuple[RDD[Any] | None, list[TaskReport]]:
    """Run the scan; its parcels stay with Spark until the merge asks for them."""
    records = scanned(context, job, assignments)
    if levels == 0:
        return None, reports(context.runJob(records, list))
    parcels = exchanged(job, records)
    return parcels, reports(context.runJob(parcels, list, [job.groups]))


def merge_alone(
    context: SparkContext, job: Job, merging: Merge, parcels: RDD[Any] | None, levels: int
) -> list[TaskReport]:
    """Run the merge, level by level, in one job."""
    if parcels is None:
        # Nothing was read, but something may close.
        nothing: list[tuple[int, Parcel]] = []
        parcels = context.parallelize(nothing, job.groups + 1)
    stage: RDD[Any] = parcels
    for level in range(1, levels + 1):
        stage = parcels.mapPartitionsWithIndex(partial(merge, job, merging, level))
        if level < levels:
            parcels = exchanged(job, stage)
    last = job.groups if levels == 1 else job.groups + 1
    return [r for r in reports(context.runJob(stage, list, list(range(last)))) if not r.scanned]


def scan_and_merge(
    context: SparkContext, job: Job, merging: Merge, assignments: Sequence[str]
) -> tuple[list[TaskReport], list[TaskReport]]:
    """Both in one job, for a plan with one level: reports of the scan, reports of the merge."""
    parcels = exchanged(job, scanned(context, job, assignments))
    stage = parcels.mapPartitionsWithIndex(partial(merge, job, merging, 1))
    found = reports(context.runJob(stage, list, list(range(job.groups))))
    return [r for r in found if r.scanned], [r for r in found if not r.scanned]


def reports(answers: Sequence[Any]) -> list[TaskReport]:
    return [pickle.loads(p.payload) for _, p in answers if p.edge == REPORT]
