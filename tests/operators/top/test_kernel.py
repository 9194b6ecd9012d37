"""Top: the best rows of each group, whatever the cut into epochs; no more kept; feedback that changes no result."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import cmp_to_key
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock.operators.top.kernel as top_module
from penstock.kernels.stateful import DEAD, Held, Orders, Stepped
from penstock.operators.top.kernel import MOST_ISSUED, TopKernel, best, places
from penstock.operators.top.operator import Top
from penstock.pattern.feedback import Feedback
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.schema import Schema

SCHEMA = Schema.parse("t int, key string, v double, n int", time="t")
Row = tuple[Any, ...]
By = tuple[tuple[str, bool], ...]


class Bench:
    """Runs a kernel epoch by epoch and keeps its state as the engine would."""

    def __init__(self, count: int, by: By, per: tuple[str, ...] = (), schema: Schema = SCHEMA) -> None:
        self.schema = schema
        self.operator = Top((), schema, count=count, by=by, per=per)
        self.kernel = TopKernel(self.operator, "top-1")
        self.held: list[Held] = []
        self.made = 0

    def table(self, rows: Sequence[Row]) -> pa.Table:
        columns = [pa.array([r[i] for r in rows], a.type) for i, a in enumerate(self.schema)]
        return pa.table(columns, schema=self.schema.arrow)

    def epoch(self, rows: Sequence[Row], *patterns: str) -> Stepped:
        release = tuple(Pattern.parse(p, self.schema) for p in patterns)
        orders = Orders((release,), (PunctuationSet(self.schema),))
        step = self.kernel.step([self.table(rows) if rows else None], [self.held], orders)
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

    def live(self) -> list[Row]:
        found: list[Row] = []
        for run in self.held:
            dead = run.marks[DEAD].to_pylist() if run.marks is not None else [False] * run.rows.num_rows
            rows = tuples(run.rows.select(self.schema.names))
            found += [r for r, d in zip(rows, dead, strict=True) if not d]
        return found


def tuples(table: pa.Table) -> list[Row]:
    return [tuple(r.values()) for r in table.to_pylist()]


def shown(rows: Sequence[Row]) -> list[str]:
    return [repr(tuple(v + 0.0 if isinstance(v, float) else v for v in r)) for r in rows]


def compare(a: Any, b: Any, down: bool) -> int:
    """By definition: values, then NaN, then null."""

    def class_of(v: Any) -> int:
        return 2 if v is None else 1 if isinstance(v, float) and math.isnan(v) else 0

    if class_of(a) or class_of(b):
        return (class_of(a) > class_of(b)) - (class_of(a) < class_of(b))
    return ((a > b) - (a < b)) * (-1 if down else 1)


def in_order(rows: Sequence[Row], by: By, schema: Schema = SCHEMA) -> list[Row]:
    named = [name for name, _ in by]
    order = [*by, *((name, False) for name in schema.names if name not in named)]

    def differs(a: Row, b: Row) -> int:
        found = (compare(a[schema.index(n)], b[schema.index(n)], down) for n, down in order)
        return next((d for d in found if d), 0)

    return sorted(rows, key=cmp_to_key(differs))


def identity(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def expected(rows: Sequence[Row], count: int, by: By, per: tuple[str, ...]) -> list[Row]:
    groups: dict[Row, list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(identity(row[SCHEMA.index(n)]) for n in per), []).append(row)
    return [r for group in groups.values() for r in in_order(group, by)[:count]]


ROWS = st.tuples(
    st.none() | st.integers(0, 6),
    st.sampled_from([None, "a", "b", "ba"]),
    st.sampled_from([None, 0.0, -0.0, math.nan, 1.5, -2.0, math.inf, -math.inf]),
    st.none() | st.integers(0, 2),
)
EPOCHS = st.lists(st.lists(ROWS, max_size=10), max_size=8)
NAMES = st.sampled_from(["t", "key", "v", "n"])
ORDERS = st.lists(st.tuples(NAMES, st.booleans()), min_size=1, max_size=3, unique_by=lambda b: b[0]).map(tuple)
GROUPS = st.lists(NAMES, max_size=3, unique=True).map(tuple)


@given(EPOCHS, st.integers(1, 4), ORDERS, GROUPS)
@settings(max_examples=40, deadline=None)
def test_the_best_of_each_group_at_the_end(epochs: list[list[Row]], count: int, by: By, per: tuple[str, ...]) -> None:
    bench = Bench(count, by, per)
    sent: list[Row] = []
    for rows in epochs:
        assert bench.epoch(rows).output.num_rows == 0
        sent += rows
        # Never more than the best so far, and these in few runs.
        assert sorted(shown(bench.live())) == sorted(shown(expected(sent, count, by, per)))
        assert len(bench.held) <= 16
    out = tuples(bench.epoch([], "[*, *, *, *]").output)
    assert sorted(shown(out)) == sorted(shown(expected(sent, count, by, per)))
    assert bench.held == []


@given(EPOCHS, st.integers(1, 3), ORDERS, st.lists(st.integers(0, 7), min_size=8, max_size=8), st.booleans())
@settings(max_examples=30, deadline=None)
def test_a_frontier_lets_out_the_groups_behind_it(
    epochs: list[list[Row]], count: int, by: By, frontiers: list[int], alone: bool
) -> None:
    per = ("t",) if alone else ("key", "t")
    bench = Bench(count, by, per)
    frontier = 0
    waiting: list[Row] = []
    for rows, step_to in zip(epochs, frontiers, strict=False):
        kept = [r for r in rows if r[0] is None or r[0] >= frontier]
        frontier = max(frontier, step_to)
        waiting += kept
        out = bench.epoch(kept, f"[< {frontier}, *, *, *]").output
        done = [r for r in waiting if r[0] is not None and r[0] < frontier]
        waiting = [r for r in waiting if r not in done]
        assert sorted(shown(tuples(out))) == sorted(shown(expected(done, count, by, per)))
        assert sorted(shown(bench.live())) == sorted(shown(expected(waiting, count, by, per)))


@given(EPOCHS, st.integers(1, 3), st.lists(st.sets(st.sampled_from(["a", "b", "ba"])), min_size=8, max_size=8))
@settings(max_examples=25, deadline=None)
def test_values_that_are_over_let_out_their_groups(epochs: list[list[Row]], count: int, over: list[set[str]]) -> None:
    by: By = (("v", True), ("t", False))
    for per in (("key",), ("key", "n")):
        bench, ended, waiting = Bench(count, by, per), set[str](), list[Row]()
        for rows, fresh in zip(epochs, over, strict=False):
            kept = [r for r in rows if r[1] not in ended]
            ended |= fresh
            waiting += kept
            listed = ", ".join(f"'{k}'" for k in sorted(fresh))
            out = bench.epoch(kept, *([f"[*, {{{listed}}}, *, *]"] if fresh else [])).output
            done = [r for r in waiting if r[1] in fresh]
            waiting = [r for r in waiting if r[1] not in fresh]
            assert sorted(shown(tuples(out))) == sorted(shown(expected(done, count, by, per)))


def test_results_are_in_order() -> None:
    bench = Bench(2, (("v", True),), ("key",))
    bench.epoch([(1, "b", 3.0, 0), (1, "a", 1.0, 0), (1, "b", 5.0, 0), (1, "a", math.nan, 1), (1, "a", 9.0, 0)])
    out = tuples(bench.epoch([(2, "a", 9.0, 0)], "[*, *, *, *]").output)
    assert out == [(1, "a", 9.0, 0), (2, "a", 9.0, 0), (1, "b", 5.0, 0), (1, "b", 3.0, 0)]


def test_an_epoch_looks_at_its_own_groups_only(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(3, (("v", True),), ("t",))
    bench.epoch([(t, None, float(v), 0) for t in range(1000) for v in range(5)])
    assert len(bench.live()) == 3000
    looked: list[int] = []
    plain = top_module.best

    def watched(table: pa.Table, *args: Any) -> Any:
        looked.append(table.num_rows)
        return plain(table, *args)

    monkeypatch.setattr(top_module, "best", watched)
    step = bench.epoch([(7, None, 9.0, 0), (8, None, 1.5, 0), (8, None, 0.5, 0)])
    assert looked == [3 + 3 + 3]
    assert [f.rows.num_rows for f in step.added] == [1] and step.dropped == ()
    assert step.counts["pruned"] == 3
    assert len(bench.live()) == 3000


@given(
    EPOCHS,
    st.integers(1, 3),
    ORDERS,
    st.lists(NAMES, max_size=2, unique=True).map(tuple),
    st.randoms(use_true_random=False),
)
@settings(max_examples=40, deadline=None)
def test_feedback_changes_no_result(
    epochs: list[list[Row]], count: int, by: By, per: tuple[str, ...], random: Any
) -> None:
    """Whatever is dropped of what the feedback so far matches, all of it or any part, results are the same."""
    plain, told, some = (Bench(count, by, per) for _ in range(3))
    said: list[list[Feedback]] = [[], []]

    def unwanted(row: Row, feedback: Sequence[Feedback]) -> bool:
        named = dict(zip(SCHEMA.names, row, strict=True))
        return any(f.pattern.matches_row(named) for f in feedback)

    for rows in epochs:
        plain.epoch(rows)
        for k, (bench, kept) in enumerate(
            (
                (told, [r for r in rows if not unwanted(r, said[0])]),
                (some, [r for r in rows if random.random() < 0.5 or not unwanted(r, said[1])]),
            )
        ):
            said[k] += bench.epoch(kept).issued
    results = [sorted(shown(tuples(b.epoch([], "[*, *, *, *]").output))) for b in (plain, told, some)]
    assert results[0] == results[1] == results[2]


def issued(step: Stepped) -> list[str]:
    return sorted(map(str, step.issued))


def test_what_is_issued_tightens() -> None:
    bench = Bench(2, (("n", True),))
    assert issued(bench.epoch([(1, "a", None, 5)])) == []
    assert issued(bench.epoch([(1, "a", None, 3), (1, "a", None, 1)])) == ["not [*, *, *, < 3]"]
    assert issued(bench.epoch([(1, "a", None, 2)])) == []
    assert issued(bench.epoch([(1, "b", None, 3)])) == []  # Worse by the key: the first attribute is as before.
    assert issued(bench.epoch([(1, "a", None, 4)])) == ["not [*, *, *, < 4]"]
    assert issued(bench.epoch([(1, "a", None, 9)], "[*, *, *, *]")) == []


def test_what_is_issued_for_groups() -> None:
    bench = Bench(1, (("v", False),), ("key",))
    rows = [(1, "a", 2.0, 0), (1, "b", 7.0, 0), (1, None, 1.0, 0)]
    assert issued(bench.epoch(rows)) == ["not [*, 'a', > 2.0, *]", "not [*, 'b', > 7.0, *]"]
    assert issued(bench.epoch([(1, "a", 1.0, 0), (1, "b", 8.0, 0)])) == ["not [*, 'a', > 1.0, *]"]
    # What is complete needs no feedback.
    assert issued(bench.epoch([(1, "a", 0.5, 0), (1, "b", 6.0, 0)], "[*, 'a', *, *]")) == ["not [*, 'b', > 6.0, *]"]


@pytest.mark.parametrize("last", [None, math.nan])
def test_nothing_is_worse_than_null_or_not_a_number(last: float | None) -> None:
    bench = Bench(2, (("v", True),))
    assert issued(bench.epoch([(1, "a", 2.0, 0), (1, "a", last, 0)])) == []
    assert issued(bench.epoch([(1, "a", 1.0, 0)])) == ["not [*, *, < 1.0, *]"]


def test_the_first_attribute_that_decides_within_a_group() -> None:
    """An order by what groups are made of decides nothing; the attributes behind it do."""
    bench = Bench(1, (("key", True),), ("key",))
    assert issued(bench.epoch([(4, "a", 2.0, 0)])) == ["not [> 4, 'a', *, *]"]
    everything = Bench(1, (("key", True),), SCHEMA.names)
    assert issued(everything.epoch([(4, "a", 2.0, 0), (4, "a", 2.0, 0)])) == []
    assert len(everything.live()) == 1


def test_feedback_is_issued_for_the_busiest_groups() -> None:
    bench = Bench(1, (("v", True),), ("t",))
    rows = [(t, None, float(v), 0) for t in range(200) for v in range(2 if t % 4 else 1)]
    found = bench.epoch(rows).issued
    assert len(found) == MOST_ISSUED
    assert all(f.pattern["t"].value % 4 for f in found)  # type: ignore[attr-defined]


@given(EPOCHS, st.integers(1, 3), ORDERS, GROUPS)
@settings(max_examples=30, deadline=None)
def test_what_need_not_travel(epochs: list[list[Row]], count: int, by: By, per: tuple[str, ...]) -> None:
    plain, shrunk = Bench(count, by, per), Bench(count, by, per)
    for rows in epochs:
        plain.epoch(rows)
        shrunk.epoch(tuples(shrunk.kernel.shrink(shrunk.table(rows))))
    assert sorted(shown(plain.live())) == sorted(shown(shrunk.live()))


MOST = 2**63 - 1
TYPED: dict[str, list[Any]] = {
    "boolean": [True, False],
    "bigint": [MOST, -MOST - 1, 0, MOST - 1, -MOST],
    "tinyint": [127, -128, 0],
    "float": [1.5, -1.5, math.inf, -math.inf, math.nan],
    "string": ["", "a", "z", "é", "𝄞", "a\x00"],
    "binary": [b"", b"\xff", b"a"],
    "date": [date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)],
    "timestamp": [datetime(1, 1, 1), datetime(1970, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)],
    "decimal(38,2)": [Decimal("1.10"), Decimal("-999999999999999999999999999999999999.99"), Decimal("0.00")],
}


@pytest.mark.parametrize("kind", TYPED)
@given(data=st.data(), down=st.booleans(), count=st.integers(1, 5))
@settings(max_examples=15, deadline=None)
def test_every_type_has_its_order(kind: str, data: st.DataObject, down: bool, count: int) -> None:
    schema = Schema.parse(f"x {kind}, i int")
    values = data.draw(st.lists(st.sampled_from([*TYPED[kind], None]), max_size=12))
    rows = [(v, i % 3) for i, v in enumerate(values)]
    bench = Bench(count, (("x", down),), schema=schema)
    bench.epoch(rows[:5])
    bench.epoch(rows[5:])
    out = tuples(bench.epoch([], "[*, *]").output)
    assert shown(out) == shown(in_order(rows, (("x", down),), schema)[:count])


@given(st.lists(st.integers(-3, 3) | st.none(), max_size=30), st.booleans())
def test_places_grow_along_the_order(values: list[int | None], down: bool) -> None:
    column = pa.chunked_array([pa.array(values, pa.int32())])
    key = places(column, down).tolist()
    for a, x in zip(values, key, strict=True):
        for b, y in zip(values, key, strict=True):
            assert (x > y) - (x < y) == compare(a, b, down)


@pytest.mark.parametrize(("groups", "few"), [(1, 0), (7, 0), (7, 10_000)])
def test_many_rows_of_few_values(groups: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ties at the place where a group is full are broken by the rest of the row."""
    monkeypatch.setattr(top_module, "_FEW", few)
    rng = np.random.default_rng(3)
    table = pa.table({"v": rng.integers(0, 3, 2000), "w": rng.permutation(2000), "u": rng.integers(0, 9, 2000)})
    group = rng.integers(0, groups, 2000)
    group[:groups] = np.arange(groups)
    chosen, _ = best(table, group, [("v", True), ("w", False)], 50)
    rows = list(zip(group.tolist(), (-table["v"].to_numpy()).tolist(), table["w"].to_pylist(), range(2000)))
    wanted = [r[3] for g in range(groups) for r in sorted(r for r in rows if r[0] == g)[:50]]
    assert chosen.tolist() == sorted(wanted)


def test_rows_under_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def crowded(table: pa.Table, names: Sequence[str]) -> Any:
        return np.zeros(table.num_rows, dtype=np.uint64)

    hashes: Callable[[pa.Table, Sequence[str]], Any] = crowded
    monkeypatch.setattr(top_module, "hash_keys", hashes)
    bench = Bench(1, (("v", True),), ("key",))
    for v in (1.0, 2.0, 0.0):
        bench.epoch([(1, k, v + i, 0) for i, k in enumerate(["a", "b", None])])
    assert sorted(r[2] for r in bench.live()) == [2.0, 3.0, 4.0]
