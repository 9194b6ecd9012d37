"""The scan of an epoch's input, inside a Spark task.

A task is a plain function of its arguments. It reads files that the epoch's plan names, writes files under names
nobody else has, and reports. Running it twice is harmless: only what is reported, and then committed, counts.
"""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from penstock.engine.source.formats.read import columns_to_read, read
from penstock.engine.source.listing import reader_options, source_of
from penstock.engine.source.pieces import Portion, pieces
from penstock.engine.source.promises.check import Checker
from penstock.engine.source.promises.known import Known
from penstock.engine.source.pruning.guard import apply_guard
from penstock.engine.source.split import Split
from penstock.engine.tasks.columns import needed
from penstock.engine.tasks.exchange import REPORT, Parcel, place
from penstock.engine.tasks.job import Job
from penstock.engine.tasks.origin import Origin, origin
from penstock.engine.tasks.pipeline import Pipeline
from penstock.engine.tasks.report import TaskReport
from penstock.engine.tasks.room import FULL, no_room
from penstock.engine.tasks.send import note, send
from penstock.engine.tasks.watch import Watch
from penstock.engine.tasks.worker import fail_if_asked, settle, tune
from penstock.errors import PenstockError
from penstock.plan.place import Place


def scan(job: Job, index: int, assignments: Iterable[str]) -> Iterator[tuple[int, Parcel]]:
    """Read splits, check promises, run the flows of stage 0, send parcels; one report at the end."""
    work = list(assignments)  # Consumed whole: a worker that leaves input unread is not reused.
    report = TaskReport(task=f"s{index:03d}")
    began = time.perf_counter()
    parcels: list[tuple[int, Parcel]] = []
    try:
        pipeline = job.pipeline()
        fail_if_asked(job, "scan")
        reached: dict[str, list[pa.Table]] = {}
        letters: list[pa.Table] = []
        watch = Watch(on_error=job.on_error)
        for record in work:
            assignment = json.loads(record)
            source, cpu, steps = assignment["source"], report.account.now(), report.account.spent
            before = report.rows
            portion = Portion(job.batch_rows)
            for table, origins in _events(job, pipeline, assignment, report, letters, portion):
                report.rows += table.num_rows
                found = pipeline.flow(source, table, report.saved, watch, origins, report.account)
                for target, tables in found.items():
                    reached.setdefault(target, []).extend(tables)
                portion.saw(table.num_rows, sum(t.num_rows for tables in found.values() for t in tables))
            # What is not due to operators is reading and judging.
            rows = report.rows - before
            report.account.took(source, rows, rows, cpu + report.account.spent - steps)
        note(job, watch, letters, report)
        parcels = send(job, pipeline, reached, report, (index,))
        settle(job, [report])
    except PenstockError as error:
        report.error = error
    except FULL:
        read = ", ".join(sorted({json.loads(record)["source"] for record in work}))
        report.error = no_room(read, job.memory, report.rows, None)
    report.seconds = time.perf_counter() - began
    tune(job)
    yield from parcels
    told = Parcel(REPORT, (index,), pickle.dumps(report))
    if job.fused:
        # To one bucket of every merge task: each must know what all scans have seen.
        yield from (
            (next(b for b in range(job.buckets) if place(job.buckets, job.groups, b) == g), told)
            for g in range(job.groups)
        )
    else:
        yield job.buckets, told


def _events(
    job: Job,
    pipeline: Pipeline,
    assignment: dict[str, Any],
    report: TaskReport,
    letters: list[pa.Table],
    portion: Portion,
) -> Iterator[tuple[pa.Table, list[Origin]]]:
    """The good events of an assignment that somebody wants, in arrival order, gathered into tables worth a query.

    With each table comes where its events are from.
    """
    source = source_of(pipeline.nodes[assignment["source"]])
    wanted = needed(pipeline, assignment["source"])
    guard, dropping = job.guards.get(Place(assignment["source"]), ()), job.dropping
    shed = () if dropping is None else dropping.places.get(Place(assignment["source"]), ())
    names = columns_to_read(source.schema, wanted, source.promises)
    looked_at = columns_to_read(source.schema, wanted, source.promises, (*guard, *shed))
    options = reader_options(source)
    checker = Checker(source.promises, source.schema)
    pending: list[pa.Table] = []
    origins: list[Origin] = []
    rows = 0
    for stored, known in assignment["splits"]:
        split = Split.from_json(stored)
        before = None if known is None else Known.from_json(known, source.schema)
        if split.spared:
            checker.pass_over(split, before)  # The driver has told all there is to tell of it.
            continue
        # Which events are dropped by chance depends on how they are read.
        for piece in pieces(split, portion) if dropping is None else (split,):
            batch = read(piece, source.schema, looked_at, source.promises, options)
            checked = checker.check(batch, piece, before)
            before = None  # Of the next piece this one tells.
            report.promises.append((assignment["source"], checked.report))
            letters.extend(t for t in (batch.malformed, checked.rejected) if t.num_rows)
            events = checked.events
            kept = checked.kept
            if dropping is not None:
                report.account.saw(dropping.newest(assignment["source"], events))
                kept = dropping.by_chance(assignment["source"], split, batch.table.num_rows, checked.kept)
            if kept is not checked.kept:
                # Of the batch, not of what is left of it: there each row stands where it stood.
                left = batch.table.filter(pa.array(kept))
                report.account.sheds(f"source:{source.name} by chance", events.num_rows - left.num_rows)
                events = left
            if guard:
                events, dropped = apply_guard(events, guard)
                report.count(report.saved, f"source:{source.name} dropped", dropped)
            if shed:
                events, dropped = apply_guard(events, shed)
                report.account.sheds(f"source:{source.name} dropped", dropped)
            events = events.select(names) if len(looked_at) > len(names) else events
            pending.append(events)
            origins.append(origin(split.path, batch, kept, (*guard, *shed), events.num_rows))
            rows += events.num_rows
            if rows > portion.rows // 2:
                yield pa.concat_tables(pending), origins
                pending, origins, rows = [], [], 0
    if rows:
        yield pa.concat_tables(pending), origins
