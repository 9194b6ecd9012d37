"""Top and limit, three ways: reference = kernels = batch, under any punctuation, cut, number of buckets and restart.

The engine takes up the feedback that these operators issue while it runs, so equal results also say that it is right.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from backend import Outcome, assert_grammatical, assert_same, by_epoch, difference, on_kernels, on_reference, on_spark
from batch import batch
from case import Case, Cut, Feed
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from random_cases import cuts, feeds_named

STEPS = (
    "",
    "",
    ".where('v > 0')",
    ".with_columns(v=\"case when id % 4 = 0 then cast('NaN' as double) else v end\")",
    ".select('n', 'k', 'ts', 'id', 'd', v='coalesce(v, 1)')",
    ".map(twice, keeps=['ts', 'k'])",
)
ORDERS = ("v desc", "v", "n desc, v", "k, d desc", "ts desc", "d", "k desc, n")
GROUPS = ((), ("k",), ("k",), ("ts",), ("n",), ("k", "ts"), ("k", "n"))


@st.composite
def tops(draw: st.DrawFn, ends: bool = True, one: bool = False, max_rows: int = 16) -> Case:
    two = not one and draw(st.integers(0, 3)) == 0
    many = not one and draw(st.booleans())
    step, per = draw(st.sampled_from(STEPS)), draw(st.sampled_from(GROUPS))
    text = f"t.union(s{step})" if two else f"s{step}"
    text += draw(st.sampled_from(("", "", ".window(10)", ".window(10, slide=5)")))
    text += f".top({draw(st.integers(1, 4))}, by={draw(st.sampled_from(ORDERS))!r}, per={list(per)})"
    behind = draw(st.sampled_from(("", "", ".group_by('k').agg(hi='max(d)', n0='count(*)')", ".where('id % 3 <> 1')")))
    names = ("s", "t") if two else ("s",)
    feeds = tuple(draw(feeds_named(name, 1, many, max_rows // len(names), ends)) for name in names)
    return Case(text + behind, feeds)


@given(tops(), cuts())
@settings(max_examples=12)
def test_the_best_of_each_group_under_any_cut(case: Case, cut: Cut) -> None:
    expected, found = on_reference(case), on_kernels(case, cut)
    assert_same(expected, found, "reference and engine")
    assert_grammatical(found)
    assert found.state == 0
    dead = {(stream, event) for stream, _, event in found.letters}
    assert difference(batch(case, dead), found.rows) == ([], [])


@given(tops(ends=False), cuts())
@settings(max_examples=10)
def test_streams_that_do_not_end(case: Case, cut: Cut) -> None:
    found = on_kernels(case, cut)
    assert_same(on_reference(case), found, "reference and engine")
    assert_grammatical(found)


@given(tops(one=True), cuts())
@settings(max_examples=10)
def test_groups_are_given_out_in_the_epoch_that_completes_them(case: Case, cut: Cut) -> None:
    case = Case(case.query, (replace(case.feeds[0], format="parquet"),))  # Of lines of text, plans name bytes.
    found = on_kernels(case, cut)
    for number, rows in enumerate(by_epoch(case, found.plans), start=1):
        assert difference(rows, found.epochs.get(number, [])) == ([], []), f"epoch {number}"


ROWS = tuple(("", {"ts": i, "k": "ab"[i % 2], "id": i, "v": float((i * 37) % 101), "n": i % 5}) for i in range(100))


def saved(outcome: Outcome) -> int:
    """Events that the source has dropped, or never read."""
    return outcome.saved.get("source:s dropped", 0) + outcome.saved.get("source:s never read", 0)


def test_what_can_no_longer_enter_is_dropped_at_the_source() -> None:
    """Without groups, of 100 events in 20 epochs most are worse than the three best of those before."""
    case = Case("s.top(3, by='v desc')", (Feed("s", ROWS),))
    found = on_kernels(case, Cut(max_rows=5, file_rows=5, overlap=False))
    assert [r["v"] for r in found.rows] == [100.0, 99.0, 98.0]
    assert saved(found) > 50


def test_what_can_no_longer_enter_a_group_is_dropped_at_the_source() -> None:
    case = Case("s.top(2, by='v desc', per='k')", (Feed("s", ROWS),))
    found = on_kernels(case, Cut(max_rows=5, file_rows=5, overlap=False))
    assert_same(on_reference(case), found)
    assert saved(found) > 30


@pytest.mark.parametrize("query", ["s.top(3, by='v desc')", "s.limit(7)"])
def test_a_switch_keeps_them_from_talking(query: str) -> None:
    silent = on_kernels(Case(f"{query}.feedback(propagate=False)", (Feed("s", ROWS),)), Cut(max_rows=5, file_rows=5))
    assert_same(on_kernels(Case(query, (Feed("s", ROWS),))), silent)
    assert saved(silent) == 0


# --- limit ------------------------------------------------------------------------------------------------------------


@st.composite
def limits(draw: st.DrawFn, one: bool, ends: bool = True) -> Case:
    many, two = not one and draw(st.booleans()), not one and draw(st.booleans())
    before, behind = (
        draw(st.sampled_from(("", ".where('v > 0')"))),
        draw(st.sampled_from(("", ".with_columns(v='v + 1')", ".group_by('k').agg(c='count(*)')"))),
    )
    text = f"{'s.union(t)' if two else 's'}{before}.limit({draw(st.integers(1, 12))}){behind if one else ''}"
    feeds = tuple(draw(feeds_named(n, 1, many, 14, ends)) for n in (("s", "t") if two else ("s",)))
    return Case(text, feeds)


def assert_first(case: Case, found: Outcome) -> None:
    """The same events as the reference gives. What is not read any more leaves no letter either."""
    expected = on_reference(case)
    assert difference(expected.rows, found.rows) == ([], [])
    assert set(found.letters) <= set(expected.letters)


@given(limits(one=True), cuts())
@settings(max_examples=12)
def test_the_first_events_of_one_partition(case: Case, cut: Cut) -> None:
    found = on_kernels(case, cut)
    assert_first(case, found)
    assert_grammatical(found)
    assert found.state == 0


@given(limits(one=True, ends=False), cuts())
@settings(max_examples=8)
def test_the_limit_is_an_end_for_those_behind_it(case: Case, cut: Cut) -> None:
    found = on_kernels(case, cut)
    assert_first(case, found)
    assert_grammatical(found)


@given(limits(one=False), cuts())
@settings(max_examples=10)
def test_some_events_of_several_streams(case: Case, cut: Cut) -> None:
    found = on_kernels(case, cut)
    assert_grammatical(found)
    all_of_them, count = case.query.rsplit(".limit(", 1)
    everything = on_kernels(Case(all_of_them, case.feeds), cut)
    assert difference(found.rows, everything.rows)[0] == []
    assert len(found.rows) == min(int(count.removesuffix(")")), len(everything.rows))


@pytest.mark.parametrize("restart", [False, True])
def test_nothing_more_is_read_for_a_limit(restart: bool) -> None:
    case = Case("s.limit(7)", (Feed("s", ROWS),))
    found = on_kernels(case, Cut(max_rows=5, file_rows=5, overlap=False, restart=restart))
    assert [r["id"] for r in found.rows] == list(range(7))
    # The two epochs that brought them were read; of the other ninety events none is wanted.
    assert saved(found) == 90


@given(case=st.one_of(tops(), limits(one=True)), cut=cuts(max_rows=(5, 8, None)))
@settings(max_examples=4, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
def test_spark_agrees(spark: Any, case: Case, cut: Cut) -> None:
    assume(case.feeds[0].items)
    assert_same(on_reference(case), on_spark(case, cut, spark))
