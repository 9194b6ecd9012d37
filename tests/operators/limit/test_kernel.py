"""Limit: the first rows, whatever the cut into epochs; then nothing, and a word upstream, once."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from penstock.kernels.stateful import Held, Orders, Stepped
from penstock.operators.limit.kernel import LimitKernel
from penstock.operators.limit.operator import Limit
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.schema import Schema

SCHEMA = Schema.parse("n int, key string")
END = Pattern.all(SCHEMA)


class Bench:
    """Runs a kernel epoch by epoch and keeps its state as the engine would."""

    def __init__(self, count: int) -> None:
        self.kernel = LimitKernel(Limit((), SCHEMA, count=count), "limit-1")
        self.held: list[Held] = []
        self.made = 0

    def epoch(self, numbers: Sequence[int], *release: Pattern) -> Stepped:
        rows = pa.table([pa.array(numbers, pa.int32()), ["x"] * len(numbers)], schema=SCHEMA.arrow)
        orders = Orders((release,), (PunctuationSet(SCHEMA),), ((END,),))
        step = self.kernel.step([rows if numbers else None], [self.held], orders)
        self.held = [h for h in self.held if h.name not in step.dropped]
        for made in step.added:
            self.made += 1
            self.held.append(Held(f"run-{self.made}", made.rows))
        return step


@given(st.lists(st.integers(0, 6), max_size=8), st.integers(1, 12))
def test_the_first_rows_in_any_cut(sizes: list[int], count: int) -> None:
    bench = Bench(count)
    sent = 0
    out: list[int] = []
    for size in sizes:
        numbers = list(range(sent, sent + size))
        before, sent = sent, sent + size
        step = bench.epoch(numbers)
        out += step.output["n"].to_pylist()
        reached = before < count <= sent
        assert [str(f) for f in step.issued] == (["not [*, *]"] if reached else [])
        assert step.answers[0][0].rows == min(sent, count)
        assert sum(h.rows.num_rows for h in bench.held) <= 1
    assert out == list(range(min(sent, count)))


def test_when_it_is_full_nothing_is_written() -> None:
    bench = Bench(3)
    bench.epoch([1, 2, 3, 4])
    step = bench.epoch([5, 6])
    assert (step.output.num_rows, step.dropped, step.added, step.issued) == (0, (), (), ())
    assert step.counts == {"beyond": 2}


def test_the_end_lets_go_of_the_count() -> None:
    bench = Bench(3)
    bench.epoch([1])
    step = bench.epoch([2, 3, 4], END)
    assert step.output["n"].to_pylist() == [2, 3]
    assert (bench.held, step.issued) == ([], ())


@given(st.lists(st.lists(st.integers(0, 99), max_size=5), max_size=5), st.integers(1, 6))
def test_what_need_not_travel(parts: list[list[int]], count: int) -> None:
    whole, shrunk = Bench(count), Bench(count)
    tables = [pa.table([pa.array(p, pa.int32()), ["x"] * len(p)], schema=SCHEMA.arrow) for p in parts]
    kept = [n for t in tables for n in shrunk.kernel.shrink(t)["n"].to_pylist()]
    assert len(kept) <= count * len(parts)
    assert shrunk.epoch(kept).output.equals(whole.epoch([n for p in parts for n in p]).output)
