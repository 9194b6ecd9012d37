"""What becomes of what a task has made: parcels, results, dead letters."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.tasks.exchange import Parcel, encode, scatter
from penstock.engine.tasks.job import Job
from penstock.engine.tasks.pipeline import Pipeline
from penstock.engine.tasks.report import TaskReport
from penstock.engine.tasks.room import held, in_bytes
from penstock.engine.tasks.watch import Watch
from penstock.plan.weight import WEIGHT


def note(job: Job, watch: Watch, letters: Sequence[pa.Table], report: TaskReport) -> None:
    """Report what operators have seen; write dead letters, theirs and others, and count them."""
    report.seen = watch.seen
    if found := [*letters, *watch.letters]:
        table = pa.concat_tables(found)
        for pair in table["reason"].value_counts().to_pylist():
            report.count(report.dead, pair["values"], pair["counts"])
        report.outputs.extend(job.stagings["dead"].write(table, job.epoch, report.task))


def let_go(job: Job, pipeline: Pipeline, reached: dict[str, list[pa.Table]], report: TaskReport) -> None:
    """Of what a task has made so far, when it is much: write results, put groups together; the rest must fit."""
    room = in_bytes(job.memory)
    if held(reached.values()) < room // 4:
        return
    for target, tables in reached.items():
        if target in pipeline.ports:
            keeper, _ = pipeline.ports[target]
            if keeper.groups:
                reached[target] = [pipeline.keeping(keeper.id).together(tables)]
        elif tables:
            part = sum(o.sink == target for o in report.outputs)
            _write(job, target, tables, f"{report.task}-{part:04d}", report)
            reached[target] = []
    if held(reached.values()) > room:
        raise MemoryError


def send(
    job: Job, pipeline: Pipeline, reached: dict[str, list[pa.Table]], report: TaskReport, origin: tuple[int, ...]
) -> list[tuple[int, Parcel]]:
    """Parcels for the operators with state that rows have reached; results for the sinks they have."""
    parcels: list[tuple[int, Parcel]] = []
    for target, tables in reached.items():
        if not tables:
            continue
        if target not in pipeline.ports:
            _write(job, target, tables, report.task, report)
            continue
        keeper, port = pipeline.ports[target]
        rows = pipeline.keeping(keeper.id).together(tables)
        for bucket, part in scatter(rows, keeper.kernel.spread[port], job.buckets):
            parcels.append((bucket, Parcel(keeper.edges[port], origin, encode(part, job.depot))))
    return parcels


def _write(job: Job, sink: str, tables: Sequence[pa.Table], name: str, report: TaskReport) -> None:
    table = pa.concat_tables(tables)
    report.count(report.counts, sink, table.num_rows)
    report.outputs.extend(job.stagings[sink].write(table, job.epoch, name))
    if WEIGHT in table.column_names:
        report.retracted += pc.sum(pc.less(table[WEIGHT], 0)).as_py() or 0
