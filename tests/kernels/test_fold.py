"""One epoch of an aggregate: what closes is emitted once, what stays lies where it lay."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from penstock.kernels.fold import fold, frontier_of, sort_by
from penstock.operators.aggregate.kernel import AggregateKernel
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Schema
from penstock.plan.window import Window
from penstock.sql.aggregation import Aggregation

SCHEMA = Schema.parse("t int, key string, v int", time="t")
WINDOW = Window.tumbling(10, on="t").resolve(SCHEMA)
KERNEL = AggregateKernel(
    SCHEMA, ("key",), (Aggregation.parse("n", "count(*)", SCHEMA), Aggregation.parse("s", "sum(v)", SCHEMA)), WINDOW
)
OUT = KERNEL.output_schema


def partials(*events: tuple[int, str | None, int]) -> pa.Table:
    columns = list(zip(*events, strict=True)) if events else [(), (), ()]
    table = pa.table([pa.array(c, a.type) for c, a in zip(columns, SCHEMA, strict=True)], schema=SCHEMA.arrow)
    return KERNEL.partial(table)


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(r.values()) for r in table.to_pylist()), key=repr)


def test_a_frontier_takes_a_prefix_and_leaves_the_run() -> None:
    stored = sort_by(partials((1, "a", 1), (12, "a", 2), (25, "b", 3)), "window_start")
    folded = fold(KERNEL, [], [("run", stored)], [Pattern.parse("[<= 0, *, *, *]", OUT)], "window_start")
    assert rows(folded.output) == [(0, "a", 1, 1)]
    assert folded.skipped == (("run", 1),)
    assert folded.dropped == ()
    assert folded.rest is None


def test_a_run_that_is_used_up_is_dropped() -> None:
    stored = sort_by(partials((1, "a", 1)), "window_start")
    folded = fold(KERNEL, [], [("run", stored)], [Pattern.parse("[< 10, *, *, *]", OUT)], "window_start")
    assert folded.dropped == ("run",)
    assert folded.skipped == ()


def test_a_key_closes_across_windows_and_rewrites_only_runs_that_hold_it() -> None:
    with_a = sort_by(partials((1, "a", 1), (12, "b", 2)), "window_start")
    without = sort_by(partials((13, "b", 5)), "window_start")
    closer = Pattern.parse("[*, 'a', *, *]", OUT)
    folded = fold(KERNEL, [partials((14, "a", 7))], [("x", with_a), ("y", without)], [closer], "window_start")
    assert rows(folded.output) == [(0, "a", 1, 1), (10, "a", 1, 7)]
    assert folded.dropped == ("x",)
    assert folded.rest is not None
    assert rows(KERNEL.finalize(folded.rest)) == [(10, "b", 1, 2)]


def test_partials_of_one_group_in_several_runs_and_the_delta_are_one_result() -> None:
    runs = [("x", partials((1, "a", 1))), ("y", partials((2, "a", 2)))]
    closer = Pattern.parse("[<= 0, *, *, *]", OUT)
    folded = fold(KERNEL, [partials((3, "a", 4))], runs, [closer], "window_start")
    assert rows(folded.output) == [(0, "a", 3, 7)]


def test_nothing_to_do_does_nothing() -> None:
    folded = fold(KERNEL, [], [], [], "window_start")
    assert folded.output.num_rows == 0
    assert folded.output.schema == OUT.arrow
    assert folded.rest is None


def test_only_an_upper_bound_on_the_closing_attribute_alone_is_a_frontier() -> None:
    def is_frontier(text: str) -> bool:
        return frontier_of(Pattern.parse(text, OUT), "window_start") is not None

    assert is_frontier("[<= 3, *, *, *]")
    assert is_frontier("[< 3, *, *, *]")
    assert not is_frontier("[<= 3, 'a', *, *]")
    assert not is_frontier("[3, *, *, *]")
    assert not is_frontier("[>= 3, *, *, *]")
    assert not is_frontier("[*, *, *, *]")


events = st.lists(st.tuples(st.integers(-30, 60), st.sampled_from(["a", "b", None]), st.integers(0, 9)), max_size=12)
closers = st.sampled_from(
    ["[<= 0, *, *, *]", "[<= 20, *, *, *]", "[*, 'a', *, *]", "[20, *, *, *]", "[< 0, 'b', *, *]"]
)


@given(st.lists(events, max_size=3), events, st.lists(closers, max_size=3))
def test_what_is_emitted_and_what_is_kept_is_everything_once(
    stored: list[list[tuple[int, str | None, int]]], new: list[tuple[int, str | None, int]], texts: list[str]
) -> None:
    patterns = [Pattern.parse(t, OUT) for t in texts]
    runs = [(f"r{k}", sort_by(partials(*e), "window_start")) for k, e in enumerate(stored) if e]
    folded = fold(KERNEL, [partials(*new)] if new else [], runs, patterns, "window_start")
    kept = [t.slice(dict(folded.skipped).get(n, 0)) for n, t in runs if n not in folded.dropped]
    kept += [folded.rest] if folded.rest is not None else []
    held = KERNEL.finalize(KERNEL.merge(kept))
    whole = [e for part in stored for e in part] + new
    expected: dict[tuple[int, str | None], list[int]] = {}
    for t, key, v in whole:
        expected.setdefault((t // 10 * 10, key), []).append(v)
    everything = [(w, k, len(v), sum(v)) for (w, k), v in expected.items()]
    assert sorted([*rows(folded.output), *rows(held)], key=repr) == sorted(everything, key=repr)
    for w, k, n, s in everything:
        closed = any(p.matches_row({"window_start": w, "key": k, "n": n, "s": s}) for p in patterns)
        assert ((w, k, n, s) in rows(folded.output)) == closed
