"""Whole plans: the batch answer at the end, whatever the cuts; nothing left behind; every stream grammatical."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.builder.stream import StreamBuilder
from penstock.errors import UserError
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Schema
from penstock.plan.window import Window
from penstock.reference.interpret import Result, interpret
from penstock.reference.item import breaches, events, punctuations

SCHEMA = Schema.parse("ts int, k string, v int", time="ts")


def source(name: str = "s", slack: int = 3) -> StreamBuilder:
    return StreamBuilder(Source((), SCHEMA, name=name)).disorder(slack)


def run(query: StreamBuilder, inputs: dict[str, list[Any]], **options: Any) -> Result:
    result = interpret(query.operator, inputs, **options)
    for node, items in result.streams.items():
        assert not breaches(items), f"{node} breaks its word"
    return result


def row(ts: int, k: str | None, v: int | None) -> dict[str, Any]:
    return {"ts": ts, "k": k, "v": v}


def bag(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(sorted(r.items())) for r in rows)


rows = st.lists(
    st.builds(row, st.integers(-15, 25), st.sampled_from(["a", "b", None]), st.none() | st.integers(-9, 9)), max_size=14
)
cuts = st.none() | st.sets(st.integers(1, 28))


@given(rows=rows, at=cuts, size=st.integers(1, 6), slide=st.integers(1, 8), origin=st.integers(-3, 3))
@settings(max_examples=60, deadline=None)
def test_windowed_aggregate_ends_with_the_batch_answer(
    rows: list[dict[str, Any]], at: set[int] | None, size: int, slide: int, origin: int
) -> None:
    window = Window.sliding(size, slide, origin=origin)
    query = source().where("v > -5").window(window).group_by("k").agg(n="count(*)", s="sum(v)", f="first(v)")
    result = run(query, {"s": rows}, ends=True, punctuate_at=at, traced=False)
    assert all(held == [] for held in result.states.values())
    kept = events(result.streams["source:s"])
    connection = duckdb.connect(":memory:")
    connection.register("t", pa.Table.from_pylist(kept, schema=SCHEMA.arrow))
    expected = connection.execute(f"""
        SELECT w, k, count(*), sum(v)::BIGINT, min({{'ts': ts, 'v': v}}) FILTER (WHERE v IS NOT NULL)['v']
        FROM t, (SELECT {origin} + {slide} * unnest(range(-60, 60)) AS w)
        WHERE v > -5 AND w <= ts AND ts < w + {size} GROUP BY ALL
    """).fetchall()
    names = ("window_start", "k", "n", "s", "f")
    assert bag(events(result.outputs)) == bag([dict(zip(names, r)) for r in expected])


@given(left=rows, right=rows, at=cuts)
@settings(max_examples=40, deadline=None)
def test_cuts_do_not_change_events(
    left: list[dict[str, Any]], right: list[dict[str, Any]], at: set[int] | None
) -> None:
    query = source("l").union(source("r", slack=0)).window(4, slide=2).group_by("k").agg(n="count(v)", top="max(v)")
    inputs = {"l": left, "r": right}
    always, cut = (run(query, inputs, punctuate_at=p, traced=False) for p in (None, at))
    assert bag(events(always.outputs)) == bag(events(cut.outputs))
    assert always.dead_letters == cut.dead_letters
    assert {n: bag([dict(zip("k", g.key)) for g in s]) for n, s in always.states.items() if "agg" in n} == {
        n: bag([dict(zip("k", g.key)) for g in s]) for n, s in cut.states.items() if "agg" in n
    }


def test_landmark_results_accumulate() -> None:
    query = source(slack=0).window(landmark=10, origin=0).group_by("k").agg(n="count(*)", s="sum(v)")
    sent = [row(-1, "a", 9), row(1, "a", 1), row(5, "b", 2), row(12, "a", 3), row(30, "a", 0), row(31, "a", 4)]
    result = run(query, {"s": sent})
    assert [tuple(r.values()) for r in events(result.outputs)] == [
        (10, "a", 1, 1),
        (10, "b", 1, 2),
        (20, "a", 2, 4),
    ]
    assert [str(p) for p in punctuations(result.outputs)] == [
        "[<= 10, *, *, *]",
        "[<= 30, *, *, *]",
        "[<= 30, *, *, *]",
    ]
    ended = run(query, {"s": sent}, ends=True)
    assert [tuple(r.values()) for r in events(ended.outputs)][3:] == [(40, "a", 4, 8)]
    assert ended.states["aggregate-1"] == []


def test_landmark_key_punctuation_closes_no_window() -> None:
    stream = StreamBuilder(Source((), SCHEMA, name="s"))
    query = stream.window(landmark=10).group_by("k").agg(n="count(*)")
    done = Pattern.parse("[*, 'a', *]", SCHEMA)
    upto = Pattern.parse("[< 20, *, *]", SCHEMA)
    result = run(query, {"s": [row(1, "a", 1), done, row(2, "b", 1), upto]})
    assert [tuple(r.values()) for r in events(result.outputs)] == [
        (10, "a", 1),
        (10, "b", 1),
    ]


def test_landmark_windows_end_for_all_keys_together() -> None:
    stream = StreamBuilder(Source((), SCHEMA, name="s"))
    query = stream.window(landmark=10).group_by("k").agg(n="count(*)")
    only = Pattern.parse("[< 20, 'a', *]", SCHEMA)
    upto = Pattern.parse("[< 10, *, *]", SCHEMA)
    result = run(query, {"s": [row(1, "a", 1), row(2, "b", 1), only, upto]})
    assert [tuple(r.values()) for r in events(result.outputs)] == [(10, "a", 1), (10, "b", 1)]


def test_count_windows_per_group_by_arrival() -> None:
    stream = StreamBuilder(Source((), SCHEMA, name="s"))
    query = stream.window(rows=3, slide_rows=2).group_by("k").agg(s="sum(v)")
    sent = [row(9, "a", 1), row(1, "a", 2), row(5, "b", 7), row(2, "a", 4), row(3, "a", 8), row(0, "a", 16)]
    result = run(query, {"s": sent})
    assert [tuple(r.values()) for r in events(result.outputs)] == [(0, "a", 7), (2, "a", 28)]
    done = Pattern.parse("[*, 'a', *]", SCHEMA)
    closed = run(query, {"s": [*sent, Pattern.parse("[< 99, *, *]", SCHEMA), done]})
    assert [tuple(r.values()) for r in events(closed.outputs)][2:] == [(4, "a", 16)]
    assert [g.key for g in closed.states["aggregate-1"]] == [("b",)]
    assert [str(p) for p in punctuations(closed.outputs)] == ["[*, 'a', *]"]


def test_count_windows_with_gaps() -> None:
    query = StreamBuilder(Source((), SCHEMA, name="s")).window(rows=1, slide_rows=3).agg(s="sum(v)")
    result = run(query, {"s": [row(0, "a", v) for v in range(5)]}, ends=True)
    assert [tuple(r.values()) for r in events(result.outputs)] == [(0, 0), (3, 3)]


def test_map_sees_one_row_and_keeps_what_it_says() -> None:
    def twice(table: pa.Table) -> pa.Table:
        return pa.concat_tables([table, table])

    stream = StreamBuilder(Source((), SCHEMA, name="s"))
    kept = Pattern.parse("[< 5, *, *]", SCHEMA)
    lost = Pattern.parse("[*, 'a', *]", SCHEMA)
    result = run(stream.map(twice, keeps=["ts"]), {"s": [row(1, "a", 1), kept, lost]}, ends=True)
    assert len(events(result.outputs)) == 2
    assert [str(p) for p in punctuations(result.outputs)] == ["[< 5, *, *]", "[*, *, *]"]


def test_project_passes_punctuation_on_what_it_carries() -> None:
    stream = StreamBuilder(Source((), SCHEMA, name="s"))
    query = stream.select(t="ts", again="ts", double="v * 2")
    patterns = [Pattern.parse(p, SCHEMA) for p in ("[< 5, *, *]", "[< 6, 'a', *]", "[*, *, 3]", "[*, *, *]")]
    result = run(query, {"s": [row(9, "a", 1), *patterns]})
    assert events(result.outputs) == [{"t": 9, "again": 9, "double": 2}]
    assert [str(p) for p in punctuations(result.outputs)] == ["[< 5, *, *]", "[*, < 5, *]", "[*, *, *]"]


def test_null_keys_form_a_group_that_only_a_wildcard_closes() -> None:
    stream = StreamBuilder(Source((), SCHEMA, name="s"))
    query = stream.group_by("k").agg(n="count(*)")
    closed = Pattern.parse("[*, >= '', *]", SCHEMA)
    sent = [row(1, None, 1), row(2, "a", 1), row(3, None, 1), closed]
    result = run(query, {"s": sent})
    assert events(result.outputs) == [{"k": "a", "n": 1}]
    assert events(run(query, {"s": sent}, ends=True).outputs)[1:] == [{"k": None, "n": 2}]


def test_one_operator_read_twice() -> None:
    stream = source(slack=0)
    result = run(stream.where("v > 0").union(stream.where("v < 0")), {"s": [row(1, "a", 1), row(2, "a", -1)]})
    assert [e["v"] for e in events(result.outputs)] == [1, -1]
    assert [str(p) for p in punctuations(result.outputs)] == ["[< 1, *, *]", "[< 2, *, *]"]


def test_a_misspelt_source_is_named() -> None:
    with pytest.raises(UserError, match="did you mean 's'"):
        interpret(source().operator, {"ss": []})


@pytest.mark.parametrize("make", [lambda s: s.window(rows=3), lambda s: s.window(landmark=3)])
def test_windows_that_need_an_aggregate(make: Callable[[StreamBuilder], StreamBuilder]) -> None:
    with pytest.raises(UserError, match="aggregate"):
        interpret(make(source()).operator, {"s": []})
