"""Joins with the last rows of each key: every kind, any cut into epochs, against the definition spelled out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock.operators.rows_join.kernel as rows_join_module
from penstock.builder.combine import join_operator
from penstock.kernels.stateful import DEAD, Held, Orders, Stepped
from penstock.operators.join.operator import KINDS
from penstock.operators.rows_join.kernel import RowsJoinKernel
from penstock.operators.rows_join.operator import RowsJoin
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.restriction import at_most, less
from penstock.pattern.schema import Schema

LEFT = Schema.parse("t int, k int, v int", time="t")
RIGHT = Schema.parse("at int, k bigint, w int", time="at")
SCHEMAS = (LEFT, RIGHT)
Row = tuple[Any, ...]
Limits = tuple[int | None, int | None]


@cache  # Reading a predicate takes longer than an epoch here.
def _join(how: str, rows: Limits, where: str | None, null_safe: bool) -> RowsJoin:
    made = join_operator(Source((), LEFT), Source((), RIGHT), "k", how, rows=rows, where=where, null_safe=null_safe)
    assert isinstance(made, RowsJoin)
    return made


class Bench:
    """Runs a kernel epoch by epoch and keeps its state as the engine would."""

    def __init__(self, how: str, rows: Limits, where: str | None = None, null_safe: bool = False) -> None:
        self.join = _join(how, rows, where, null_safe)
        self.kernel = RowsJoinKernel(self.join, "join-1")
        self.held: list[list[Held]] = [[], []]
        self.made = 0

    def epoch(
        self,
        left: Sequence[Row],
        right: Sequence[Row],
        until: int | None = None,
        *,
        inclusive: bool = False,
        ended: bool = False,
        settled: Sequence[Sequence[str]] = ((), ()),
        ask: Sequence[Sequence[str]] = ((), ()),
    ) -> Stepped:
        patterns: list[tuple[Pattern, ...]] = [(), ()]
        if ended:
            patterns = [(Pattern.all(s),) for s in SCHEMAS]
        elif until is not None:
            bound = at_most(until) if inclusive else less(until)
            patterns = [(Pattern.by_name(s, {s.times[0]: bound}),) for s in SCHEMAS]
        more = [tuple(Pattern.parse(p, s) for p in texts) for texts, s in zip(settled, SCHEMAS, strict=True)]
        orders = Orders(
            tuple(a + b for a, b in zip(patterns, more, strict=True)),
            tuple(PunctuationSet(s).add(*m) for s, m in zip(SCHEMAS, more, strict=True)),
            tuple(tuple(Pattern.parse(p, s) for p in texts) for texts, s in zip(ask, SCHEMAS, strict=True)),
        )
        fresh = [_table(rows, s) for rows, s in zip((left, right), SCHEMAS, strict=True)]
        step = self.kernel.step(fresh, self.held, orders)
        names, marks = {h.name for runs in self.held for h in runs}, dict(step.marked)
        assert set(step.dropped) | set(marks) <= names
        assert not set(marks) & set(step.dropped)
        assert step.output.schema == self.join.schema.arrow
        self.held = [
            [
                Held(h.name, h.rows, marks.get(h.name, h.marks), h.group, h.low, h.high)
                for h in runs
                if h.name not in step.dropped
            ]
            for runs in self.held
        ]
        for made in step.added:
            self.made += 1
            run = Held(f"run-{self.made}", made.rows, made.marks, made.group, made.low, made.high)
            self.held[made.port].append(run)
        assert all(h.marks is None or h.marks.num_rows == h.rows.num_rows for runs in self.held for h in runs)
        return step

    def live(self, port: int) -> int:
        count = 0
        for run in self.held[port]:
            dead = run.marks is not None and DEAD in run.marks.column_names
            count += run.rows.num_rows - (sum(run.marks[DEAD].to_pylist()) if dead else 0)
        return count


def _table(rows: Sequence[Row], schema: Schema) -> pa.Table | None:
    if not rows:
        return None
    columns = [pa.array([r[i] for r in rows], a.type) for i, a in enumerate(schema)]
    return pa.table(columns, schema=schema.arrow)


def tuples(table: pa.Table) -> list[Row]:
    return [tuple(r.values()) for r in table.to_pylist()]


def last(rows: list[Any], limit: int | None) -> list[Any]:
    return rows if limit is None else rows[len(rows) - min(limit, len(rows)) :]


def by_definition(
    how: str,
    limits: Limits,
    left: Sequence[Row],
    right: Sequence[Row],
    until: int | None,
    *,
    where: bool = False,
    null_safe: bool = False,
) -> Counter[Row]:
    """All that has left when everything below `until` is complete; None is the end of both inputs."""
    found: Counter[Row] = Counter()

    def padded(side: int, row: Row) -> None:
        t, k, v = row
        if side == 0 and how in ("left", "full"):
            found[k, t, v, None, None] += 1
        elif side == 0 and how == "anti":
            found[row] += 1
        elif side == 1 and how in ("right", "full"):
            found[k, None, None, t, v] += 1

    events: list[tuple[int, Row]] = []
    for side, rows in enumerate((left, right)):
        for row in rows:
            if row[0] is None or (row[1] is None and not null_safe):
                padded(side, row)
            elif until is None or row[0] < until:
                events.append((side, row))
    events.sort(key=lambda e: (e[1][0], e[0], [(v is None, v or 0) for v in e[1]]))
    for key in {row[1] for _, row in events}:
        past: list[list[int]] = [[], []]
        mine = [(side, row) for side, row in events if row[1] == key]
        partners = [0] * len(mine)
        for i, (side, row) in enumerate(mine):
            for j in last(past[1 - side], limits[1 - side]):
                l_row, r_row = (row, mine[j][1]) if side == 0 else (mine[j][1], row)
                if where and not (l_row[2] is not None and r_row[2] is not None and l_row[2] <= r_row[2]):
                    continue
                partners[i] += 1
                partners[j] += 1
                if how not in ("semi", "anti"):
                    found[key, l_row[0], l_row[2], r_row[0], r_row[2]] += 1
            past[side].append(i)
        for i, (side, row) in enumerate(mine):
            if how == "semi" and side == 0 and partners[i]:
                found[row] += 1
            if not partners[i] and (until is None or i not in last(past[side], limits[side])):
                padded(side, row)
    return found


EVENT = st.tuples(
    st.one_of(st.integers(0, 8), st.integers(0, 8), st.integers(0, 8), st.none()),
    st.sampled_from([1, 1, 2, 3, None]),
    st.sampled_from([0, 1, 2, None]),
)
EPOCH = st.tuples(st.lists(EVENT, max_size=6), st.lists(EVENT, max_size=6), st.integers(0, 9))
LIMIT = st.sampled_from([1, 2, 3, None])


def test_the_last_rows_of_each_key_in_order_of_time() -> None:
    bench = Bench("inner", (2, 1))
    left = [(5, 1, 50), (1, 1, 10), (3, 1, 30), (2, 2, 20)]
    right = [(4, 1, 401), (4, 1, 400)]
    assert bench.epoch(left, right).output.num_rows == 0
    step = bench.epoch([], [], until=5)
    assert sorted(tuples(step.output)) == [
        (1, 1, 10, 4, 400),
        (1, 1, 10, 4, 401),
        (1, 3, 30, 4, 400),
        (1, 3, 30, 4, 401),
    ]
    # Of the two right rows of time 4, the one with the greater content is the last.
    assert tuples(bench.epoch([], [], until=6).output) == [(1, 5, 50, 4, 401)]


def test_at_the_same_time_left_comes_before_right() -> None:
    bench = Bench("inner", (1, 1))
    step = bench.epoch([(3, 1, 0)], [(3, 1, 0)], until=3, inclusive=True)
    assert tuples(step.output) == [(1, 3, 0, 3, 0)]


def test_the_residual_is_asked_after_the_last_rows_are_chosen() -> None:
    bench = Bench("left", (1, 1), where="v < w")
    step = bench.epoch([(1, 1, 5), (2, 1, 9)], [(3, 1, 7)], ended=True)
    # 5 < 7 would match, but the row with 9 is the last one before it.
    assert sorted(tuples(step.output)) == [(1, 1, 5, None, None), (1, 2, 9, None, None)]


def test_an_unmatched_row_leaves_when_it_falls_out_of_the_last_rows() -> None:
    bench = Bench("left", (1, 1))
    assert tuples(bench.epoch([(1, 1, 0)], [], until=2).output) == []
    assert tuples(bench.epoch([(2, 1, 0)], [], until=3).output) == [(1, 1, 0, None, None)]
    assert tuples(bench.epoch([], [(3, 1, 7)], until=4).output) == [(1, 2, 0, 3, 7)]
    assert tuples(bench.epoch([], [], ended=True).output) == []
    assert bench.held == [[], []]


def test_what_cannot_have_a_partner_leaves_at_once() -> None:
    bench = Bench("full", (1, 1))
    step = bench.epoch([(None, 1, 0), (1, None, 1)], [(2, None, 3)])
    assert Counter(tuples(step.output)) == Counter(
        [(1, None, 0, None, None), (None, 1, 1, None, None), (None, None, None, 2, 3)]
    )
    assert bench.held == [[], []]


@given(st.sampled_from(KINDS), LIMIT, LIMIT, st.lists(EPOCH, max_size=6), st.booleans(), st.booleans())
@settings(max_examples=120, deadline=None)
def test_any_cut_into_epochs_follows_the_definition(
    how: str, n: int | None, m: int | None, epochs: list[Any], where: bool, null_safe: bool
) -> None:
    bench = Bench(how, (n, m), "v <= w" if where else None, null_safe)
    left: list[Row] = []
    right: list[Row] = []
    frontier = 0
    out: Counter[Row] = Counter()
    for some_left, some_right, ahead in epochs:
        # Grammatical: nothing below the frontier.
        some_left = [e for e in some_left if e[0] is None or e[0] >= frontier]
        some_right = [e for e in some_right if e[0] is None or e[0] >= frontier]
        left += some_left
        right += some_right
        frontier = max(frontier, ahead)
        out.update(tuples(bench.epoch(some_left, some_right, until=frontier).output))
        assert out == by_definition(how, (n, m), left, right, frontier, where=where, null_safe=null_safe)
    out.update(tuples(bench.epoch([], [], ended=True).output))
    assert out == by_definition(how, (n, m), left, right, None, where=where, null_safe=null_safe)
    assert bench.held == [[], []]


@given(st.sampled_from(KINDS), LIMIT, st.lists(EPOCH, max_size=5))
@settings(max_examples=25, deadline=None)
def test_keys_that_share_a_hash_are_told_apart(how: str, limit: int | None, epochs: list[Any]) -> None:
    def crowded(table: pa.Table, names: Sequence[str]) -> np.ndarray[Any, np.dtype[np.uint64]]:
        return np.zeros(table.num_rows, dtype=np.uint64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_join_module, "hash_keys", crowded)
        patch.setattr(rows_join_module, "is_exact", lambda types: False)
        test_any_cut_into_epochs_follows_the_definition.hypothesis.inner_test(  # type: ignore[attr-defined]
            how, limit, 1, epochs, False, True
        )


@pytest.mark.parametrize(
    ("how", "limits"),
    [("inner", (3, None)), ("left", (1, 2)), ("full", (2, 1)), ("semi", (3, None)), ("anti", (1, 2))],
)
def test_many_epochs_with_runs_that_are_marked_rewritten_and_merged(how: str, limits: Limits) -> None:
    random = Random(7)
    bench = Bench(how, limits, "v <= w")
    events: tuple[list[Row], list[Row]] = ([], [])
    out: Counter[Row] = Counter()
    merged = 0
    for t in range(0, 90, 3):
        # Some keys come all the time and some are left alone for long, on one side or the other.
        fresh = [
            [(t + random.randrange(6), random.choice([1, random.randrange(40)]), random.randrange(9)) for _ in range(n)]
            for n in (random.choice([0, 3, 12]), random.choice([0, 3, 12]))
        ]
        for all_, some in zip(events, fresh, strict=True):
            all_ += some
        step = bench.epoch(fresh[0], fresh[1], until=t)
        out.update(tuples(step.output))
        assert out == by_definition(how, limits, events[0], events[1], t, where=True)
        merged += len(step.dropped) > 4
    assert merged
    out.update(tuples(bench.epoch([], [], ended=True).output))
    assert out == by_definition(how, limits, events[0], events[1], None, where=True)


def test_a_row_that_left_padded_does_not_leave_again() -> None:
    bench = Bench("left", (1, 1))
    # Key 1 falls out of a run that is kept for the sake of the others.
    bench.epoch([(1, k, 0) for k in range(5)], [], until=2)
    assert tuples(bench.epoch([(3, 1, 0)], [], until=4).output) == [(1, 1, 0, None, None)]
    assert tuples(bench.epoch([(5, 1, 0)], [], until=6).output) == [(1, 3, 0, None, None)]


@pytest.mark.parametrize("flipped", [False, True])
def test_content_decides_between_rows_of_the_same_time_and_null_is_last(flipped: bool) -> None:
    bench = Bench("inner", (2, 1))
    left = [(1, 1, 7), (1, 1, None), (1, 1, 5), (1, 1, 6)]
    step = bench.epoch(left[::-1] if flipped else left, [(2, 1, 0)], until=3)
    assert Counter(tuples(step.output)) == Counter([(1, 1, 7, 2, 0), (1, 1, None, 2, 0)])


def test_state_is_the_last_rows_of_each_key() -> None:
    bench = Bench("inner", (2, 3))
    for t in range(60):
        left = [(t, k, 0) for k in range(5)]
        right = [(t, k, 0) for k in range(5)]
        bench.epoch(left, right, until=t + 1)
        assert bench.live(0) <= 2 * 5
        assert bench.live(1) <= 3 * 5
        assert sum(len(runs) for runs in bench.held) <= 16
        assert sum(h.rows.num_rows for runs in bench.held for h in runs) <= 2 * 25 + 10


def test_only_keys_with_something_new_are_touched() -> None:
    bench = Bench("inner", (1, 1))
    bench.epoch([(1, k, 0) for k in range(100)], [], until=2)
    step = bench.epoch([], [(3, 7, 0)], until=4)
    assert (step.dropped, step.marked) == ((), ())
    assert [f.rows.num_rows for f in step.added] == [1]
    step = bench.epoch([(5, 7, 0)], [], until=6)
    ((_, marks),) = step.marked
    assert sum(marks[DEAD].to_pylist()) == 1


def test_a_key_that_is_over_on_the_other_side_lets_go_of_its_rows() -> None:
    bench = Bench("anti", (5, 5))
    bench.epoch([(1, 1, 0), (2, 2, 0)], [(9, 2, 0)], until=5)
    # No further right event with key 1 or 2; but one with key 2 still waits for its turn.
    step = bench.epoch([], [], settled=(["[*, {1, 2}, *]"], []))
    assert tuples(step.output) == [(1, 1, 0)]
    assert bench.live(0) == 1
    step = bench.epoch([], [], until=10, settled=(["[*, {1, 2}, *]"], []))
    assert tuples(step.output) == []
    assert bench.live(0) == 0


def test_answers_count_what_waits_and_what_stays() -> None:
    bench = Bench("inner", (1, 1))
    step = bench.epoch(
        [(1, 1, 0), (2, 1, 0), (7, 1, 0), (8, 2, 0)],
        [(3, 1, 4)],
        until=5,
        ask=(["[*, 1, *]", "[*, 3, *]"], ["[*, *, 4]"]),
    )
    assert [[(a.rows, a.latest) for a in port] for port in step.answers] == [[(2, 7), (0, None)], [(1, 3)]]
