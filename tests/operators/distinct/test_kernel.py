"""Duplicate elimination: each row once, whatever the cut into epochs; state goes when rows cannot come again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock.operators.distinct.kernel as distinct_module
from penstock.kernels.stateful import DEAD, Held, Orders, Stepped
from penstock.operators.distinct.kernel import DistinctKernel
from penstock.operators.distinct.operator import Distinct
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.schema import Schema

TIMED = Schema.parse("t int, key string, v double", time="t")
Row = tuple[Any, ...]


class Bench:
    """Runs a kernel epoch by epoch and keeps its state as the engine would."""

    def __init__(self, schema: Schema = TIMED) -> None:
        self.schema = schema
        self.kernel = DistinctKernel(Distinct((), schema), "distinct-1")
        self.held: list[Held] = []
        self.settled = PunctuationSet(schema)
        self.made = 0

    def table(self, rows: Sequence[Row]) -> pa.Table:
        columns = [pa.array([r[i] for r in rows], a.type) for i, a in enumerate(self.schema)]
        return pa.table(columns, schema=self.schema.arrow)

    def epoch(self, rows: Sequence[Row], *patterns: str, ask: Sequence[str] = ()) -> Stepped:
        release = tuple(Pattern.parse(p, self.schema) for p in patterns)
        self.settled = self.settled.add(*release)
        asked = tuple(Pattern.parse(p, self.schema) for p in ask)
        orders = Orders((release,), (self.settled,), (asked,))
        step = self.kernel.step([self.table(rows) if rows else None], [self.held], orders)
        names = {h.name for h in self.held}
        assert set(step.dropped) <= names
        assert not {n for n, _ in step.marked} & set(step.dropped)
        marks = dict(step.marked)
        assert set(marks) <= names
        self.held = [
            Held(h.name, h.rows, marks.get(h.name, h.marks), h.group, h.low, h.high)
            for h in self.held
            if h.name not in step.dropped
        ]
        for made in step.added:
            self.made += 1
            self.held.append(Held(f"run-{self.made}", made.rows, made.marks, made.group, made.low, made.high))
        assert all(h.marks is None or h.marks.num_rows == h.rows.num_rows for h in self.held)
        return step

    def live(self) -> list[Row]:
        found: list[Row] = []
        for run in self.held:
            dead = run.marks[DEAD].to_pylist() if run.marks is not None else [False] * run.rows.num_rows
            rows = run.rows.select(self.schema.names).to_pylist()
            found += [tuple(r.values()) for r, d in zip(rows, dead, strict=True) if not d]
        return found


def tuples(table: pa.Table) -> list[Row]:
    return [tuple(r.values()) for r in table.to_pylist()]


def identity(row: Row) -> Row:
    """What makes a row the same as another: NaN is NaN, -0.0 is 0.0."""
    return tuple(
        "NaN" if isinstance(v, float) and math.isnan(v) else v + 0.0 if isinstance(v, float) else v for v in row
    )


def first_appearances(rows: Sequence[Row]) -> list[Row]:
    seen: dict[Row, None] = {}
    return [seen.setdefault(identity(r), None) or identity(r) for r in rows if identity(r) not in seen]


ROWS = st.tuples(
    st.one_of(st.none(), st.integers(0, 5)),
    st.sampled_from([None, "", "a", "b"]),
    st.sampled_from([None, 0.0, -0.0, math.nan, 1.5]),
)


def test_a_row_comes_out_once_and_in_order_of_arrival() -> None:
    bench = Bench()
    assert tuples(bench.epoch([(2, "b", 1.0), (1, "a", 1.0), (2, "b", 1.0)]).output) == [(2, "b", 1.0), (1, "a", 1.0)]
    step = bench.epoch([(3, "a", 1.0), (1, "a", 1.0)])
    assert tuples(step.output) == [(3, "a", 1.0)]
    assert step.counts["duplicates"] == 1


@given(st.lists(st.lists(ROWS, max_size=12), max_size=14))
@settings(max_examples=80, deadline=None)
def test_any_cut_into_epochs_gives_the_first_appearances(epochs: list[list[Row]]) -> None:
    bench = Bench()
    out = [identity(r) for rows in epochs for r in tuples(bench.epoch(rows).output)]
    assert out == first_appearances([r for rows in epochs for r in rows])
    # At most eight runs with a time and eight without.
    assert len(bench.held) <= 16
    assert sorted(map(repr, map(identity, bench.live()))) == sorted(map(repr, out))


@given(st.lists(st.lists(ROWS, max_size=8), max_size=12), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_rows_that_share_a_hash_are_told_apart(epochs: list[list[Row]], hashes: int) -> None:
    plain = distinct_module.hash_keys

    def crowded(table: pa.Table, names: Sequence[str]) -> np.ndarray[Any, np.dtype[np.uint64]]:
        return plain(table, names) % np.uint64(hashes)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distinct_module, "hash_keys", crowded)
        bench = Bench()
        out = [identity(r) for rows in epochs for r in tuples(bench.epoch(rows).output)]
    assert out == first_appearances([r for rows in epochs for r in rows])


@given(st.lists(st.tuples(st.lists(ROWS, max_size=8), st.integers(0, 6), st.sampled_from("abx")), max_size=12))
@settings(max_examples=80, deadline=None)
def test_release_never_changes_the_answer_of_a_grammatical_stream(epochs: list[tuple[list[Row], int, str]]) -> None:
    with_promises, without = Bench(), Bench()
    for rows, frontier, key in epochs:
        kept = [r for r in rows if not with_promises.settled.matches_row(dict(zip(TIMED.names, r, strict=True)))]
        promises = [f"[< {frontier}, *, *]"] + (["[*, 'b', >= 1.0]"] if key == "b" else [])
        step = with_promises.epoch(kept, *promises, ask=["[*, *, *]", "[*, 'a', *]", f"[<= {frontier}, *, *]"])
        plain = tuples(without.epoch(kept).output)
        assert list(map(identity, tuples(step.output))) == list(map(identity, plain))
        open_rows = [
            r for r in without.live() if not with_promises.settled.matches_row(dict(zip(TIMED.names, r, strict=True)))
        ]
        everything, of_a, old = step.answers[0]
        assert everything.rows == len(open_rows)
        assert of_a.rows == sum(r[1] == "a" for r in open_rows)
        assert of_a.latest == max((r[0] for r in open_rows if r[1] == "a" and r[0] is not None), default=None)
        assert old.rows == sum(r[0] == frontier for r in open_rows)


def test_many_epochs_with_runs_that_are_merged() -> None:
    random = Random(3)
    bench = Bench()
    rows: list[Row] = []
    out: list[Row] = []
    for _ in range(60):
        some = [(random.randrange(400), random.choice("ab"), 0.0) for _ in range(random.choice([1, 5, 40]))]
        rows += some
        out += tuples(bench.epoch(some).output)
        assert len(bench.held) <= 8
    assert out == first_appearances(rows)
    for run in bench.held:
        hashes = run.rows["__hash"].to_pylist()
        assert hashes == sorted(hashes)


def test_a_run_with_one_old_row_is_not_looked_through_for_every_frontier() -> None:
    bench = Bench()
    bench.epoch([(0, "a", 0.0), *((1000 + i, "a", 0.0) for i in range(30))])
    rewritten = sum(bool(bench.epoch([], f"[< {t}, *, *]").dropped) for t in range(0, 1000, 5))
    assert rewritten == 1
    assert (bench.held[0].low, bench.held[0].rows.num_rows) == (1000, 30)


def test_a_frontier_drops_whole_runs_and_cuts_a_run_when_half_of_its_time_is_over() -> None:
    bench = Bench()
    bench.epoch([(t, "a", 0.0) for t in range(10)])
    bench.epoch([(t, "a", 0.0) for t in range(10, 20)])
    assert bench.epoch([], "[< 4, *, *]").dropped == ()
    step = bench.epoch([], "[< 12, *, *]")
    assert step.dropped == ("run-1",)
    assert step.added == ()
    step = bench.epoch([], "[<= 16, *, *]")
    assert step.dropped == ("run-2",)
    assert sorted(r[0] for r in bench.live()) == [17, 18, 19]
    assert (bench.held[0].low, bench.held[0].high) == (17, 19)


def test_a_frontier_leaves_rows_without_a_time() -> None:
    bench = Bench()
    bench.epoch([(None, "a", 1.0), (1, "a", 1.0)])
    bench.epoch([], "[< 100, *, *]")
    assert bench.live() == [(None, "a", 1.0)]
    assert bench.epoch([(None, "a", 1.0)]).output.num_rows == 0
    bench.epoch([], "[*, *, *]")
    assert bench.held == []


def test_other_patterns_mark_rows_dead_and_rewrite_a_run_that_is_mostly_dead() -> None:
    bench = Bench(Schema.parse("key string, v int"))
    bench.epoch([("a", 1), ("b", 1), ("c", 1), ("c", 2)])
    step = bench.epoch([], "['a', *]")
    assert [n for n, _ in step.marked] == ["run-1"]
    assert sorted(bench.live()) == [("b", 1), ("c", 1), ("c", 2)]
    step = bench.epoch([], "['c', *]")
    assert (step.dropped, step.marked) == (("run-1",), ())
    assert bench.held[0].rows.num_rows == 1
    assert bench.live() == [("b", 1)]
    assert bench.epoch([], "[*, 1]").dropped == ("run-2",)


def test_a_row_that_is_settled_is_put_out_and_not_stored() -> None:
    bench = Bench()
    step = bench.epoch([(1, "a", 1.0), (5, "a", 1.0)], "[< 3, *, *]")
    assert step.output.num_rows == 2
    assert bench.live() == [(5, "a", 1.0)]


def test_state_stays_small_behind_a_frontier() -> None:
    bench = Bench()
    most = 0
    for epoch in range(200):
        bench.epoch([(epoch * 10 + i, "a", 0.0) for i in range(10)], f"[< {epoch * 10 - 20}, *, *]")
        most = max(most, sum(h.rows.num_rows for h in bench.held))
        assert len(bench.held) <= 8
    assert most <= 80
