"""Epochs: the driver's loop, one micro-batch after the other, each all or nothing.

    plan n    choose splits, write them down
    scan n    Spark: read, check, pre-aggregate, send parcels; reports come back
    punctuate driver: what the sources now promise, and so what every operator may close
    merge n   Spark: fold parcels into state, close groups, write results
    commit n  one record makes all of it true; then results are published

Each has a module: `planning`, `submitting`, `punctuate`, `committing`; and `recovering` for what comes after a crash.
Scanning needs no state, so the scan of epoch n+1 runs while epoch n merges.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.analysis.propagate import Propagation, cut_dependent
from penstock.checkpoint.checkpoint import SNAPSHOT_EVERY, Checkpoint, EpochPlan, Manifest
from penstock.checkpoint.fault import reach
from penstock.checkpoint.intact import DamagedError
from penstock.engine.clock import Clock
from penstock.engine.epoch.backstage import Backstage
from penstock.engine.epoch.begun import Begun, Places
from penstock.engine.epoch.committing import commit, own_report
from penstock.engine.epoch.planning import choose
from penstock.engine.epoch.punctuate import Standing, punctuate
from penstock.engine.epoch.recovering import can_mend, recover, sweep
from penstock.engine.epoch.rehearse import rehearse
from penstock.engine.epoch.shedding import Shedder, SheddingWish
from penstock.engine.epoch.submitting import both, merge, submit
from penstock.engine.epoch.violation import raise_errors
from penstock.engine.inverted_tables import Inverted
from penstock.engine.progress import Progress
from penstock.engine.settings import Settings
from penstock.engine.sink.final import FinalUpTo
from penstock.engine.sink.target import BoundTarget
from penstock.engine.source.frontier import PromiseState
from penstock.engine.source.listing import SourceReader, open_reader
from penstock.engine.source.split import Split
from penstock.engine.spark.failure import explain_failure, is_spark_failure, worth_retrying
from penstock.engine.spark.residents import LostResidentError, lodging_of
from penstock.engine.tables import TableKeeper
from penstock.engine.tasks.bucket import combined
from penstock.engine.tasks.job import Job
from penstock.engine.tasks.merge import Merge
from penstock.engine.tasks.pipeline import Pipeline
from penstock.engine.tasks.report import TaskReport
from penstock.engine.unread import Unread
from penstock.errors import PenstockError, UnreadableError, UserError
from penstock.feedback.answers import marked, refuse, store_answers
from penstock.feedback.listening import Listening
from penstock.operators.lookup.operator import tables_of
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.plan.plan import Plan
from penstock.statistics.figures import Backlog
from penstock.statistics.measured import RunStatistics

if TYPE_CHECKING:  # Building a query should not wait for PySpark's imports.
    from pyspark.sql import SparkSession


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
        wish: SheddingWish | None = None,
    ) -> None:
        self.plan = plan
        self.wish = wish
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
        #: Asked for once: it is a question to the JVM.
        self.parallelism = spark.sparkContext.defaultParallelism
        self.scanner = ThreadPoolExecutor(1, thread_name_prefix="penstock-scan")
        self.merger = ThreadPoolExecutor(1, thread_name_prefix="penstock-merge")
        self.backstage = Backstage()
        self.lodging = lodging_of(spark.sparkContext)
        #: The epoch after which one has to be a job of its own, since tasks that stay were lost over it.
        self.plain: int | None = None
        self._ahead: Begun | None = None
        self._trouble: PenstockError | None = None
        self._redone: set[int] = set()
        self.read_before: dict[str, list[Split]] = {}
        #: Whether the next epoch follows at once. If it waits for its time, planning it now would make its input stale.
        self.hurried = True
        self.tables = tables_of([n.operator for n in plan])
        self.unread = Unread(checkpoint.storage, bounded, checkpoint.warnings)
        self.clock = Clock(self.sources)
        #: Seconds between epochs, as the trigger has it; when the last one began, by its plan; when backlogs were seen.
        self.every = 0.0
        self.began: float | None = None
        self.looked = 0.0
        self.backlog: dict[str, Backlog] = {}
        self._fresh()

    def _fresh(self) -> None:
        """Know nothing: what `recover` starts from."""
        self.manifest = Manifest(epoch=0)
        self.statistics = RunStatistics()
        self.readers: dict[str, SourceReader] = {
            i: open_reader(s, self.inboxes.get(i), lenient=self.settings.changed_files == "ignore")
            for i, s in self.sources.items()
        }
        self.unread.tell(self.readers)
        # Who has taken over must not rely on a snapshot that the run before it may still delete.
        salt = "" if self.checkpoint.records == self.checkpoint.storage else self.checkpoint.records.base
        self.table_keeper = TableKeeper(self.tables, self.checkpoint.warnings, salt)
        self.inverted = Inverted(self.plan, self.checkpoint, self.table_keeper)
        self.promises = {i: PromiseState(s) for i, s in self.sources.items()}
        self.propagation = Propagation(self.plan)
        #: What operators that pace let pass in the next epoch: as it stood when this one was punctuated.
        self.told: dict[str, Any] = {}
        self.closed: dict[str, int] = {}
        self.behind: dict[str, tuple[Pattern, ...]] = {}
        self.final = {n.id: FinalUpTo.of(n.operator.schema) for n in self.plan.sinks}
        self.deltas: dict[str, list[Any]] = {i: [] for i in self.sources}
        self.gone: list[str] = []
        written = self.checkpoint.storage, self.checkpoint.warnings, self.checkpoint.records
        self.feedback = Listening(self.plan, *written, sheds=None if self.wish is None else self.wish.policy)
        self.shedder = Shedder(self.plan, self.wish, self.checkpoint.warnings, self.parallelism)
        self.planned = 0
        self.only_heard = False
        self.to_drop: Places = {}
        self.stored: dict[int, EpochPlan] = {}
        self._trouble = None

    # --- start and recovery -------------------------------------------------------------------------------------

    def recover(self, damaged: DamagedError | None = None) -> None:
        """Go to the newest whole manifest, publish what it names, sweep what nobody names.

        If something that it names is `damaged`, or found to be, go to the one before it and run its epoch again.
        """
        recover(self, damaged)

    def sweep(self) -> list[str]:
        """Delete orphans: what crashed epochs left behind. Returns their names."""
        return sweep(self)

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
                if self.manifest.epoch in self._redone or not can_mend(self, error):
                    raise
                self._redone.add(self.manifest.epoch)
                self._start_over(None if error.name.startswith("tables/") else error)

    def _start_over(self, damaged: DamagedError | None = None) -> None:
        self._settle()
        self.backstage.settle()
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
                    self.finish()
                    return False
                self._finish(begun)
                return True
            except PenstockError:
                raise
            except LostResidentError:
                # Costs no attempt: the ordinary way says better what is wrong, if it was not the task alone.
                self.plain = self.manifest.epoch
                self._start_over()
                return self._try()
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
            # As it stood when this was planned: what passes in the epoch is found again, and told again.
            self.shedder.restore(plan.shed, self.manifest.epoch)
            self.table_keeper.restore(plan.tables)
            for node_id, splits in plan.splits.items():
                self.readers[node_id].advance([Split.from_json(s) for s in splits])
        else:
            chosen = choose(self, epoch)
            if chosen is None:
                return None
            to_drop = self.to_drop
            plan = replace(chosen, heard=self.feedback.to_write())
            # Without it nothing of its epoch counts, so it need not be on the disk before that counts. But what was
            # said from outside is forgotten as soon as it is in a plan.
            self.checkpoint.write_plan(plan)
            if plan.heard:
                self.checkpoint.settle_plan(plan)
            self.feedback.planned()
        self.backstage.later(self.checkpoint.settle_plan, plan)
        self.planned = epoch
        positions = {i: r.position() for i, r in self.readers.items()}
        snapshots = {i: r.snapshot() for i, r in self.readers.items()} if epoch % SNAPSHOT_EVERY == 0 else None
        begun = Begun(plan, positions, snapshots, began, to_drop)
        submit(self, begun)
        return begun

    def _finish(self, begun: Begun) -> None:
        assert begun.job is not None
        levels = self.pipeline.levels
        self.propagation.turn(begun.plan.setting)
        standing = Standing(
            begun.plan.epoch,
            tuple(begun.plan.ends),
            {i: s.to_json() for i, s in self.promises.items()},
            self.propagation.to_json(),
            self.closed,
            tuple(begun.spared),
            self.feedback.under(begun.plan.control).speakers,
        )
        merged: list[TaskReport] = []
        if begun.reports is None:
            going = self.merger.submit(both, self, begun, Merge(self.manifest.units, standing=standing))
            self.backstage.clear()
            scans, merged = going.result()
        else:
            self.backstage.clear()
            scans = begun.reports.result()
        scanned = time.perf_counter()
        raise_errors(self.sources, scans)
        reach("scanned")
        self.shedder.saw(begun, scans)
        told = [*begun.spared, *(pair for r in scans for pair in r.promises)]
        self.checkpoint.warnings.extend(self.clock.look(told, self.promises, begun.plan.splits))
        now = punctuate(self.pipeline, standing, scans)
        # The next scan starts from what this one has established.
        self.promises, self.told = now.promises, now.propagation.told
        if begun.reports is not None:
            asked = any(any(o.release) or any(o.ask) for o in now.orders.values()) or begun.job.purges
            to_merge = levels and (begun.parcels is not None or begun.shelves or asked)
            merging = Merge(self.manifest.units, now.orders, self.closed)
            ahead = self.settings.overlap and self.hurried and begun.plan.splits and not begun.plan.ends
            # Tasks that stay do one thing after the other, and what is due comes first.
            early = self.merger.submit(merge, self, begun, merging) if to_merge and ahead and begun.residents else None
            if ahead:
                self._look_ahead()
            self.backstage.clear()
            if to_merge:
                merged = early.result() if early is not None else merge(self, begun, merging)
        raise_errors(self.sources, merged)
        reach("merged")
        answers = {i: [a for r in merged for a in r.answers.get(i, ())] for i in self.pipeline.keepers}
        now.propagation.answered({i: combined(a) for i, a in answers.items() if a})
        now.propagation.saw(r.seen for r in merged)
        self.propagation, self.closed, self.behind = now.propagation, now.closed, now.behind
        self.final = {i: final.told(self.behind[i]) for i, final in self.final.items()}
        self.feedback.heard(begun.plan.epoch, [*scans, *merged], self.propagation, self.behind)
        commit(self, begun, [*scans, *merged, own_report(self, begun)], scanned)
        if self.feedback.demands:
            self._answer_demands(begun.job)

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

    def finish(self) -> None:
        """Do what the last epoch has left to be done."""
        self.backstage.clear()
        self.checkpoint.guard()

    # --- end ----------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Wait for what runs beside the epochs; how it ended does not matter any more."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead.reports is not None:
            ahead.reports.exception()

    def close(self) -> None:
        """Finish what runs beside the epochs."""
        self._settle()
        self.scanner.shutdown(wait=True)
        self.merger.shutdown(wait=True)
