"""Compaction beside the epochs: whatever closes meanwhile, no live row is lost or doubled."""

from __future__ import annotations

import pickle
import tempfile
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.checkpoint.runs import StoredRun, UnitKey, Units, apply, read_run
from penstock.checkpoint.storage import Storage
from penstock.engine.epoch.compaction import Compacted, candidates, compact, install
from penstock.engine.epoch.compactor import Compactor
from penstock.engine.tasks.bucket import step_bucket
from penstock.engine.tasks.job import Job
from penstock.engine.tasks.merge import Merge
from penstock.engine.tasks.pipeline import Keeper
from penstock.engine.tasks.report import TaskReport
from penstock.engine.tasks.watch import Watch
from penstock.operators.aggregate.folding import FoldingKernel
from penstock.operators.aggregate.kernel import AggregateKernel
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.restriction import at_most, equal
from penstock.pattern.schema import Schema
from penstock.plan.orders import Orders
from penstock.plan.window import Window
from penstock.sql.aggregation import Aggregation

EVENTS = Schema.parse("t int, k string, x int", time="t")
WINDOW = Window.tumbling(1).resolve(EVENTS)
KERNEL = AggregateKernel(EVENTS, ["k"], [Aggregation.parse("total", "sum(x)", EVENTS)], WINDOW)
KEEPER = Keeper("aggregate-1", (0,), 1, FoldingKernel(KERNEL), groups=True)

deltas = st.lists(st.tuples(st.integers(0, 12), st.sampled_from("abc"), st.integers(1, 9)), max_size=5)
steps = st.one_of(
    st.tuples(
        st.just("epoch"),
        deltas,
        st.none() | st.integers(1, 4),
        st.sampled_from([None, None, None, "a", "b"]),
        st.sampled_from([None, None, None, "b", "c"]),
    ),
    st.just(("compact",)),
    st.just(("install",)),
)


def rows_of(table: pa.Table | None) -> list[dict[str, Any]]:
    return [] if table is None else table.to_pylist()


class Model:
    """One bucket of one aggregate, driven as the driver drives it, next to a plain dictionary of open groups."""

    def __init__(self, folder: str) -> None:
        pipeline = SimpleNamespace(keepers={KEEPER.id: KEEPER})
        self.job: Any = SimpleNamespace(
            checkpoint=Storage.at(folder),
            epoch=0,
            buckets=1,
            pipeline=lambda: pipeline,
            purges={},
            told={},
            rehearsal=False,
        )
        self.ignored: set[str] = set()
        self.units: Units = {}
        self.frontier = -1
        self.complete: set[str] = set()
        self.pending: list[Compacted] | None = None
        self.open: dict[tuple[int, str], int] = {}
        self.installed = 0

    def epoch(
        self, rows: list[tuple[int, str, int]], ahead: int | None, key: str | None, ignored: str | None = None
    ) -> None:
        self.job.epoch += 1
        self.job.purges = {}
        if ignored is not None:
            self.ignored.add(ignored)
            self.job.purges = {"aggregate-1:groups": (Pattern.where(KERNEL.output_schema, k=equal(ignored)),)}
            self.open = {g: x for g, x in self.open.items() if g[1] != ignored}
        # Streams are grammatical, and guards drop what is ignored.
        done = self.complete | self.ignored
        rows = [r for r in rows if r[0] > self.frontier and r[1] not in done]
        for t, k, x in rows:
            self.open[t, k] = self.open.get((t, k), 0) + x
        closers = []
        if ahead is not None:
            self.frontier += ahead
            closers.append(Pattern.where(KERNEL.output_schema, window_start=at_most(self.frontier)))
        if key is not None:
            self.complete.add(key)
            closers.append(Pattern.where(KERNEL.output_schema, k=equal(key)))
        events = pa.table(list(zip(*rows)) or [[], [], []], schema=EVENTS.arrow)
        delta = [KERNEL.partial(events) if rows else None]
        report = TaskReport("b1000")
        merging = Merge(self.units, {KEEPER.id: Orders((tuple(closers),), (PunctuationSet(KERNEL.output_schema),))})
        output = step_bucket(self.job, merging, KEEPER, 0, delta, report, Watch(), lambda rows: None)
        self.units = apply(self.units, report.changes)
        closed = {g for g in self.open if g[0] <= self.frontier or g[1] in self.complete}
        expected = {g: self.open.pop(g) for g in closed}
        found = {(r["window_start"], r["k"]): r["total"] for r in rows_of(output)}
        assert len(rows_of(output)) == len(found) and found == expected

    def compact(self) -> None:
        if self.pending is None:
            work = [pickle.dumps(w) for w in candidates(self.units, 1)]
            self.pending = [pickle.loads(c) for c in compact(self.job, work)]

    def install(self) -> None:
        if self.pending is not None:
            frontiers: dict[str, int | None] = {} if self.frontier < 0 else {KEEPER.id: self.frontier}
            self.units, rejected = install(self.units, self.pending, frontiers)
            self.installed += len(self.pending) - len(rejected)
            self.pending = None

    def check(self) -> None:
        """State holds exactly the open groups."""
        tables = [read_run(self.job.checkpoint, key, run) for key, runs in self.units.items() for run in runs]
        merged = KERNEL.finalize(KERNEL.merge(tables)).to_pylist() if tables else []
        assert {(r["window_start"], r["k"]): r["total"] for r in merged} == self.open


@given(st.lists(steps, min_size=4, max_size=14))
@settings(max_examples=100)
def test_random_interleavings(script: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = Model(folder)
        for step, *arguments in script:
            getattr(model, step)(*arguments)
            model.check()
        model.install()
        model.check()
        model.epoch([], 100, None)
        assert model.units == {} and not model.open


def test_a_prefix_closed_meanwhile_is_skipped_in_the_compacted_run() -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = Model(folder)
        model.epoch([(1, "a", 1), (5, "a", 1)], None, None)
        model.epoch([(1, "a", 2), (6, "b", 2)], None, None)
        model.epoch([(2, "a", 3), (7, "b", 2)], None, None)
        model.compact()
        model.epoch([(8, "b", 1)], 3, None)
        model.install()
        model.check()
        assert model.installed == 1
        (runs,) = model.units.values()
        assert sorted((r.rows, r.skip) for r in runs) == [(1, 0), (5, 2)]


def test_a_key_closed_meanwhile_makes_the_result_useless() -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = Model(folder)
        for t in (1, 2, 3):
            model.epoch([(t, "a", 1), (t, "b", 1)], None, None)
        model.compact()
        model.epoch([], None, "a")
        model.install()
        model.check()
        assert model.installed == 0


def test_a_run_dropped_before_the_compaction_reads_it_ends_it_quietly() -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = Model(folder)
        for t in (1, 2, 3):
            model.epoch([(t, "a", 1)], None, None)
        (work,) = candidates(model.units, 1)
        model.job.checkpoint.delete(work[1][0].name)
        assert list(compact(model.job, [pickle.dumps(work)])) == []


def test_large_runs_are_left_alone() -> None:
    key = UnitKey("aggregate-1", 0)
    small = tuple(StoredRun(f"s{i}", 10, 1, i) for i in range(8))
    ((_, chosen),) = candidates({key: (StoredRun("large", 10_000, 1, 0), *small)}, 8)
    assert chosen == small
    assert candidates({key: small}, 8) == []


def test_compaction_leaves_the_other_slots_to_epochs() -> None:
    asked: list[tuple[int, int]] = []

    def parallelize(records: list[bytes], tasks: int) -> Any:
        asked.append((len(records), tasks))
        return SimpleNamespace(mapPartitions=lambda _: SimpleNamespace(collect=list))

    session: Any = SimpleNamespace(sparkContext=SimpleNamespace(parallelize=parallelize))
    compactor = Compactor(session, frozenset({"aggregate-1"}), 8)
    for rows in (50_000, 10):
        runs = tuple(StoredRun(f"r{i}", rows, 1, i) for i in range(9))
        compactor.start(Job("", b"", buckets=4), {UnitKey("aggregate-1", bucket): runs for bucket in range(4)})
        compactor.settle()
    compactor.close()
    # Large units one after the other, small ones together: always in one task.
    assert asked == [(1, 1), (4, 1)]
