"""Expressions that fail on a value: the same events fail in the reference and in the engine, under any cut.

What fails is an overflow: `n * 4611686018427387904` has no answer for most n.
"""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from backend import Outcome, assert_grammatical, assert_same, on_kernels, on_reference, on_spark
from case import WHOLE, Case, Cut, Feed
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from random_cases import cuts, feeds_named

FAILS = "n * 4611686018427387904"
STEPS = (
    f".where('{FAILS} > id')",
    f".where('id % 3 <> 1 and {FAILS} > 0')",
    f".where('{FAILS} > 0 or id % 3 <> 1')",
    f".where('not ({FAILS} > 0 and id > 3)')",
    ".where('id % 3 <> 1')",
    ".where('v > 0')",
    f".with_columns(x='{FAILS}')",
    f".with_columns(x='{FAILS}').where('id % 4 <> 2')",
    f".with_columns(x='{FAILS}').where('x > 0')",
    f".with_columns(n='case when id % 2 = 0 then {FAILS} else n end')",
    f".with_columns(x='{FAILS}').select('ts', 'k', 'id', 'v', 'n', 'd')",
    f".with_columns(x='{FAILS}', y='n + 9223372036854775800').select('ts', 'k', 'id', 'v', 'd', n='y')",
    ".map(twice, keeps=['ts', 'k'])",
)
ENDS = (
    "",
    f".where('{FAILS} > 0')",
    f".agg(c='count(*)', f='sum({FAILS})')",
    f".group_by('k').agg(c='count(*)', f='max({FAILS})', id='max(id)')",
    f".group_by('k').agg(c='count({FAILS})', id='max(id)').where('c > 1')",
    f".group_by('k').agg(f='sum({FAILS}) filter (where n between -1 and 1)', id='max(id)')",
    f".group_by('k').agg(f='sum(n) filter (where {FAILS} > 0)', a='avg({FAILS})', id='max(id)')",
    ".group_by('k').agg(f='sum(n * 2305843009213693952)', id='max(id)')",
    ".group_by('k').agg(n='sum(n)', id='max(id)').where('n * 2305843009213693952 > 0')",
    f".window(10).group_by('k').agg(c='count(*)', f='min({FAILS})', id='max(id)')",
    f".window(10, slide=5).agg(c='count(*)', f='max({FAILS})', id='max(id)')",
    ".window(10, granularity=2).agg(c='count(*)')",
    f".window(landmark=10).group_by('k').agg(c='count({FAILS})', f='sum(n * 2305843009213693952)', id='max(id)')",
    f".window(rows=2).group_by('k').agg(c='count(*)', f='max({FAILS})')",
    f".window(10).group_by('k').agg(n='max(n)', id='max(id)').with_columns(x='{FAILS}').where('id % 3 <> 1')",
    f".with_columns(x='{FAILS}').top(2, by='x desc', per=['k'])",
    f".with_columns(x='{FAILS}').select('k', 'x').distinct()",
)
JOINS = (
    "s{0}.join(t{1}, 'k', '{2}', within=5, where='{3}')",
    "s{0}.join(t{1}.select('ts', 'k', m='n', other='id'), 'k', '{2}', where='{3}')",
    "s{0}.join(t{1}, 'k', '{2}', rows=2, where='{3}')",
)
RESIDUALS = (f"{FAILS} > 0", "n * 2305843009213693952 > id", f"id % 2 = 0 and {FAILS} <> 0")


@st.composite
def cases(draw: st.DrawFn, ends: bool = True, max_rows: int = 16) -> Case:
    steps = "".join(draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=3)))
    end = draw(st.sampled_from(ENDS))
    counted = "rows=" in end
    if counted:
        # Two streams come in any order, and `twice` puts the copies behind all events that it gets at once.
        steps = steps.replace(".map(twice, keeps=['ts', 'k'])", "")
    two = not counted and draw(st.integers(0, 3)) == 0
    text = f"{'s.union(t)' if two else 's'}{steps}{end}"
    return Case(text, _feeds(draw, "st" if two else "s", max_rows, ends))


def _feeds(draw: st.DrawFn, names: str, max_rows: int, ends: bool = True) -> tuple[Feed, ...]:
    return tuple(draw(feeds_named(name, 1, False, max_rows, ends)) for name in names)


@st.composite
def joins(draw: st.DrawFn, max_rows: int = 12) -> Case:
    steps = [draw(st.sampled_from(("", *(s for s in STEPS if "x=" not in s)))) for _ in range(2)]
    how = draw(st.sampled_from(("inner", "left", "right", "full")))
    text = draw(st.sampled_from(JOINS)).format(*steps, how, draw(st.sampled_from(RESIDUALS)))
    return Case(text, _feeds(draw, "st", max_rows))


def check(case: Case, cut: Cut, engine: Any = on_kernels) -> Outcome:
    expected, found = on_reference(case), engine(case, cut)
    assert_same(expected, found, "reference and engine")
    assert found.shown == expected.shown
    assert_grammatical(found)
    return found


@given(cases(), cuts())
@settings(max_examples=25)
def test_the_same_events_fail_in_reference_and_engine(case: Case, cut: Cut) -> None:
    assert check(case, cut).state == 0


@given(cases(), cuts(), cuts())
@settings(max_examples=8)
def test_no_cut_changes_what_fails(case: Case, one: Cut, other: Cut) -> None:
    assert_same(on_kernels(case, one), on_kernels(case, other))


@given(cases(ends=False), cuts())
@settings(max_examples=8)
def test_streams_that_do_not_end(case: Case, cut: Cut) -> None:
    check(case, cut)


@given(joins(), cuts())
@settings(max_examples=15)
def test_pairs_on_which_a_join_fails(case: Case, cut: Cut) -> None:
    check(case, cut)


@pytest.mark.fuzz
@given(st.one_of(cases(max_rows=24), joins()), cuts())
@settings(suppress_health_check=list(HealthCheck))
def test_fuzz(case: Case, cut: Cut) -> None:
    assert_same(check(case, cut), on_kernels(case, WHOLE))


@given(case=st.one_of(cases(), joins()), cut=cuts(max_rows=(5, 8, None)))
@settings(max_examples=4, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
def test_spark_agrees(spark: Any, case: Case, cut: Cut) -> None:
    check(case, cut, lambda case, cut: on_spark(case, cut, spark))


#: Events fail that are read in part, and in several files; `x` is not computed, `y` is.
SHOWN = (
    (f"s.where('k is not null').agg(f='sum({FAILS})')", "aggregate-1", ()),
    (f"s.window(10).group_by('k').agg(f='min({FAILS})')", "aggregate-1", ()),
    (f"s.window(10, slide=5).group_by('k').agg(f='min({FAILS})')", "aggregate-1", ()),
    (f"s.window(landmark=10).group_by('k').agg(f='min({FAILS})')", "aggregate-1", ()),
    (f"s.window(rows=2).group_by('k').agg(c='count(*)', f='max({FAILS})')", "aggregate-1", ()),
    (f"s.with_columns(x='{FAILS}', y='n + 1').where('y > 0').window(rows=2).agg(f='max({FAILS})')", "aggregate-1", "y"),
    (f"s.with_columns(x='{FAILS}').with_columns(z='x').window(10).agg(f='max({FAILS})')", "aggregate-1", ()),
    (f"s.where('{FAILS} is not null').agg(c='count(*)')", "select-1", ()),
    (f"s.select('k', y='{FAILS}').group_by('k').agg(m='max(y)')", "project-1", ()),
    (f"s.union(s.with_columns(v='v * 2')).agg(f='max({FAILS})')", "aggregate-1", None),
)


def shown_of(query: str, engine: Any) -> None:
    _, stream, also = next(each for each in SHOWN if each[0] == query)
    rows = tuple(
        ("", {"ts": i, "k": "ab"[i % 2], "id": i, "n": i, "v": 9.0 * (i == 3), "d": Decimal(i)}) for i in range(8)
    )
    case = Case(query, (Feed("s", rows, ".disorder(3).bounds('v', high=1).ends()"),))
    found = check(case, replace(WHOLE, max_rows=6, file_rows=4, group_rows=2), engine)
    failed = [json.loads(text.removeprefix(stream)) for text in found.shown]
    names = {"ts", "k", "id", "n", "d", *(["v"] if also is not None else []), *(also or ())}
    assert {frozenset(event) for event in failed} == {frozenset(names)}
    assert {event["id"] for event in failed} == {2, 4, 5, 6, 7}  # 0 and 1 have answers, 3 is out of bounds
    assert all(event["n"] == event["id"] and event["d"] == f"{event['id']}.00" for event in failed)


@pytest.mark.parametrize("query", [query for query, _, _ in SHOWN])
def test_letters_show_the_whole_event(query: str) -> None:
    """All that the source brings, read or not, and what is computed; under any cut, wherever it fails."""
    shown_of(query, on_kernels)


def test_what_guards_drop_is_not_in_the_way_of_the_whole_event() -> None:
    rows = tuple(("", {"ts": i, "k": "ab"[i % 2], "id": i, "n": i}) for i in range(8))
    case = Case(f"s.group_by('k').agg(f='max({FAILS})')", (Feed("s", rows, ".ends()"),))
    found = on_kernels(case, replace(WHOLE, max_rows=4, file_rows=4), {0: ["not ['b', *]"]})
    assert found.rows == [{"k": "a", "f": 0}]
    assert found.letters == [("aggregate-1", "failed", i) for i in (2, 4, 6)]


@pytest.mark.parametrize("query", [SHOWN[4][0], SHOWN[8][0]])
def test_letters_show_the_whole_event_on_spark(spark: Any, query: str) -> None:
    shown_of(query, lambda case, cut: on_spark(case, cut, spark))


@pytest.mark.parametrize("window", ["landmark=10", "4, slide=10", "10, on='o'"])
def test_events_in_no_window_never_fail_in_an_aggregate(window: str) -> None:
    """Before the landmark, in a gap, without a time: whatever else is in the batch."""
    rows = tuple(
        ("", {"ts": 2 * i - 7, "k": "a", "id": i, "v": 0.0, "n": i, "o": None if i % 3 else i, "d": Decimal(i)})
        for i in range(9)
    )
    schema = "ts int, k string, id int, v double, n bigint, d decimal(9,2), o int"
    case = Case(f"s.window({window}).group_by('k').agg(f='max({FAILS})')", (Feed("s", rows, ".ends()", schema=schema),))
    cuts = (WHOLE, replace(WHOLE, max_rows=1, file_rows=1), replace(WHOLE, max_rows=2, file_rows=2))
    found = [check(case, cut).letters for cut in cuts]
    assert found[0] == found[1] == found[2]
    assert 0 < len(found[0]) < 7


def test_something_fails_at_all() -> None:
    """The cases above would prove nothing if nothing ever failed in them."""
    rows = tuple(("", {"ts": i, "k": "ab"[i % 2], "id": i, "n": i}) for i in range(12))
    failing = 0
    for end in ENDS[::4]:
        for step in STEPS[::3]:
            found = check(Case(f"s{step}{end}", (Feed("s", rows, ".disorder(2).ends()"),)), replace(WHOLE, max_rows=5))
            failing += any(reason == "failed" for _, reason, _ in found.letters)
    assert failing > 0.5 * len(STEPS[::3]) * len(ENDS[::4])
