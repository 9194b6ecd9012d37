"""The merge of the buckets of one level, inside a Spark task: state, and the flows behind it."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from penstock.checkpoint.runs import Units
from penstock.engine.epoch.punctuate import Standing, punctuate
from penstock.engine.tasks.bucket import step_bucket
from penstock.engine.tasks.exchange import REPORT, Parcel, decode, place
from penstock.engine.tasks.job import Job
from penstock.engine.tasks.report import TaskReport
from penstock.engine.tasks.room import FULL, no_room
from penstock.engine.tasks.send import let_go, note, send
from penstock.engine.tasks.watch import Watch
from penstock.engine.tasks.worker import fail_if_asked, settle, tune
from penstock.errors import PenstockError
from penstock.kernels.step import Keeping
from penstock.plan.orders import Orders


@dataclass(frozen=True)
class Merge:
    """What the merge of an epoch knows beyond the parcels: state before it, and the punctuations after its events.

    With `standing` instead of orders, the tasks find these themselves from the reports of the scan.
    """

    units: Units
    orders: dict[str, Orders] = field(default_factory=dict)
    #: How far operators were closed before the epoch.
    closed: dict[str, int] = field(default_factory=dict)
    standing: Standing | None = None


def merge(
    job: Job, merging: Merge, level: int, group: int, parcels: Iterable[tuple[int, Parcel]]
) -> Iterator[tuple[int, Parcel]]:
    """The buckets of one task on one level: take parcels into state, carry out the orders, run the flows behind."""
    arrived: dict[tuple[int, int], list[Parcel]] = {}
    told: list[Parcel] = []
    for bucket, parcel in parcels:
        if parcel.edge == REPORT:
            told.append(parcel)
        else:
            arrived.setdefault((bucket, parcel.edge), []).append(parcel)
    if merging.standing is not None:
        scans: list[TaskReport] = [pickle.loads(p.payload) for p in sorted(told, key=lambda p: p.origin)]
        if group > 0:
            told = []  # Every task has them; one passes them on.
        if any(s.error is not None for s in scans):
            yield from ((job.buckets, p) for p in told)
            return
        now = punctuate(job.pipeline(), merging.standing, scans)
        merging = replace(merging, orders=now.orders, closed=merging.standing.closed, standing=None)
    reports: list[TaskReport] = []
    for bucket in range(job.buckets):
        if place(job.buckets, job.groups, bucket) == group:
            reports.append(TaskReport(task=f"b{level}{bucket:03d}"))
            yield from _merge_bucket(job, merging, level, bucket, arrived, reports[-1])
    try:
        settle(job, reports)
    except PenstockError as error:
        reports[-1].error = error
    yield from ((job.buckets, Parcel(REPORT, (level, int(r.task[2:])), pickle.dumps(r))) for r in reports)
    # Parcels for later levels, and reports, go on to where they are wanted.
    yield from ((bucket, parcel) for (bucket, _), waiting in arrived.items() for parcel in waiting)
    yield from ((job.buckets, parcel) for parcel in told)


def _merge_bucket(
    job: Job,
    merging: Merge,
    level: int,
    bucket: int,
    arrived: dict[tuple[int, int], list[Parcel]],
    report: TaskReport,
) -> Iterator[tuple[int, Parcel]]:
    began = time.perf_counter()
    out: list[tuple[int, Parcel]] = []
    try:
        pipeline = job.pipeline()
        fail_if_asked(job, "merge")
        reached: dict[str, list[pa.Table]] = {}
        watch, account = Watch(on_error=job.on_error), report.account
        for keeper in pipeline.keepers_at(level):
            step = pipeline.keeping(keeper.id)
            cpu, steps = account.now(), account.spent
            fresh = [_arrived(step, arrived.pop((bucket, edge), ())) for edge in keeper.edges]

            def emit(rows: pa.Table, at: str = keeper.id) -> None:
                report.count(report.counts, at, rows.num_rows)
                for target, tables in pipeline.flow(at, rows, report.saved, watch, account=account).items():
                    reached.setdefault(target, []).extend(tables)
                let_go(job, pipeline, reached, report)

            rows = step_bucket(job, merging, keeper, bucket, fresh, report, watch, emit)
            if rows is not None:
                emit(rows)
            came = sum(f.num_rows for f in fresh if f is not None)
            account.took(keeper.id, came, report.counts.get(keeper.id, 0), cpu + account.spent - steps)
        note(job, watch, (), report)
        out = send(job, pipeline, reached, report, (level, bucket))
    except PenstockError as error:
        report.error = error
    except FULL:
        names = [k.id for k in pipeline.keepers_at(level)]
        report.error = no_room(", ".join(names), job.memory, sum(report.counts.values()), None)
    report.seconds = time.perf_counter() - began
    tune(job)
    yield from out


def _arrived(step: Keeping, parcels: Sequence[Parcel]) -> pa.Table | None:
    """The rows of several parcels in their order of arrival."""
    if not parcels:
        return None
    return step.together([decode(p.payload) for p in sorted(parcels, key=lambda p: p.origin)])
