"""What runs inside Spark tasks: the scan of an epoch's input, and the merge of a bucket.

A task is a plain function of its arguments. It reads files that the epoch's plan names, writes files under names
nobody else has, and reports. Running it twice is harmless: only what is reported, and then committed, counts.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from penstock.checkpoint.checkpoint import Output
from penstock.checkpoint.runs import Change, Run, UnitKey
from penstock.checkpoint.storage import Storage
from penstock.engine.epoch.punctuate import Standing, punctuate
from penstock.engine.sink.target import Staging
from penstock.engine.source.formats.read import columns_to_read, read
from penstock.engine.source.listing import reader_options
from penstock.engine.source.promises.check import Checker
from penstock.engine.source.promises.known import Known
from penstock.engine.source.pruning.guard import apply_guard
from penstock.engine.source.split import Split
from penstock.engine.tables import load_all
from penstock.engine.tasks.columns import needed
from penstock.engine.tasks.exchange import REPORT, Parcel, decode, encode, place, scatter
from penstock.engine.tasks.fold_bucket import fold_bucket
from penstock.engine.tasks.keep import step_bucket
from penstock.engine.tasks.origin import Origin, origin
from penstock.engine.tasks.pipeline import Pipeline
from penstock.engine.tasks.room import FULL, held, in_bytes, no_room
from penstock.engine.tasks.watch import Watch
from penstock.errors import PenstockError
from penstock.kernels.duck import limit_memory
from penstock.kernels.release import Laziness
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.plan.orders import Answer, Orders

#: Queries that a worker keeps ready.
QUERIES = 8
_pipelines: dict[str, Pipeline] = {}
_tuned = False


@dataclass(frozen=True)
class Job:
    """What the tasks of one epoch share."""

    digest: str
    blob: bytes = field(repr=False)
    epoch: int = 0
    buckets: int = 1
    checkpoint: Storage | None = None
    stagings: dict[str, Staging] = field(default_factory=dict)
    batch_rows: int = 4_000_000
    memory: str = "2GB"
    fault: str | None = None
    groups: int = 1
    fused: bool = False
    tables: dict[str, str] = field(default_factory=dict)
    laziness: Laziness = field(default_factory=Laziness)
    #: Place in the plan -> what nobody wants there; the place of a source is its node's id.
    guards: Mapping[str, tuple[Pattern, ...]] = field(default_factory=dict)
    #: Place -> what is to be removed from state in this epoch; aggregate -> values by which groups may be doomed.
    purges: Mapping[str, tuple[Pattern, ...]] = field(default_factory=dict)
    sweeps: Mapping[str, tuple[Pattern, ...]] = field(default_factory=dict)
    #: Whether this is only to see what would come out: queued work is left alone.
    rehearsal: bool = False
    #: Source or queue -> what to take first.
    preferred: Mapping[str, tuple[Pattern, ...]] = field(default_factory=dict)
    #: Operator that paces -> the least time that passes, in ticks.
    floors: Mapping[str, int] = field(default_factory=dict)
    on_error: str = "reject"

    def pipeline(self) -> Pipeline:
        """The query; unpacked once per worker, not once per task."""
        found = _pipelines.get(self.digest)
        if found is None:
            # Queries of one session share workers, and threads of one process may be in here at once.
            if len(_pipelines) >= QUERIES:
                _pipelines.clear()
            found = _pipelines[self.digest] = pickle.loads(self.blob)
        # Epochs may overlap in one process and have different tables.
        return found.in_epoch(load_all(self.checkpoint, self.tables), self.guards, self.floors)


@dataclass
class Report:
    """What a task tells the driver."""

    task: str
    rows: int = 0
    seconds: float = 0.0
    promises: list[Any] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    dead: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    work: dict[str, int] = field(default_factory=dict)
    answers: dict[str, list[tuple[tuple[Answer, ...], ...]]] = field(default_factory=dict)
    #: Rows that guards have spared, by place and how: "source:traffic never read", "source:traffic dropped".
    saved: dict[str, int] = field(default_factory=dict)
    #: By aggregate, groups whose value is bound to match a feedback, as patterns over its output.
    doomed: dict[str, list[Any]] = field(default_factory=dict)
    #: By operator that watches events: the greatest time it saw, or how many there were.
    seen: dict[str, int] = field(default_factory=dict)
    #: By operator, feedback for its inputs: (input, feedback as JSON).
    issued: dict[str, list[tuple[int, Any]]] = field(default_factory=dict)
    error: PenstockError | None = None

    @property
    def scanned(self) -> bool:
        """Whether this is the report of a scan, not of a merge."""
        return self.task.startswith("s")


def _settle(job: Job, reports: Sequence[Report]) -> None:
    """Wait for the disk, once for all that a task has written: the manifest that will name it must not overtake it."""
    if job.rehearsal or job.checkpoint is None:
        return
    job.checkpoint.sync(name for r in reports for c in r.changes for name in c.files)
    for sink in {o.sink for r in reports for o in r.outputs}:
        job.stagings[sink].storage.sync(o.staged for r in reports for o in r.outputs if o.sink == sink)


def _tune(job: Job) -> None:
    """Once per worker: Spark's daemon runs a full garbage collection after every task, over everything imported.

    Freezing what is there keeps that short: it measured about 5 ms less per Python stage.
    """
    global _tuned
    if not _tuned:
        limit_memory(job.memory)
        gc.collect()
        gc.freeze()
        _tuned = True


def _fail_if_asked(job: Job, point: str) -> None:
    """Pull the plug inside a worker, once, when a test asked for it by `point=marker file`."""
    if job.fault and job.fault.startswith(point + "="):
        marker = job.fault.split("=", 1)[1]
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        os.kill(os.getpid(), 9)


def scan(job: Job, index: int, assignments: Iterable[str]) -> Iterator[tuple[int, Parcel]]:
    """Read splits, check promises, run the flows of stage 0, send parcels; one report at the end."""
    work = list(assignments)  # Consumed whole: a worker that leaves input unread is not reused.
    report = Report(task=f"s{index:03d}")
    began = time.perf_counter()
    parcels: list[tuple[int, Parcel]] = []
    try:
        pipeline = job.pipeline()
        _fail_if_asked(job, "scan")
        reached: dict[str, list[pa.Table]] = {}
        letters: list[pa.Table] = []
        watch = Watch(on_error=job.on_error)
        for record in work:
            assignment = json.loads(record)
            for table, origins in _events(job, pipeline, assignment, report, letters):
                report.rows += table.num_rows
                found = pipeline.flow(assignment["source"], table, report.saved, watch, origins)
                for target, tables in found.items():
                    reached.setdefault(target, []).extend(tables)
        _note(job, watch, letters, report)
        parcels = _send(job, pipeline, reached, report, (index,))
        _settle(job, [report])
    except PenstockError as error:
        report.error = error
    except FULL:
        read = ", ".join(sorted({json.loads(record)["source"] for record in work}))
        report.error = no_room(read, job.memory, report.rows, None)
    report.seconds = time.perf_counter() - began
    _tune(job)
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
    job: Job, pipeline: Pipeline, assignment: dict[str, Any], report: Report, letters: list[pa.Table]
) -> Iterator[tuple[pa.Table, list[Origin]]]:
    """The good events of an assignment that somebody wants, in arrival order, gathered into tables worth a query.

    With each table comes where its events are from.
    """
    source = pipeline.nodes[assignment["source"]].operator
    assert isinstance(source, Source)
    wanted = needed(pipeline, assignment["source"])
    guard = job.guards.get(assignment["source"], ())
    names = columns_to_read(source.schema, wanted, source.promises)
    looked_at = columns_to_read(source.schema, wanted, source.promises, guard)
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
        batch = read(split, source.schema, looked_at, source.promises, options)
        checked = checker.check(batch, split, before)
        report.promises.append((assignment["source"], checked.report))
        letters.extend(t for t in (batch.malformed, checked.rejected) if t.num_rows)
        events = checked.events
        if guard:
            events, dropped = apply_guard(events, guard)
            if dropped:
                saved = f"source:{source.name} dropped"
                report.saved[saved] = report.saved.get(saved, 0) + dropped
            events = events.select(names) if len(looked_at) > len(names) else events
        pending.append(events)
        origins.append(origin(split.path, batch, checked.kept, guard, events.num_rows))
        rows += events.num_rows
        if rows >= job.batch_rows:
            yield pa.concat_tables(pending), origins
            pending, origins, rows = [], [], 0
    if rows:
        yield pa.concat_tables(pending), origins


def _note(job: Job, watch: Watch, letters: Sequence[pa.Table], report: Report) -> None:
    """Report what operators have seen; write dead letters, theirs and others, and count them."""
    report.seen = watch.seen
    if found := [*letters, *watch.letters]:
        table = pa.concat_tables(found)
        for pair in table["reason"].value_counts().to_pylist():
            report.dead[pair["values"]] = report.dead.get(pair["values"], 0) + pair["counts"]
        report.outputs.extend(job.stagings["dead"].write(table, job.epoch, report.task))


def _let_go(job: Job, pipeline: Pipeline, reached: dict[str, list[pa.Table]], report: Report) -> None:
    """Of what a task has made so far, when it is much: write results, put partial rows together; the rest must fit."""
    room = in_bytes(job.memory)
    if held(reached.values()) < room // 4:
        return
    for target, tables in reached.items():
        exchange = pipeline.exchanges.get(target)
        if exchange is not None and not exchange.by_count:
            reached[target] = [exchange.kernel.merge(tables)]
        elif exchange is None and target not in pipeline.ports:
            table = pa.concat_tables(tables)
            report.counts[target] = report.counts.get(target, 0) + table.num_rows
            part = sum(o.sink == target for o in report.outputs)
            report.outputs.extend(job.stagings[target].write(table, job.epoch, f"{report.task}-{part:04d}"))
            reached[target] = []
    if held(reached.values()) > room:
        raise MemoryError


def _send(
    job: Job, pipeline: Pipeline, reached: dict[str, list[pa.Table]], report: Report, origin: tuple[int, ...]
) -> list[tuple[int, Parcel]]:
    """Parcels for the aggregates that rows have reached; results for the sinks they have."""
    parcels: list[tuple[int, Parcel]] = []
    for target, tables in reached.items():
        if target in pipeline.ports:
            keeper, port = pipeline.ports[target]
            for bucket, part in scatter(pa.concat_tables(tables), keeper.kernel.spread[port], job.buckets):
                parcels.append((bucket, Parcel(keeper.edges[port], origin, encode(part))))
            continue
        exchange = pipeline.exchanges.get(target)
        if not tables:
            continue
        if exchange is None:
            table = pa.concat_tables(tables)
            report.counts[target] = report.counts.get(target, 0) + table.num_rows
            report.outputs.extend(job.stagings[target].write(table, job.epoch, report.task))
            continue
        if exchange.by_count:
            rows = pa.concat_tables(tables)
        else:
            rows = exchange.kernel.merge(tables) if len(tables) > 1 else tables[0]
        for bucket, part in scatter(rows, exchange.spread, job.buckets):
            parcels.append((bucket, Parcel(exchange.edge, origin, encode(part))))
    return parcels


@dataclass(frozen=True)
class Merge:
    """What the merge of an epoch knows beyond the parcels: state before it, and the punctuations after its events.

    With `standing` instead of closers, the tasks find the closers themselves from the reports of the scan.
    """

    units: dict[UnitKey, tuple[Run, ...]]
    closers: dict[str, tuple[Pattern, ...]] = field(default_factory=dict)
    orders: dict[str, Orders] = field(default_factory=dict)
    since: dict[str, int] = field(default_factory=dict)
    standing: Standing | None = None


def merge(
    job: Job, merging: Merge, level: int, group: int, parcels: Iterable[tuple[int, Parcel]]
) -> Iterator[tuple[int, Parcel]]:
    """The buckets of one task on one level: fold parcels into state, close what is complete, run the flows behind."""
    arrived: dict[tuple[int, int], list[Parcel]] = {}
    told: list[Parcel] = []
    for bucket, parcel in parcels:
        if parcel.edge == REPORT:
            told.append(parcel)
        else:
            arrived.setdefault((bucket, parcel.edge), []).append(parcel)
    if merging.standing is not None:
        scans: list[Report] = [pickle.loads(p.payload) for p in sorted(told, key=lambda p: p.origin)]
        if group > 0:
            told = []  # Every task has them; one passes them on.
        if any(s.error is not None for s in scans):
            yield from ((job.buckets, p) for p in told)
            return
        now = punctuate(job.pipeline(), merging.standing, scans)
        merging = replace(merging, closers=now.closers, orders=now.orders, since=merging.standing.closed, standing=None)
    reports: list[Report] = []
    for bucket in range(job.buckets):
        if place(job.buckets, job.groups, bucket) == group:
            reports.append(Report(task=f"b{level}{bucket:03d}"))
            yield from _merge_bucket(job, merging, level, bucket, arrived, reports[-1])
    try:
        _settle(job, reports)
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
    report: Report,
) -> Iterator[tuple[int, Parcel]]:
    began = time.perf_counter()
    out: list[tuple[int, Parcel]] = []
    try:
        pipeline = job.pipeline()
        _fail_if_asked(job, "merge")
        reached: dict[str, list[pa.Table]] = {}
        watch = Watch(on_error=job.on_error)
        for exchange in pipeline.at_level(level):
            sent = sorted(arrived.pop((bucket, exchange.edge), ()), key=lambda p: p.origin)
            result = fold_bucket(job, merging, exchange, bucket, [decode(p.payload) for p in sent], report, watch)
            if result.num_rows:
                report.counts[exchange.id] = result.num_rows
                for target, tables in pipeline.flow(exchange.id, result, report.saved, watch).items():
                    reached.setdefault(target, []).extend(tables)
        for keeper in pipeline.keepers_at(level):
            fresh = [_arrived(arrived.pop((bucket, edge), ())) for edge in keeper.edges]

            def emit(rows: pa.Table, at: str = keeper.id) -> None:
                report.counts[at] = report.counts.get(at, 0) + rows.num_rows
                for target, tables in pipeline.flow(at, rows, report.saved, watch).items():
                    reached.setdefault(target, []).extend(tables)
                _let_go(job, pipeline, reached, report)

            rows = step_bucket(job, merging, keeper, bucket, fresh, report, watch, emit)
            if rows is not None:
                emit(rows)
        _note(job, watch, (), report)
        out = _send(job, pipeline, reached, report, (level, bucket))
    except PenstockError as error:
        report.error = error
    except FULL:
        names = [e.id for e in pipeline.at_level(level)] + [k.id for k in pipeline.keepers_at(level)]
        report.error = no_room(", ".join(names), job.memory, sum(report.counts.values()), None)
    report.seconds = time.perf_counter() - began
    _tune(job)
    yield from out


def _arrived(parcels: Sequence[Parcel]) -> pa.Table | None:
    """The rows of several parcels in their order of arrival."""
    if not parcels:
        return None
    return pa.concat_tables([decode(p.payload) for p in sorted(parcels, key=lambda p: p.origin)])
