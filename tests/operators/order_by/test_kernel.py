"""Sorting: a prefix leaves as it completes, equal rows in order of arrival; BSort as its buffer says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.kernels.stateful import DEAD, Held, Orders, Stepped
from penstock.operators.order_by.kernel import OrderKernel, bsort, reach
from penstock.operators.order_by.operator import OrderBy
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.schema import Schema

SCHEMA = Schema.parse("t int, key string, v double, n int", time="t")
Row = tuple[Any, ...]


class Bench:
    """Runs a kernel epoch by epoch and keeps its state as the engine would."""

    def __init__(self, *by: tuple[str, bool], slack: int | None = None, schema: Schema = SCHEMA) -> None:
        self.schema = schema
        self.kernel = OrderKernel(OrderBy((), schema, by=by, slack=slack), "order-1")
        self.held: list[Held] = []
        self.settled = PunctuationSet(schema)
        self.made = 0

    def epoch(self, rows: Sequence[Row], *patterns: str, ask: Sequence[str] = ()) -> Stepped:
        release = tuple(Pattern.parse(p, self.schema) for p in patterns)
        self.settled = self.settled.add(*release)
        asked = tuple(Pattern.parse(p, self.schema) for p in ask)
        columns = [pa.array([r[i] for r in rows], a.type) for i, a in enumerate(self.schema)]
        fresh = pa.table(columns, schema=self.schema.arrow) if rows else None
        step = self.kernel.step([fresh], [self.held], Orders((release,), (self.settled,), (asked,)))
        names, marks = {h.name for h in self.held}, dict(step.marked)
        assert set(step.dropped) | set(marks) <= names
        assert not set(marks) & set(step.dropped)
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

    def live(self) -> int:
        dead = sum(sum(h.marks[DEAD].to_pylist()) for h in self.held if h.marks is not None)
        return sum(h.rows.num_rows for h in self.held) - dead


def tuples(table: pa.Table) -> list[Row]:
    return [
        tuple("NaN" if isinstance(v, float) and math.isnan(v) else v for v in r.values()) for r in table.to_pylist()
    ]


def place(value: Any, down: bool) -> tuple[int, Any]:
    """A sort key for one value: numbers and texts, then NaN, then null."""
    if value is None:
        return 2, 0
    if isinstance(value, float) and math.isnan(value):
        return 1, 0
    if isinstance(value, str):
        return 0, (*(-ord(c) for c in value), 1) if down else value
    return 0, -value if down else value


def in_order(rows: Sequence[Row], by: Sequence[tuple[str, bool]]) -> list[Row]:
    return sorted(rows, key=lambda r: [place(r[SCHEMA.index(n)], down) for n, down in by])


def shown(rows: Sequence[Row]) -> list[Row]:
    return [tuple("NaN" if isinstance(v, float) and math.isnan(v) else v for v in r) for r in rows]


KEYS = st.tuples(
    st.one_of(st.none(), st.integers(0, 9)),
    st.sampled_from([None, "a", "b", "ba"]),
    st.sampled_from([None, 0.0, -0.0, math.nan, 1.5, -2.0]),
)
EPOCHS = st.lists(st.lists(KEYS, max_size=10), max_size=14)
ORDERS = st.lists(
    st.tuples(st.sampled_from(["t", "key", "v"]), st.booleans()), min_size=1, max_size=3, unique_by=lambda b: b[0]
).map(tuple)


def numbered(epochs: Sequence[Sequence[Row]]) -> list[list[Row]]:
    """The rows with a last attribute that tells them apart, so that the order of equal ones shows."""
    count = 0
    out = []
    for rows in epochs:
        out.append([(*r, count + i) for i, r in enumerate(rows)])
        count += len(rows)
    return out


@given(EPOCHS, ORDERS)
@settings(max_examples=80, deadline=None)
def test_all_at_the_end_is_a_stable_sort(epochs: list[list[Row]], by: tuple[tuple[str, bool], ...]) -> None:
    bench = Bench(*by)
    given_ = numbered(epochs)
    for rows in given_:
        assert bench.epoch(rows).output.num_rows == 0
        assert len(bench.held) <= 8
    out = tuples(bench.epoch([], "[*, *, *, *]").output)
    assert out == shown(in_order([r for rows in given_ for r in rows], by))
    assert bench.held == []


@given(EPOCHS, st.lists(st.integers(0, 10), min_size=14, max_size=14), st.booleans())
@settings(max_examples=80, deadline=None)
def test_a_frontier_lets_out_the_sorted_prefix_that_it_completes(
    epochs: list[list[Row]], frontiers: list[int], down: bool
) -> None:
    by = (("t", down), ("v", not down))
    bench = Bench(*by)
    frontier = -1
    waiting: list[Row] = []
    for rows, step_to in zip(numbered(epochs), frontiers, strict=False):
        # Grammatical: nothing that a promise has excluded.
        waiting += (kept := [r for r in rows if r[0] is None or (9 - r[0] if down else r[0]) >= frontier])
        frontier = max(frontier, step_to)
        pattern = f"[> {9 - frontier}, *, *, *]" if down else f"[< {frontier}, *, *, *]"
        step = bench.epoch(kept, pattern, ask=["[*, *, *, *]", "[>= 5, *, *, *]"])
        done = [r for r in waiting if r[0] is not None and (9 - r[0] if down else r[0]) < frontier]
        waiting = [r for r in waiting if r not in done]
        assert tuples(step.output) == shown(in_order(done, by))
        assert bench.live() == len(waiting)
        late = [r[0] for r in waiting if r[0] is not None and r[0] >= 5]
        assert [a.rows for a in step.answers[0]] == [len(waiting), len(late)]
        assert step.answers[0][1].latest == max(late, default=None)


def test_several_patterns_that_together_are_a_prefix() -> None:
    bench = Bench(("t", False), ("key", True))
    bench.epoch([(2, "a", None, 0), (2, "c", None, 1), (1, "a", None, 2), (3, "z", None, 3)])
    step = bench.epoch([(2, "c", None, 4)], "[< 2, *, *, *]", "[2, >= 'b', *, *]")
    assert [r[3] for r in tuples(step.output)] == [2, 1, 4]
    assert bench.live() == 2


def test_a_run_keeps_its_rest_by_marks_until_more_than_half_has_left() -> None:
    bench = Bench(("t", False))
    bench.epoch([(t, None, None, t) for t in range(10)])
    step = bench.epoch([], "[< 3, *, *, *]")
    assert (step.dropped, [n for n, _ in step.marked], step.added) == ((), ["run-1"], ())
    step = bench.epoch([], "[< 6, *, *, *]")
    assert [r[0] for r in tuples(step.output)] == [3, 4, 5]
    assert step.dropped == ("run-1",)
    assert bench.held[0].rows["t"].to_pylist() == [6, 7, 8, 9]


def test_the_search_for_a_prefix_looks_at_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"t": np.arange(1_000_000)})
    pattern = Pattern.parse("[< 123456]", Schema.parse("t bigint"))
    seen: list[int] = []
    plain = Pattern.matches

    def watched(self: Pattern, table: pa.Table) -> pa.BooleanArray:
        seen.append(table.num_rows)
        return plain(self, table)

    monkeypatch.setattr(Pattern, "matches", watched)
    assert reach(rows, 0, [pattern]) == 123456
    assert sum(seen) < 400


def buffered(values: Sequence[Any], slack: int) -> tuple[list[Any], list[Any]]:
    """BSort by its definition: a list of pairs (place, arrival); out goes the least when slack + 1 are there."""
    buffer: list[tuple[Any, int]] = []
    out: list[int] = []
    for i, v in enumerate(values):
        buffer.append((v, i))
        if len(buffer) == slack + 1:
            least = min(buffer)
            buffer.remove(least)
            out.append(least[1])
    return out, [i for _, i in sorted(buffer)]


@pytest.mark.parametrize(
    ("slack", "expected"),
    [
        (0, [1, 2, 3, 5, 4, 6, 7, 9, 10, 8]),
        (1, [1, 2, 3, 4, 5, 6, 7, 9, 8, 10]),
        (2, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
    ],
)
@pytest.mark.parametrize("cut", [1, 3, 10])
def test_bsort_with_slack(slack: int, expected: list[int], cut: int) -> None:
    values = [1, 2, 3, 5, 4, 6, 7, 9, 10, 8]
    bench = Bench(("t", False), slack=slack)
    out: list[int] = []
    for start in range(0, 10, cut):
        out += [r[0] for r in tuples(bench.epoch([(v, None, None, 0) for v in values[start : start + cut]]).output)]
        assert bench.live() <= slack
    assert out == expected[: 10 - slack]
    out += [r[0] for r in tuples(bench.epoch([], "[*, *, *, *]").output)]
    assert out == expected
    assert bench.held == []


@given(EPOCHS, ORDERS, st.integers(0, 6))
@settings(max_examples=80, deadline=None)
def test_bsort_follows_its_definition_in_any_cut(
    epochs: list[list[Row]], by: tuple[tuple[str, bool], ...], slack: int
) -> None:
    given_ = numbered(epochs)
    rows = [r for part in given_ for r in part]
    places = [[place(r[SCHEMA.index(n)], down) for n, down in by] for r in rows]
    left, waiting = buffered(places, slack)
    bench = Bench(*by, slack=slack)
    out: list[Row] = []
    for i, part in enumerate(given_):
        last = ["[*, *, *, *]"] if i == len(given_) - 1 else []
        out += tuples(bench.epoch(part, *last).output)
    assert [r[3] for r in out] == left + waiting


@given(st.lists(st.integers(0, 30), max_size=40), st.integers(0, 8), st.booleans())
@settings(max_examples=100, deadline=None)
def test_both_ways_of_bsort_agree_with_the_buffer(values: list[int], slack: int, nearly: bool) -> None:
    if nearly:
        values = [v + i * 5 for i, v in enumerate(values)]
    left, waiting = bsort(np.argsort(np.array(values, dtype=np.int64), kind="stable"), slack)
    assert (left.tolist(), waiting.tolist()) == buffered(values, slack)


def test_a_frontier_does_not_flush_a_buffer() -> None:
    bench = Bench(("t", False), slack=2)
    assert bench.epoch([(1, None, None, 0)], "[< 9, *, *, *]").output.num_rows == 0
    step = bench.epoch([], ask=["[1, *, *, *]"])
    assert (step.answers[0][0].rows, step.answers[0][0].latest) == (1, 1)
    assert step.dropped == ()
