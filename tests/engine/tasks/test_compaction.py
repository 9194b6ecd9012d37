"""Compaction in the step of a bucket: no live row is lost or doubled, and no epoch does much."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.checkpoint.runs import Change, StoredRun, UnitKey, Units, apply, read_run
from penstock.checkpoint.storage import Storage
from penstock.engine.tasks import compaction
from penstock.engine.tasks.bucket import step_bucket
from penstock.engine.tasks.compaction import due
from penstock.engine.tasks.merge import Merge
from penstock.engine.tasks.pipeline import Keeper
from penstock.engine.tasks.report import TaskReport
from penstock.engine.tasks.watch import Watch
from penstock.kernels.hash import hash_keys
from penstock.kernels.stateful import Laziness, Word
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
#: The greatest text is not found by sorting, so what is merged does not come out sorted.
AGGREGATES = [Aggregation.parse("total", "sum(x)", EVENTS), Aggregation.parse("last", "max(k)", EVENTS)]
KERNEL = AggregateKernel(EVENTS, ["k"], AGGREGATES, WINDOW)
KEEPER = Keeper("aggregate-1", (0,), 1, FoldingKernel(KERNEL), groups=True)

epochs = st.tuples(
    st.lists(st.tuples(st.integers(0, 12), st.sampled_from("abc"), st.integers(1, 9)), max_size=5),
    st.none() | st.integers(1, 4),
    st.sampled_from([None, None, None, "a", "b"]),
    st.sampled_from([None, None, None, "b", "c"]),
)


@pytest.fixture(autouse=True)
def little_is_large() -> Iterator[None]:
    """Units are cut into shares from four rows on."""
    before, compaction.LARGE, compaction.TIMES = (compaction.LARGE, compaction.TIMES), 4, 1
    yield
    compaction.LARGE, compaction.TIMES = before


def rows_of(table: pa.Table | None) -> list[dict[str, Any]]:
    return [] if table is None else table.to_pylist()


class Model:
    """One bucket of one aggregate, driven as the driver drives it, next to a plain dictionary of open groups."""

    def __init__(self, folder: str, many: int) -> None:
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
        self.merge_above(many)
        self.ignored: set[str] = set()
        self.units: Units = {}
        self.frontier = -1
        self.complete: set[str] = set()
        self.open: dict[tuple[int, str], int] = {}
        self.changes: list[Change] = []

    def merge_above(self, many: int) -> None:
        self.job.told = {KEEPER.id: Word(laziness=Laziness(merge_above=many))}

    def epoch(
        self,
        rows: list[tuple[int, str, int]],
        ahead: int | None = None,
        key: str | None = None,
        ignored: str | None = None,
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
        self.changes = report.changes
        self.units = apply(self.units, report.changes)
        closed = {g for g in self.open if g[0] <= self.frontier or g[1] in self.complete}
        expected = {g: self.open.pop(g) for g in closed}
        found = {(r["window_start"], r["k"]): r["total"] for r in rows_of(output)}
        assert len(rows_of(output)) == len(found) and found == expected

    def check(self) -> None:
        """State holds exactly the open groups, each row where its share says."""
        tables = [read_run(self.job.checkpoint, key, run) for key, runs in self.units.items() for run in runs]
        merged = KERNEL.finalize(KERNEL.merge(tables)).to_pylist() if tables else []
        assert {(r["window_start"], r["k"]): r["total"] for r in merged} == self.open
        for key, runs in self.units.items():
            for run in runs:
                rows = read_run(self.job.checkpoint, key, run)
                if depth := key.share.bit_length() - 1:
                    first = hash_keys(rows, KERNEL.grouping) >> np.uint64(64 - depth)
                    assert (first == key.share - (1 << depth)).all()
                labels = rows["window_start"].to_pylist()
                assert run.low is not None and run.high is not None
                assert labels == sorted(labels) and run.low <= labels[0] and labels[-1] <= run.high


@given(st.lists(epochs, min_size=4, max_size=14), st.sampled_from([1, 2, 8]))
@settings(max_examples=100)
def test_random_epochs(script: list[tuple[Any, ...]], many: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = Model(folder, many)
        for step in script:
            model.epoch(*step)
            model.check()
        model.epoch([], 100)
        assert model.units == {} and not model.open


def test_of_a_run_only_what_is_not_done_with_is_merged() -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = Model(folder, 8)
        for rows in ([(1, "a", 1), (5, "a", 1)], [(1, "a", 2), (6, "b", 2)], [(2, "a", 3), (7, "b", 2)]):
            model.epoch(rows)
        model.merge_above(1)
        model.epoch([(8, "b", 1)], 3)
        model.check()
        # Of three runs one row each was done with, and the one that has just come is left alone.
        (runs,) = model.units.values()
        assert sorted((run.rows, run.skip, run.epoch) for run in runs) == [(1, 0, 4), (3, 0, 4)]


def test_groups_that_come_again_are_held_few_times_and_no_epoch_rewrites_many() -> None:
    """Of 1,000 groups 25 come in each of 400 epochs, so ten times as many rows as there are groups."""
    compaction.LARGE = 100
    rng = np.random.default_rng(5)
    with tempfile.TemporaryDirectory() as folder:
        model = Model(folder, 6)
        for _ in range(400):
            model.epoch([(9, f"k{k}", 1) for k in rng.choice(1_000, 25, replace=False)])
            dropped = {name for change in model.changes for name in change.dropped}
            written = sum(run.rows for change in model.changes for run in change.added)
            assert len(dropped) <= 12 and written <= 25 + 2 * 100
        model.check()
        held = sum(run.live for runs in model.units.values() for run in runs)
        assert len(model.open) == 1_000 and held < 3 * 1_000
        assert max(key.share for key in model.units) > 15
        assert max(len(runs) for runs in model.units.values()) <= 8


def test_what_is_little_is_not_cut_because_there_is_much_of_other_windows() -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = Model(folder, 1)
        for n in range(3):
            model.epoch([(9, f"{n} {k}", 1) for k in range(20)])
        for k in range(4):
            model.epoch([(2000, f"k{k}", 1)])
        assert {key.group: key.share > 1 for key in sorted(model.units)} == {0: True, 1: False}


def test_nothing_is_merged_where_nothing_comes() -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = Model(folder, 8)
        for t in (1, 2, 3):
            model.epoch([(t, "a", 1)])
        model.merge_above(1)
        before = dict(model.units)
        model.epoch([])
        assert model.units == before and not model.changes


def test_a_rehearsal_merges_nothing() -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = Model(folder, 1)
        model.job.rehearsal = True
        for t in (1, 2, 3, 4):
            model.epoch([(t, "a", 1)])
        assert [len(runs) for runs in model.units.values()] == [4]


def test_large_runs_are_left_alone() -> None:
    key = UnitKey("aggregate-1", 0)
    small = tuple(StoredRun(f"s{i}", 10, 1, i) for i in range(9))
    assert due({key: (StoredRun("large", 10_000, 1, 0), *small)}, 8, 1_000) == (key, small)
    assert due({key: small[:8]}, 8, 1_000) is None


def test_units_that_are_shares_keep_fewer_runs() -> None:
    runs = tuple(StoredRun(f"s{i}", 10, 1, i) for i in range(3))
    assert due({UnitKey("aggregate-1", 0): runs}, 6, 1_000) is None
    assert due({UnitKey("aggregate-1", 0, share=2): runs}, 6, 1_000) is not None
