"""Which operators pass events on at once, and what follows from it."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.analysis.bounds import bounds
from penstock.engine.measure_joins import sample
from penstock.engine.tasks.columns import needed
from penstock.engine.tasks.pipeline import Pipeline
from penstock.operators.aggregate.monotone import is_never_negative
from penstock.operators.sink.operator import Sink
from penstock.plan.plan import Plan
from penstock.plan.upwards import comes_as_read, passes_at_once

A, B = (ps.stream(n, "ts int, k int, v int, note string", time="ts").disorder(5).expect(rate=1) for n in "ab")
NAMES = ps.table("names", "k int, name string", key="k").read_csv("names.csv")
PRICES = ps.table("prices", "k int, price int, since int", key="k", version="since").read_csv("prices.csv")


def test_lookups_and_paces_pass_at_once_and_queues_do_not() -> None:
    assert passes_at_once(A.lookup(NAMES, "k").operator)
    assert comes_as_read(A.lookup(NAMES, "k").pace(B.lookup(NAMES, "k"), on="ts", bound=9).operator)
    assert not passes_at_once(A.impute(lambda rows: rows).operator)
    assert not comes_as_read(A.distinct().lookup(NAMES, "k").operator)


def test_what_waits_behind_a_lookup_is_bounded_where_an_event_finds_one_row() -> None:
    def waiting(stream: ps.Stream) -> int | None:
        return bounds(stream.impute(lambda rows: rows, budget=500).plan, epoch=500)["impute-1"].rows

    assert waiting(A.lookup(PRICES, "k", as_of="ts")) == 500
    assert waiting(A.pace(on="ts", bound=9)) == 500
    # Of a table without versions an event may find any number of rows.
    assert waiting(A.lookup(NAMES, "k")) is None


def test_a_stream_that_is_united_with_itself_brings_every_event_twice() -> None:
    twice = A.union(A)
    found = [bounds(twice.impute(lambda r: r, budget=n).plan, epoch=500)["impute-1"].rows for n in (500, 1000)]
    assert found == [None, 1000]


def test_time_goes_on_behind_a_pace_over_lookups() -> None:
    # They promise nothing of time themselves: what is known of it is the bound of the pace.
    a, b = (ps.stream(n, "ts int, k int", time="ts").expect(rate=1) for n in "ab")
    paced = a.lookup(NAMES, "k").pace(b.lookup(NAMES, "k"), on="ts", bound=9)
    assert bounds(paced.order_by("ts").plan)["orderby-1"].rows is not None


@pytest.mark.parametrize(
    "query", ["limit(3)", "top(2, by='v')", "instrument('not [1, *, *, *]')", "pace(on='ts', bound=9)"]
)
def test_what_is_never_negative_stays_so(query: str) -> None:
    bounded = ps.stream("c", "ts int, k int, v int, note string", time="ts").bounds("v", low=0)
    stream: ps.Stream = eval(f"bounded.{query}", {"bounded": bounded})
    assert is_never_negative(stream.operator, "v") and not is_never_negative(stream.operator, "k")


@pytest.mark.parametrize(
    ("query", "read"),
    [
        ("a.union(b).select('k')", ("k",)),
        ("a.union(b).where('v > 1').group_by('k').agg(n='count(*)')", ("k", "v")),
        ("a.union(b)", ("ts", "k", "v", "note")),
        # Events that are too far behind are written down whole.
        ("a.pace(b, on='ts', bound=9).select('k')", ("ts", "k", "v", "note")),
    ],
)
def test_of_a_union_only_what_is_looked_at_is_read(query: str, read: tuple[str, ...]) -> None:
    stream: ps.Stream = eval(query, {"a": A, "b": B})
    pipeline = Pipeline(Plan.of(Sink((stream.operator,), stream.schema)))
    assert [needed(pipeline, n.id) for n in pipeline.plan.sources] == [read, read]


def test_joins_are_measured_through_whatever_passes_at_once() -> None:
    made = ps.generate("g", rate=10, rows=50, columns={"k": ("key", 9)})
    told = made.instrument(f"not [{', '.join(['*'] * len(made.schema))}]")
    assert sample(told, 20).num_rows == 20
