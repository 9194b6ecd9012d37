"""The queue before an expensive function: who has a turn, what is left, and what that costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import UserError
from penstock.kernels.stateful import DEAD, Held, Orders, Stepped
from penstock.operators.impute.kernel import QueueKernel, shares
from penstock.operators.impute.operator import Impute
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.schema import Schema

SCHEMA = Schema.parse("t int, key string", time="t")
Row = tuple[int | None, str | None]


class Bench:
    """Runs a kernel epoch by epoch, keeps its state as the engine would, and counts what that writes."""

    def __init__(self, budget: int = 3) -> None:
        self.calls: list[list[Row]] = []
        self.kernel = QueueKernel(
            Impute((Source((), SCHEMA),), SCHEMA, function=self.function, budget=budget), "impute-1"
        )
        self.held: list[Held] = []
        self.made = self.written = 0

    def function(self, rows: pa.Table) -> pa.Table:
        self.calls.append(tuples(rows))
        return rows

    def epoch(self, *rows: Row, most: int = 3, prefer: Sequence[str] = (), ask: Sequence[str] = ()) -> Stepped:
        columns = [pa.array([r[i] for r in rows], a.type) for i, a in enumerate(SCHEMA)]
        fresh = pa.table(columns, schema=SCHEMA.arrow) if rows else None
        patterns = [Pattern.parse(p, SCHEMA) for p in prefer]
        asked = tuple(Pattern.parse(p, SCHEMA) for p in ask)
        orders = Orders(((),), (PunctuationSet(SCHEMA),), (asked,) if asked else ())
        step = self.kernel.taking(most).preferring(patterns).step([fresh], [self.held], orders)
        self._keep(step)
        return step

    def _keep(self, step: Stepped) -> None:
        marks, skips = dict(step.marked), dict(step.skipped)
        changed = [*step.dropped, *marks, *skips]
        assert len(changed) == len(set(changed)) and set(changed) <= {h.name for h in self.held}
        kept = []
        for held in self.held:
            if held.name in skips:
                assert held.marks is None, "marks speak of the rows behind those that were skipped before"
                held = replace(held, rows=held.rows.slice(skips[held.name]))
            if held.name not in step.dropped:
                kept.append(replace(held, marks=marks.get(held.name, held.marks)))
        for made in step.added:
            self.made += 1
            self.written += made.rows.num_rows
            kept.append(Held(f"run-{self.made}", made.rows, made.marks, made.group, made.low, made.high))
        # The order in which units are listed is not the order of arrival.
        self.held = kept[::-1]
        assert all(h.marks is None or h.marks.num_rows == h.rows.num_rows for h in self.held)
        assert all(h.rows.num_rows for h in self.held)

    def kill(self, *keys: str) -> None:
        """Mark rows dead from outside."""
        self.held = [
            replace(h, marks=pa.table({DEAD: pa.array([k in keys for k in h.rows["key"].to_pylist()], pa.bool_())}))
            for h in self.held
        ]


def tuples(table: pa.Table) -> list[Row]:
    return [(r["t"], r["key"]) for r in table.to_pylist()]


def rows(*keys: str) -> list[Row]:
    return [(t, key) for t, key in enumerate(keys)]


def keys(step: Stepped) -> str:
    return "".join(step.output["key"].to_pylist())


def test_rows_have_their_turn_in_order_of_arrival() -> None:
    bench = Bench()
    first = bench.epoch(*rows(*"abcde"))
    assert keys(first) == "abc" and first.counts == {"processed": 3, "queued": 2}
    assert keys(bench.epoch(*rows(*"fg"))) == "def"
    last = bench.epoch()
    assert keys(last) == "g" and last.counts == {"processed": 1, "queued": 0}
    assert bench.held == []


def test_what_has_its_turn_at_once_is_never_stored() -> None:
    bench = Bench()
    step = bench.epoch(*rows(*"abc"))
    assert keys(step) == "abc" and step.added == ()


def test_nobody_is_called_for_nothing() -> None:
    bench = Bench()
    bench.epoch(*rows(*"ab"), most=0)
    assert bench.calls == []
    bench.epoch()
    bench.epoch()
    assert len(bench.calls) == 1


def test_taking_a_few_from_a_long_queue_writes_nothing() -> None:
    bench = Bench()
    bench.epoch(*rows(*"x" * 1000), most=0)
    for _ in range(300):
        step = bench.epoch(most=3)
        assert (step.dropped, step.added, step.marked) == ((), (), ()) and len(step.skipped) == 1
    assert bench.written == 1000


def test_many_small_arrivals_are_merged_without_rewriting_all_the_time() -> None:
    bench = Bench()
    for n in range(600):
        bench.epoch((n, "x"), (n, "y"), most=1)
        assert len(bench.held) <= 8
    assert bench.written < 30 * 1200
    while bench.held:
        bench.epoch(most=100)
    assert [t for call in bench.calls for t, _ in call] == [n for n in range(600) for _ in range(2)]


def test_preferred_rows_go_first_in_their_own_order() -> None:
    bench = Bench()
    bench.epoch(*rows(*"abpcqd"), most=0)
    assert keys(bench.epoch((9, "p"), most=2, prefer=["[*, 'q']", "[*, 'p']"])) == "pq"
    assert keys(bench.epoch(most=3, prefer=["[*, {'q', 'p'}]"])) == "pab"
    assert keys(bench.epoch()) == "cd"


def test_a_run_is_rewritten_when_most_of_it_has_gone() -> None:
    bench = Bench()
    bench.epoch(*rows(*"apbpcpd"), most=0)
    step = bench.epoch(most=3, prefer=["[*, 'p']"])
    assert step.dropped == () and len(step.marked) == 1
    step = bench.epoch(most=1)
    assert len(step.dropped) == 1 and keys(bench.epoch(most=9)) == "bcd"


def test_the_dead_are_gone() -> None:
    bench = Bench()
    bench.epoch(*rows(*"abcabcabc"), most=1)
    bench.kill("b")
    step = bench.epoch(most=2, ask=["[*, *]", "[*, 'b']", "[*, 'c']"])
    assert keys(step) == "ca" and [a.rows for a in step.answers[0]] == [3, 0, 2]
    assert step.counts["queued"] == 3
    assert keys(bench.epoch()) == "cac" and bench.held == []
    assert "b" not in {key for call in bench.calls for _, key in call}


def test_runs_of_the_dead_alone_are_dropped() -> None:
    bench = Bench()
    bench.epoch(*rows(*"bbb"), most=0)
    bench.kill("b")
    step = bench.epoch(ask=["[*, *]"])
    assert step.answers[0][0].rows == 0 and bench.held == [] and bench.calls == []


def test_answers_tell_how_far_down_rows_reach_and_which_values_they_have() -> None:
    bench = Bench()
    bench.epoch((7, "a"), (5, "b"), (9, None), (None, "c"), (3, "d"), most=0)
    step = bench.epoch(most=0, ask=["[< 9, *]", "[< 3, *]", "[*, {'a', 'c', 'x'}]", "[> 6, *]", "[< 8, 'a']"])
    below, none, listed, above, both = step.answers[0]
    assert (below.rows, below.least) == (3, 3) and (none.rows, none.least) == (0, None)
    assert (listed.rows, listed.left) == (2, {"a", "c"})
    assert (above.rows, above.least, above.left) == (2, None, None) and (both.rows, both.least) == (1, None)
    step = bench.epoch(most=3, ask=["[< 9, *]"])
    assert step.answers[0][0].least == 3


def test_a_function_that_fails_is_named() -> None:
    def fail(rows: pa.Table) -> pa.Table:
        raise ValueError("no model")

    kernel = QueueKernel(Impute((Source((), SCHEMA),), SCHEMA, function=fail), "impute-7")
    orders = Orders(((),), (PunctuationSet(SCHEMA),))
    with pytest.raises(UserError, match=r"impute-7: function .*fail\(batch\) failed: ValueError: no model"):
        kernel.step([pa.table({"t": [1], "key": ["a"]}, schema=SCHEMA.arrow)], [[]], orders)


@dataclass(frozen=True)
class Turn:
    arriving: str
    most: int
    prefer: str | None
    kill: str | None


TURNS = st.lists(
    st.builds(
        Turn,
        st.text("abcd", max_size=6),
        st.integers(0, 7),
        st.none() | st.sampled_from("abcd"),
        st.none() | st.none() | st.sampled_from("abcd"),
    ),
    max_size=30,
)


@given(TURNS)
def test_it_is_a_list_from_which_the_first_are_taken(turns: list[Turn]) -> None:
    bench, line, number = Bench(), list[Row](), 0
    for turn in turns:
        if turn.kill is not None and not any(h.marks is not None for h in bench.held):
            bench.kill(turn.kill)
            line = [row for row in line if row[1] != turn.kill]
        # Not in order of time, and one in eight has none.
        arriving: list[Row] = [((number + k) ^ 5, key) for k, key in enumerate(turn.arriving)]
        arriving = [(None if t is not None and t % 8 == 3 else t, f"{key}") for t, key in arriving]
        number += len(arriving)
        line += arriving
        before = len(bench.calls)
        step = bench.epoch(
            *arriving,
            most=turn.most,
            prefer=[] if turn.prefer is None else [f"[*, '{turn.prefer}']"],
            ask=["[*, *]", "[*, 'a']", f"[<= {number // 2}, *]", f"[< {number}, *]"],
        )
        wanted = [r for r in line if r[1] == turn.prefer] + [r for r in line if r[1] != turn.prefer]
        taken = wanted[: turn.most]
        for row in taken:
            line.remove(row)
        assert bench.calls[before:] == ([taken] if taken else [])
        everything, listed, half, below = step.answers[0]
        assert (everything.rows, listed.rows) == (len(line), sum(key == "a" for _, key in line))
        times = [t for t, _ in line if t is not None]
        for answer, end in ((half, number // 2 + 1), (below, number)):
            before = [t for t in times if t < end]
            assert (answer.rows, answer.least) == (len(before), min(before, default=None))
        assert len(bench.held) <= 8


@given(st.integers(1, 50), st.lists(st.integers(0, 30), min_size=1, max_size=8), st.integers(0, 20))
def test_a_budget_is_shared_out(budget: int, waiting: list[int], turn: int) -> None:
    given_out = shares(budget, waiting, turn)
    assert sum(given_out) == budget
    used = np.minimum(given_out, waiting)
    # None is wasted while somebody waits, and nobody gets much less than another who waits as long.
    assert used.sum() == min(budget, sum(waiting))
    unmet = [share for share, need in zip(given_out, waiting) if share < need]
    assert not unmet or max(used) <= min(unmet) + 1


def test_everybody_has_a_turn_though_the_budget_is_small() -> None:
    served: Any = np.zeros(5, dtype=int)
    for turn in range(20):
        served += np.minimum(shares(1, [3, 3, 3, 3, 3], turn), 1)
    assert served.tolist() == [4, 4, 4, 4, 4]
