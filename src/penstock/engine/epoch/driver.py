"""Epochs: the driver's loop, one micro-batch after the other, each all or nothing.

    plan n    choose splits, write them down
    scan n    Spark: read, check, pre-aggregate, send parcels; reports come back
    punctuate driver: what the sources now promise, and so what every operator may close
    merge n   Spark: fold parcels into state, close groups, write results
    commit n  one record makes all of it true; then results are published

Scanning needs no state, so the scan of epoch n+1 runs while epoch n merges.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from penstock.analysis.propagate import Propagation, cut_dependent
from penstock.checkpoint.checkpoint import SNAPSHOT_EVERY, Checkpoint, EpochPlan, Manifest, named_by
from penstock.checkpoint.fault import reach
from penstock.checkpoint.intact import DamagedError
from penstock.checkpoint.runs import apply, run_names
from penstock.checkpoint.use import used
from penstock.engine.clock import Clock
from penstock.engine.epoch.compactor import Compactor
from penstock.engine.epoch.fall_back import can_fall_back, usable
from penstock.engine.epoch.punctuate import Standing, punctuate
from penstock.engine.epoch.rehearse import rehearse
from penstock.engine.epoch.violation import raise_errors
from penstock.engine.inverted_tables import Inverted, read_after_all
from penstock.engine.progress import Progress
from penstock.engine.settings import Settings
from penstock.engine.sink.target import BoundTarget
from penstock.engine.source.frontier import PromiseState, count_spared, plan_tasks, tell_spared
from penstock.engine.source.inbox import InboxReader
from penstock.engine.source.letter import UNREADABLE
from penstock.engine.source.listing import SourceReader, open_reader
from penstock.engine.source.sameness import changed_file
from penstock.engine.source.split import Split
from penstock.engine.source.unreadable import passed_over_letters
from penstock.engine.spark import jobs
from penstock.engine.spark.failure import explain_failure, is_spark_failure, worth_retrying
from penstock.engine.tables import TableKeeper
from penstock.engine.tally import added, progress, totals
from penstock.engine.tasks.bucket import combined
from penstock.engine.tasks.job import Job
from penstock.engine.tasks.merge import Merge
from penstock.engine.tasks.pipeline import Pipeline
from penstock.engine.tasks.report import Report
from penstock.engine.unread import Unread, check_unread
from penstock.errors import PenstockError, UnreadableError, UserError
from penstock.feedback.answers import marked, refuse, store_answers
from penstock.feedback.listening import Listening
from penstock.kernels.stateful import Laziness, Merging
from penstock.operators.lookup.operator import tables_of
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.plan.plan import Plan
from penstock.plan.promise import EndOfSource

if TYPE_CHECKING:  # Building a query should not wait for PySpark's imports.
    from pyspark import RDD
    from pyspark.sql import SparkSession

#: Starting a task costs about as much as reading this many bytes.
SMALLEST_TASK = 1 << 20
#: State of so many rows is closed by one task as fast as by several.
SMALL_STATE = 200_000


Places = dict[str, tuple[Pattern, ...]]


@dataclass
class Begun:
    """An epoch under way: planned, and being scanned."""

    plan: EpochPlan
    positions: dict[str, dict[str, Any]]
    snapshots: dict[str, dict[str, Any]] | None
    began: float
    #: What is to be dropped, place by place, without what cannot be in the files; None: all that guards say.
    to_drop: Places | None = None
    parcels: RDD[Any] | None = None
    reports: Future[list[Report]] | None = None
    job: Job | None = None
    assignments: list[str] = field(default_factory=list)
    spared: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    saved: dict[str, int] = field(default_factory=dict)
    unreadable: list[Split] = field(default_factory=list)


class Driver:
    """Runs the epochs of one query against one checkpoint."""

    def __init__(
        self,
        plan: Plan,
        spark: SparkSession,
        checkpoint: Checkpoint,
        targets: Mapping[str, BoundTarget],
        settings: Settings,
        *,
        bounded: bool,
        inboxes: Mapping[str, str] | None = None,
        listener: Callable[[Progress], None] | None = None,
    ) -> None:
        self.plan = plan
        self.spark = spark
        self.checkpoint = checkpoint
        self.targets = dict(targets)
        self.settings = settings
        self.bounded = bounded
        self.listener = listener
        self.pipeline = Pipeline(plan)
        self.sources: dict[str, Source] = {n.id: n.operator for n in plan.sources if isinstance(n.operator, Source)}
        self.inboxes = dict(inboxes or {})
        #: Sources that get on as if they read what they skip: where streams are paced, who skips would overtake others.
        self.steady = cut_dependent(plan)
        self.buckets = 1
        self._scanner = ThreadPoolExecutor(1, thread_name_prefix="penstock-scan")
        # The others compact their own runs as they go: their marks would outrun a compaction.
        merging = frozenset(i for i, k in self.pipeline.keepers.items() if isinstance(k.kernel, Merging))
        self.compactor = Compactor(spark, merging, settings.compact_above)
        self._ahead: Begun | None = None
        self._trouble: PenstockError | None = None
        self._redone: set[int] = set()
        self.read_before: dict[str, list[Split]] = {}
        #: Whether the next epoch follows at once. If it waits for its time, planning it now would make its input stale.
        self.hurried = True
        self.tables = tables_of([n.operator for n in plan])
        self.unread = Unread(checkpoint.storage, bounded, checkpoint.warnings)
        self.clock = Clock(self.sources)
        self._fresh()

    def _fresh(self) -> None:
        """Know nothing: what `recover` starts from."""
        self.manifest = Manifest(epoch=0)
        self.readers: dict[str, SourceReader] = {
            i: open_reader(s, self.inboxes.get(i), lenient=self.settings.changed_files == "ignore")
            for i, s in self.sources.items()
        }
        self.unread.tell(self.readers)
        # Who has taken over must not rely on a snapshot that the run before it may still delete.
        salt = "" if self.checkpoint.records == self.checkpoint.storage else self.checkpoint.records.base
        self.table_keeper = TableKeeper(self.tables, self.checkpoint.warnings, salt)
        self.inverted = Inverted(self.plan, self.checkpoint, self.table_keeper)
        self.propagation = Propagation(self.plan)
        self.promises = {i: PromiseState(s, self.propagation.apart[i]) for i, s in self.sources.items()}
        #: What operators that pace let pass in the next epoch: as it stood when this one was punctuated.
        self.floors: dict[str, int] = {}
        self.closed: dict[str, int] = {}
        self.behind: dict[str, tuple[Pattern, ...]] = {}
        self.deltas: dict[str, list[Any]] = {i: [] for i in self.sources}
        self.gone: list[str] = []
        written = self.checkpoint.storage, self.checkpoint.warnings, self.checkpoint.records
        self.feedback = Listening(self.plan, *written)
        self.planned = 0
        self._only_heard = False
        self._to_drop: Places = {}
        self.stored: dict[int, EpochPlan] = {}
        self._trouble = None

    # --- start and recovery -------------------------------------------------------------------------------------

    def recover(self, damaged: DamagedError | None = None) -> None:
        """Go to the newest whole manifest, publish what it names, sweep what nobody names.

        If something that it names is `damaged`, or found to be, go to the one before it and run its epoch again.
        """
        wanted = self.settings.buckets or self.spark.sparkContext.defaultParallelism
        self.buckets = self.checkpoint.open(self.plan, max(1, wanted))
        newest = self.checkpoint.latest()
        found = None if newest is None else usable(self.checkpoint, self.targets, newest, damaged)
        if found is not None and found.epoch:
            self.manifest = found
            snapshot = self.checkpoint.snapshot(found.snapshot)
            self.deltas = {i: list(found.deltas.get(i, [])) for i in self.sources}
            for node_id, reader in self.readers.items():
                reader.restore(snapshot.get(node_id), self.deltas[node_id])
            for node_id, stored in found.promises.items():
                apart = self.propagation.apart[node_id]
                self.promises[node_id] = PromiseState.from_json(self.sources[node_id], stored, apart)
            self.propagation.restore(found.punctuation.get("unions", {}))
            self.floors = self.propagation.floors
            self.closed = dict(found.punctuation.get("closed", {}))
            if (done := self.checkpoint.plan_of(found.epoch)) is not None:
                self.table_keeper.restore(done.tables)
            self.feedback.restore(found.control, found.feedback, found.epoch)
            if found is newest:
                self._publish(found)
        self.planned = self.manifest.epoch
        self._take_up_plans()
        if self.bounded:
            for reader in self.readers.values():
                reader.fix()
        self.sweep()

    def _take_up_plans(self) -> None:
        """Epochs that were planned and did not happen are run as planned.

        Only input that was never read decides whether a plan still holds, so one whose files have changed since is
        made anew, and with it those after it. Not so if the epoch has a manifest, though a damaged one: its results
        may have been delivered.
        """
        epoch = self.manifest.epoch + 1
        while (plan := self.checkpoint.plan_of(epoch)) is not None:
            splits = [Split.from_json(s) for splits in plan.splits.values() for s in splits]
            if self.unread.stands_in(splits) and not self.checkpoint.has_record(epoch):
                break
            changed = changed_file(splits)
            if changed is not None and not self.checkpoint.has_record(epoch):
                self.checkpoint.warnings.append(f"'{changed}' changed after epoch {epoch} was planned: planned anew")
                break
            self.stored[epoch] = plan
            epoch += 1
        self.feedback.give_back(self.checkpoint.plans_after(epoch - 1))
        self.checkpoint.forget_plans(epoch - 1)
        if self.stored:
            self.feedback.take_up(self.stored[epoch - 1].control, self.manifest.epoch)

    def sweep(self) -> list[str]:
        """Delete orphans: what crashed epochs left behind. Returns their names."""
        keep = named_by(self.manifest)
        # The manifest before stays usable, should this one be damaged: what only it needs goes after the next commit.
        before = self.checkpoint.before(self.manifest)
        spare = named_by(before) - keep if before is not None else set()
        self.feedback.sweep(before.control if before is not None else self.manifest.control)
        orphans = self.checkpoint.sweep(keep | spare, self.manifest)
        if self.tables:
            orphans += self._sweep_tables()
        for target in self.targets.values():
            orphans += target.sweep(keep, self.manifest.epoch, self.checkpoint.guard)
        self.gone = sorted(n for n in spare if n.startswith(("state/", "results/")))
        return orphans

    def _sweep_tables(self) -> list[str]:
        named = self.checkpoint.tables_named()
        return self.table_keeper.sweep(self.checkpoint.storage, named, self.checkpoint.guard)

    # --- one epoch ----------------------------------------------------------------------------------------------

    def step(self) -> bool:
        """Run one epoch if there is anything to do; False if not."""
        while True:
            try:
                return self._try()
            except UnreadableError as error:
                # Nothing of the epoch counts yet. It is planned anew, in front of the file or over it.
                if self.checkpoint.has_record(self.manifest.epoch + 1) or not self.unread.take(error, self.readers):
                    raise
                self._start_over()
            except DamagedError as error:
                # Once only: a disk that damages everything should be told of.
                if self.manifest.epoch in self._redone or not self._can_mend(error):
                    raise
                self._redone.add(self.manifest.epoch)
                self._start_over(None if error.name.startswith("tables/") else error)

    def _can_mend(self, error: DamagedError) -> bool:
        """Whether a damaged file can be had again: a table is read anew, a run comes out of its epoch once more."""
        if error.name.startswith("tables/"):
            return self.table_keeper.mend(self.checkpoint.storage, error.name)
        named = run_names(self.manifest.units)
        return error.name in named and can_fall_back(self.checkpoint, self.manifest, error.name)

    def _start_over(self, damaged: DamagedError | None = None) -> None:
        self._settle()
        self._fresh()
        self.recover(damaged)

    def _try(self) -> bool:
        for attempt in range(1, self.settings.attempts + 1):
            try:
                if attempt > 1:
                    # A lost executor or worker. What decides the epoch is written down, so trying again from the
                    # checkpoint, as after a crash, gives the same epoch.
                    self._start_over()
                if self._trouble is not None:
                    raise self._trouble
                begun = self._ahead or self._begin()
                self._ahead = None
                if begun is None:
                    return False
                self._finish(begun)
                return True
            except PenstockError:
                raise
            except Exception as error:
                if attempt == self.settings.attempts or not worth_retrying(error):
                    if is_spark_failure(error):
                        raise explain_failure(error) from error
                    raise
        return True

    def _begin(self) -> Begun | None:
        """Plan the next epoch and start its scan. After a crash the plan is the one that was written down."""
        epoch = self.planned + 1
        stored = self.stored.pop(epoch, None)
        to_drop: Places | None = None
        began = time.perf_counter()
        if stored is not None:
            plan = stored
            self.table_keeper.restore(plan.tables)
            for node_id, splits in plan.splits.items():
                self.readers[node_id].advance([Split.from_json(s) for s in splits])
        else:
            chosen = self._choose(epoch)
            if chosen is None:
                return None
            to_drop = self._to_drop
            plan = replace(chosen, heard=self.feedback.to_write())
            self.checkpoint.write_plan(plan)
            self.feedback.planned()
        self.planned = epoch
        positions = {i: r.position() for i, r in self.readers.items()}
        snapshots = {i: r.snapshot() for i, r in self.readers.items()} if epoch % SNAPSHOT_EVERY == 0 else None
        begun = Begun(plan, positions, snapshots, began, to_drop)
        self._submit(begun)
        return begun

    def _choose(self, epoch: int) -> EpochPlan | None:
        parallelism = self.spark.sparkContext.defaultParallelism
        splits: dict[str, list[dict[str, Any]]] = {}
        # First, because it decides what need not be read. If there is nothing to do, the next plan is under it.
        control, news = self.feedback.freeze(epoch)
        guards = self.feedback.under(control)
        before = self.inverted.tables(guards, self.bounded)
        unwanted, preferred = self.inverted.patterns(guards, before or {}), guards.preferred
        for node_id, reader in self.readers.items():
            found = reader.plan(
                self.settings.max_rows,
                self.settings.max_bytes,
                parallelism,
                self.bounded,
                guard=unwanted.get(node_id, ()),
                prefer=preferred.get(node_id, ()),
                steady=node_id in self.steady,
            )
            if found:
                splits[node_id] = [s.to_json() for s in found]
            if reader.concerned is not None:
                unwanted[node_id] = reader.concerned
        ends: list[str] = []
        if self.bounded:
            over = self.manifest.ended
            ends = [i for i, r in self.readers.items() if i not in over and self._says_when_over(i) and r.exhausted]
        self.checkpoint.warnings.extend(self.unread.hear(self.readers))
        if not splits and not ends and not self.propagation.pending:
            # What a consumer says is worth an epoch of its own. But who says something after every epoch would keep a
            # run that ends by itself from ending.
            if not news or (self.bounded and self._only_heard):
                if self.bounded:
                    check_unread(self.readers)
                return None
            self._only_heard = True
        else:
            self._only_heard = False
        # Partitions that are there but not read yet hold the frontier back, so they belong to what decides an epoch.
        partitions = {i: list(r.partitions) for i, r in self.readers.items()}
        # After the files were listed, so that events see what was written to a table before them.
        tables = self.table_keeper.refresh(self.checkpoint.storage, self.bounded)
        if before is not None and before != tables:
            unwanted, splits = self.inverted.patterns(guards, tables), read_after_all(splits)
        self._to_drop = {place: patterns for place, patterns in unwanted.items() if patterns}
        return EpochPlan(epoch, splits, ends, control, self.plan.fingerprint, partitions, tables, self.floors)

    def _says_when_over(self, source: str) -> bool:
        return any(isinstance(p, EndOfSource) for p in self.sources[source].promises)

    def _submit(self, begun: Begun) -> None:
        """Start the scan of an epoch in its own thread, unless it is so small that it goes with the merge."""
        context = self.spark.sparkContext
        records: list[str] = []
        size = 0
        for node_id, partitions in begun.plan.partitions.items():
            self.promises[node_id].register(partitions)
        # Sorted, as records are: a plan that is read back gives the same tasks in the same order.
        for node_id, stored in sorted(begun.plan.splits.items()):
            state = self.promises[node_id]
            splits = [Split.from_json(s) for s in stored]
            size += sum(s.bytes for s in splits)
            begun.unreadable += [s for s in splits if s.unreadable]
            begun.spared += [(node_id, told) for told in tell_spared(state.promises, splits)]
            begun.saved = added([begun.saved, count_spared(self.sources[node_id].name, splits)])
            for task in plan_tasks(state, splits, _tasks_for(splits, context.defaultParallelism)):
                pairs = [(s.to_json(), None if k is None else k.to_json()) for s, k in task]
                records.append(json.dumps({"source": node_id, "splits": pairs}))
        state_rows = sum(r.live for runs in self.manifest.units.values() for r in runs)
        digest, blob = self.pipeline.blob
        guards = self.feedback.under(begun.plan.control)
        begun.assignments = records
        begun.job = Job(
            digest=digest,
            blob=blob,
            epoch=begun.plan.epoch,
            buckets=self.buckets,
            checkpoint=self.checkpoint.storage,
            stagings={name: t.staging for name, t in self.targets.items()},
            batch_rows=self.settings.batch_rows,
            memory=self.settings.memory,
            fault=self.settings.fault,
            tables=begun.plan.tables,
            laziness=Laziness(self.settings.rewrite_above, self.settings.merge_above),
            guards=self.inverted.patterns(guards, begun.plan.tables) if begun.to_drop is None else begun.to_drop,
            purges=guards.fresh if guards.epoch == begun.plan.epoch else {},
            sweeps=guards.sweeps,
            preferred=guards.preferred,
            floors=begun.plan.floors,
            on_error=self.settings.on_error,
            groups=self.buckets if self.pipeline.labours or size >= SMALLEST_TASK or state_rows >= SMALL_STATE else 1,
            fused=bool(records) and self.pipeline.levels == 1 and size < self.settings.fuse_below,
        )
        if not records:
            begun.reports = Future()
            begun.reports.set_result([])
        elif not begun.job.fused:
            begun.reports = self._scanner.submit(self._scan, begun)

    def _scan(self, begun: Begun) -> list[Report]:
        assert begun.job is not None
        context = self.spark.sparkContext
        begun.parcels, found = jobs.scan_alone(context, begun.job, begun.assignments, self.pipeline.levels)
        return found

    def _finish(self, begun: Begun) -> None:
        assert begun.job is not None
        context, levels = self.spark.sparkContext, self.pipeline.levels
        standing = Standing(
            begun.plan.epoch,
            tuple(begun.plan.ends),
            {i: s.to_json() for i, s in self.promises.items()},
            self.propagation.to_json(),
            self.closed,
            tuple(begun.spared),
            self.feedback.under(begun.plan.control).speakers,
        )
        merged: list[Report] = []
        if begun.reports is None:
            merging = Merge(self.manifest.units, standing=standing)
            scans, merged = jobs.scan_and_merge(context, begun.job, merging, begun.assignments)
        else:
            scans = begun.reports.result()
        scanned = time.perf_counter()
        raise_errors(self.sources, scans)
        reach("scanned")
        told = [*begun.spared, *(pair for r in scans for pair in r.promises)]
        self.checkpoint.warnings.extend(self.clock.look(told, self.promises, begun.plan.splits))
        now = punctuate(self.pipeline, standing, scans)
        # The next scan starts from what this one has established.
        self.promises, self.floors = now.promises, now.propagation.floors
        if begun.reports is not None:
            if self.settings.overlap and self.hurried and begun.plan.splits and not begun.plan.ends:
                self._look_ahead()
            asked = any(any(o.release) or any(o.ask) for o in now.orders.values()) or begun.job.purges
            if levels and (begun.parcels is not None or asked):
                merging = Merge(self.manifest.units, now.orders, self.closed)
                merged = jobs.merge_alone(context, begun.job, merging, begun.parcels, levels)
        raise_errors(self.sources, merged)
        reach("merged")
        answers = {i: [a for r in merged for a in r.answers.get(i, ())] for i in self.pipeline.keepers}
        now.propagation.answered({i: combined(a) for i, a in answers.items() if a})
        now.propagation.saw(r.seen for r in merged)
        self.propagation, self.closed, self.behind = now.propagation, now.closed, now.behind
        self.feedback.heard(begun.plan.epoch, [*scans, *merged], self.propagation, self.behind)
        self._commit(begun, [*scans, *merged, self._own_report(begun)], scanned)
        if self.feedback.demands:
            self._answer_demands(begun.job)

    def _own_report(self, begun: Begun) -> Report:
        """What the plan of an epoch alone amounts to: rows spared, files passed over."""
        report = Report("plan", saved=begun.saved)
        if begun.unreadable:
            letters, task = passed_over_letters(begun.unreadable), f"s{len(begun.assignments):03d}"
            report.outputs.extend(self.targets["dead"].staging.write(letters, begun.plan.epoch, task))
            report.dead = {UNREADABLE: letters.num_rows}
        return report

    def _answer_demands(self, job: Job) -> None:
        """Partial results for those who cannot wait."""
        storage, epoch = self.checkpoint.storage, self.manifest.epoch
        asked = dict(self.feedback.demands)
        try:
            found = rehearse(self, job, list(asked.values()))
        except Exception as error:
            if is_spark_failure(error):
                raise
            # What fails on results that are not complete need not fail on the final ones: the run goes on.
            why = error.message if isinstance(error, PenstockError) else f"{type(error).__name__}: {error}"
            hint = error.hint if isinstance(error, PenstockError) else None
            told = UserError(
                f"the results as they are now cannot be computed: {why}",
                hint=hint or "the final results are not affected: wait for them",
            )
            refuse(storage, list(asked), told)
            self.checkpoint.warnings.append(f"after epoch {epoch}, {told.message}")
        else:
            answers = {n: marked(t, epoch) for n, t in zip(asked, found, strict=True)}
            store_answers(storage, answers, {n: sink for n, (sink, _) in asked.items()})
        for name in asked:
            self.feedback.answered(name)

    def _look_ahead(self) -> None:
        """Begin the next epoch's scan. What is wrong with its input is told when its turn comes."""
        try:
            self._ahead = self._begin()
        except PenstockError as error:
            # Not tried again: readers may have moved on over splits that no plan names.
            self._trouble = error

    # --- commit -------------------------------------------------------------------------------------------------

    def _commit(self, begun: Begun, reports: Sequence[Report], scanned: float) -> None:
        epoch = begun.plan.epoch
        units = apply(self.manifest.units, [c for r in reports for c in r.changes])
        units, wasted = self.compactor.take(units, self.closed)
        outputs = tuple(o for r in reports for o in r.outputs)
        for node_id, position in begun.positions.items():
            self.deltas[node_id].append(position)
        snapshot = self.manifest.snapshot
        if begun.snapshots is not None:
            self.checkpoint.write_snapshot(epoch, begun.snapshots)
            self.deltas = {i: [] for i in self.sources}
            snapshot = epoch
        saved = added(self.feedback.logged(r.saved) for r in reports)
        manifest = Manifest(
            epoch=epoch,
            units=units,
            promises={i: s.to_json() for i, s in self.promises.items()},
            punctuation={"unions": self.propagation.to_json(), "closed": self.closed},
            snapshot=snapshot,
            deltas={i: list(d) for i, d in self.deltas.items()},
            outputs=outputs,
            totals=totals(self.manifest.totals, reports, outputs, saved),
            ended=(*self.manifest.ended, *begun.plan.ends),
            control=begun.plan.control,
            feedback=self.feedback.to_json(begun.plan.control),
            uses=used(self.manifest.uses, [r.uses for r in reports], epoch, units),
        )
        self.checkpoint.write_commit(manifest)
        before, self.manifest = self.manifest, manifest
        self._publish(manifest)
        self.checkpoint.retire(manifest, self.gone)
        self.feedback.retire(before.control)
        if begun.snapshots is not None:
            self.checkpoint.retire_snapshots(epoch)
            if self.tables:
                self._sweep_tables()
        staged = [o.staged for o in before.outputs if o.staged.startswith("results/")]
        self.gone = [*sorted(run_names(before.units) - run_names(units)), *(r.name for r in wasted), *staged]
        self._discard_inboxes(begun)
        self.compactor.start(begun.job, manifest.units)
        if self.listener is not None:
            now = time.perf_counter()
            names = {i: source.name for i, source in self.sources.items()}
            self.listener(
                progress(
                    manifest,
                    reports,
                    self.promises,
                    names,
                    seconds=now - begun.began,
                    scan_seconds=scanned - begun.began,
                    merge_seconds=now - scanned,
                    waiting=tuple(f"{n}: {why}" for r in self.readers.values() for n, why in r.waiting),
                    saved=saved,
                    guards=self.feedback.guards.size,
                    told=self.feedback.told,
                )
            )

    def _discard_inboxes(self, begun: Begun) -> None:
        """Delete batches of Spark streams that lie before the epoch before: only it might have to be run again."""
        for node_id, reader in self.readers.items():
            if isinstance(reader, InboxReader):
                reader.discard(self.read_before.get(node_id, ()))
                self.read_before[node_id] = [Split.from_json(s) for s in begun.plan.splits.get(node_id, ())]

    def _publish(self, manifest: Manifest) -> None:
        self.checkpoint.guard()
        for name, target in self.targets.items():
            target.publish(manifest.epoch, [o for o in manifest.outputs if o.sink == name], self.spark)
        reach("published")

    # --- end ----------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Wait for what runs beside the epochs; how it ended does not matter any more."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead.reports is not None:
            ahead.reports.exception()
        self.compactor.settle()

    def close(self) -> None:
        """Finish what runs beside the epochs."""
        self._settle()
        self._scanner.shutdown(wait=True)
        self.compactor.close()


def _tasks_for(splits: Sequence[Split], parallelism: int) -> int:
    """As many tasks as cores, fewer when there is little to read."""
    return max(1, min(parallelism, sum(s.bytes for s in splits) // SMALLEST_TASK))
