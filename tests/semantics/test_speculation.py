"""Answers now, corrections later: what holds in the end is what waiting would have given, and nothing holds too often.

Strong results come from the reference; speculative ones from the reference and from the engine, under any cut.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import cloudpickle
import pyarrow as pa
import pytest
from backend import Outcome, assert_grammatical, difference, on_kernels, on_reference, on_spark
from case import FUNCTIONS, SCHEMA, Case, Cut, Feed
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from known_cases import feed
from random_cases import aggregates, cuts, feeds_named, sessions, windows
from test_top import tops

import penstock as ps
from penstock.analysis.speculate import speculate
from penstock.plan.weight import NEVER_CAME, WEIGHT
from penstock.reference.interpret import interpret
from penstock.reference.item import events

Row = Mapping[str, Any]


def thrice(rows: pa.Table) -> pa.Table:
    """Each row three times; it knows of no weights."""
    assert WEIGHT not in rows.column_names
    return pa.concat_tables([rows] * 3)


FUNCTIONS["thrice"] = thrice
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # Spark's workers do not know the folder of the tests.

STEPS = ("", "", ".where('v > 0')", ".with_columns(v='v * 2')", ".map(twice, keeps=['ts', 'k'])")
BEHIND = (
    "",
    "",
    ".where('c % 2 = 1')",
    ".with_columns(twice='c * 2')",
    ".map(thrice, keeps=['k']).group_by('k').agg(n='count(*)', all='sum(c)')",
    ".group_by('k').agg(n='count(*)', most='max(c)', all='sum(c)', kinds='count(distinct c)')",
    ".where('c > 1').group_by('c').agg(n='count(*)', last='max(k)')",
    ".agg(n='count(*)', least='min(c)')",
    ".agg(n='count(*)', all='sum(s)', mean='avg(s)', some='sum(s) filter (where c > 1)')",
    ".with_columns(s=\"case when c % 3 = 1 then cast('inf' as double) else s end\").group_by('c').agg(a='sum(s)')",
    ".group_by('c').agg(first='min_by(k, s)', last='max_by(m, k)', kinds='count(distinct k)', any='bool_or(s > 0)')",
    ".select('c').distinct()",
    ".top(2, by='s desc', per='k')",
    ".where('c > 1').top(1, by='m').agg(n='count(*)', all='sum(c)')",
    ".select('k', odd='c % 2').distinct().group_by('odd').agg(n='count(*)')",
    ".group_by('k').agg(c='sum(c)').group_by('c').agg(n='count(*)')",
)


@st.composite
def chains(draw: st.DrawFn, max_rows: int = 14) -> Case:
    """Aggregates over aggregates over windows, of one stream or two."""
    two, many = draw(st.booleans()), draw(st.booleans())
    text = "s" + draw(st.sampled_from(STEPS))
    text = f"{text}.union(t)" if two else text
    text += draw(st.sampled_from(("", draw(windows(1)), draw(sessions()))))
    if draw(st.integers(0, 3)) == 0:
        text += f".group_by('k').agg({draw(aggregates())})"
    else:
        text += ".group_by('k').agg(c='count(*)', s='sum(v)', m='max(n)')" + draw(st.sampled_from(BEHIND))
    names = ("s", "t") if two else ("s",)
    return Case(text, tuple(draw(feeds_named(n, 1, many, max_rows // len(names), True)) for n in names))


_JOINS = (
    "a.join(b, 'k', {how})",
    "a.join(b, 'k', {how}, where='c < c_right + 2')",
    "a.join(s.select('ts', 'k', 'id', v='v'), 'k', {how})",
    "s.select('ts', 'k', 'id').join(a, 'k', {how})",
    "s.join(t.select('k', 'ts', 'v', other='id'), 'k', {how}, within=6)",
    "s.join(t.select('k', 'ts', 'v', other='id'), 'k', {how}, within=6).group_by('k').agg(n='count(*)', m='max(v)')",
    "x.join(y, ['k', 'window_start'], {how})",
    "x.join(y, 'k', {how}, within=7, times=('window_start', 'window_start'))",
    "x.join(t.select('k', 'id', ts='cast(ts as bigint)'), 'k', {how}, within=7, times=('window_start', 'ts'))",
)
_OVER = ("", "", ".where('k is not null')", ".group_by('k').agg(rows='count(*)')")


@st.composite
def joins(draw: st.DrawFn, max_rows: int = 14) -> Case:
    """Joins of aggregates, with each other and with events, and what is made of them."""
    how = draw(st.sampled_from(("inner", "left", "right", "full", "semi", "anti")))
    inputs = {
        "a": "s.group_by('k').agg(c='count(*)')",
        "b": "t.group_by('k').agg(c='count(*)', m='max(v)')",
        "x": "s.window(5).group_by('k').agg(c='count(*)')",
        "y": "t.window(5).group_by('k').agg(d='count(*)', m='max(v)')",
    }
    text = draw(st.sampled_from(_JOINS)).format(how=f"'{how}'")
    text = f"({text}){draw(st.sampled_from(_OVER))}"
    for name, made in inputs.items():
        text = re.sub(rf"\b{name}\b(?=[.,])", f"({made})", text)
    names = [n for n in ("s", "t") if re.search(rf"\b{n}\.", text)]
    return Case(text, tuple(draw(feeds_named(n, 1, False, max_rows // 2, True)) for n in names))


def at_once(stream: ps.Stream, consistency: ps.Consistency | None = None) -> ps.Stream:
    """The same query where results are told at once."""
    (operator,) = speculate([stream.operator], consistency or ps.Consistency.middle())
    return replace(stream, operator=operator)


def holding(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """What holds after changes, which must never be taken back before they are told."""
    held: Counter[str] = Counter()
    known: dict[str, dict[str, Any]] = {}
    for row in rows:
        plain = {n: v for n, v in row.items() if n != WEIGHT}
        key = repr(sorted(plain.items()))
        known[key] = plain
        held[key] += row[WEIGHT]
        assert held[key] >= 0, f"{plain} is taken back, but does not hold"
    return [known[key] for key, times in held.items() for _ in range(times)]


def assert_converges(expected: Sequence[Row], told: Sequence[Row], what: str) -> None:
    only_strong, only_told = difference([dict(r) for r in expected], holding(told))
    assert not only_strong and not only_told, f"{what}: only strong {only_strong}, only told {only_told}"


def with_promise(case: Case, promise: str) -> Case:
    """The case with this in place of the disorder that its streams declare."""
    feeds = (replace(f, promises=promise + re.sub(r"\.disorder\([^)]*\)", "", f.promises)) for f in case.feeds)
    return Case(case.query, tuple(feeds))


def on_reference_at_once(case: Case) -> list[dict[str, Any]]:
    plan = at_once(case.stream()).plan
    return events(interpret(plan, {f.name: f.arrivals() for f in case.feeds}, traced=False).outputs)


def check(case: Case, cut: Cut, found: Outcome) -> None:
    expected = on_reference(case)
    assert_converges(expected.rows, found.rows, "engine")
    assert found.letters == expected.letters
    assert found.state == 0
    assert_grammatical(found)


@given(chains(), cuts())
@settings(max_examples=25)
def test_what_holds_in_the_end_is_the_strong_answer(case: Case, cut: Cut) -> None:
    check(case, cut, on_kernels(case, cut, change=at_once))


@given(chains(), cuts(), st.integers(0, 9))
@settings(max_examples=25)
def test_however_long_one_waits_the_answer_is_the_same(case: Case, cut: Cut, block: int) -> None:
    """Blocked for longer, less is told and taken back, but what holds in the end is the same."""
    case = with_promise(case, ".disorder(8)")
    dial = ps.Consistency.at(block=block, remember=None)
    check(case, cut, on_kernels(case, cut, change=lambda s: at_once(s, dial)))


@given(chains(), cuts())
@settings(max_examples=15)
def test_who_waits_as_long_as_he_remembers_never_corrects(case: Case, cut: Cut) -> None:
    """What comes later than is remembered is a dead letter, in the strong answer too."""
    case = with_promise(case, "")
    strong = on_kernels(case, cut, change=lambda s: at_once(s, ps.Consistency.strong(remember=4)))
    middle = on_kernels(case, cut, change=lambda s: at_once(s, ps.Consistency.middle(remember=4)))
    assert WEIGHT not in {n for row in strong.rows for n in row}
    assert_converges(strong.rows, middle.rows, "middle")
    assert strong.letters == middle.letters


@given(joins(), cuts())
@settings(max_examples=40)
def test_joins_take_back_what_no_longer_holds(case: Case, cut: Cut) -> None:
    check(case, cut, on_kernels(case, cut, change=at_once))


@given(joins())
@settings(max_examples=15)
def test_joins_of_the_reference_converge_too(case: Case) -> None:
    assert_converges(on_reference(case).rows, on_reference_at_once(case), "reference")


#: Partners that are not kept, because the other input is over for their key, still count: `a` is told alone once.
_OVER_ON_ONE_SIDE = [
    Case(
        f"({left}).join({right}, 'k', '{how}'){over}",
        (
            feed("s", (1, "a", 1.0), "[*, 'a', *, *, *, *]", (2, "b", 2.0)),
            feed("t", *((number, "a", float(number)) for number in range(5)), promises=".ends()"),
        ),
    )
    for how in ("left", "right", "full", "semi", "anti")
    for left, right in (
        ("s", "t.select('k', other='id')"),
        ("t", "s.select('k', other='id')"),
        ("s", "t.group_by('k', 'n').agg(c='count(*)').select('k', 'c')"),
    )
    for over in ("", ".group_by('k').agg(rows='count(*)')")
]


@pytest.mark.parametrize("case", _OVER_ON_ONE_SIDE, ids=lambda case: case.query)
def test_partners_that_are_not_kept_count(case: Case) -> None:
    for max_rows in (1, None):
        cut = Cut(file_rows=1, max_rows=max_rows)
        expected, found = on_reference(case), on_kernels(case, cut, change=at_once)
        if any(WEIGHT in row for row in found.rows):
            assert_converges(expected.rows, found.rows, f"{max_rows} rows an epoch")
        assert found.state == 0
        assert_grammatical(found)
    if WEIGHT in at_once(case.stream()).schema:
        assert_converges(expected.rows, on_reference_at_once(case), "reference")


@pytest.mark.spark
def test_partners_that_are_not_kept_count_on_spark(spark: Any) -> None:
    for case in _OVER_ON_ONE_SIDE[4:6]:
        check(case, Cut(file_rows=1, max_rows=1), on_spark(case, Cut(file_rows=1, max_rows=1), spark, change=at_once))


@given(tops(), cuts())
@settings(max_examples=20)
def test_the_best_are_told_at_once_and_give_way_to_better_ones(case: Case, cut: Cut) -> None:
    check(case, cut, on_kernels(case, cut, change=at_once))
    assert_converges(on_reference(case).rows, on_reference_at_once(case), "reference")


@given(tops(one=True, max_rows=8))
@settings(max_examples=15)
def test_one_event_an_epoch_tells_which_of_the_best_come_and_go(case: Case) -> None:
    assume("agg(" not in case.query and "twice, keeps" not in case.query)
    feed = replace(case.feeds[0], items=tuple(i for i in case.feeds[0].items if not isinstance(i[1], str)))
    case = Case(case.query, (feed,))
    found = on_kernels(case, Cut(file_rows=1, max_rows=1), change=at_once)
    assert difference(on_reference_at_once(case), found.rows) == ([], [])


@given(chains())
@settings(max_examples=15)
def test_the_reference_converges_too(case: Case) -> None:
    assert_converges(on_reference(case).rows, on_reference_at_once(case), "reference")


@given(chains(max_rows=8))
@settings(max_examples=10)
def test_one_event_an_epoch_tells_what_the_reference_tells(case: Case) -> None:
    """Of one aggregate: what two in a row tell in between, an epoch does not."""
    assume(case.query.count("agg(") == 1 and "twice, keeps" not in case.query and "union" not in case.query)
    feed = replace(case.feeds[0], items=tuple(i for i in case.feeds[0].items if not isinstance(i[1], str)))
    case = Case(case.query, (feed,))
    found = on_kernels(case, Cut(file_rows=1, max_rows=1), change=at_once)
    assert difference(on_reference_at_once(case), found.rows) == ([], [])


@pytest.mark.spark
def test_on_spark(spark: Any) -> None:
    @given(chains(), cuts())
    @settings(max_examples=3, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    def run(case: Case, cut: Cut) -> None:
        check(case, cut, on_spark(case, cut, spark, change=at_once))

    run()


@st.composite
def changing(draw: st.DrawFn) -> tuple[Case, list[Row]]:
    """A stream that takes back some of its own rows, in any order, and the rows that are left of it."""
    behind = draw(st.sampled_from((*BEHIND, ".agg(n='count(*)')")))
    of = draw(st.sampled_from(("", ".select('k', 'v', 'n').top(3, by='v desc, n', per='k')")))
    text = f"s.changes('kind'){of}.group_by('k').agg(c='count(*)', s='sum(v)', m='max(n)')" + behind
    rows = draw(feeds_named("s", 1, False, 10, True)).rows()
    gone = draw(st.sets(st.integers(0, len(rows)), max_size=4))
    items = [{**r, "kind": draw(st.sampled_from(("c", "+I", "insert")))} for r in rows]
    items += [{**r, "kind": draw(st.sampled_from(("d", "-U", "delete")))} for i, r in enumerate(rows) if i in gone]
    items += [{**r, "kind": "?"} for r in rows[:1]]
    # Of these there is none.
    items += [{**r, "n": -77, "kind": "d"} for r in rows[: draw(st.integers(0, 2))]]
    order = draw(st.permutations(items))
    feed = Feed("s", tuple(("", r) for r in order), schema=f"{SCHEMA}, kind string")
    return Case(text, (feed,)), [r for i, r in enumerate(rows) if i not in gone]


@st.composite
def changing_joins(draw: st.DrawFn) -> tuple[Case, list[Row]]:
    """Joins of a stream that takes back some of its own rows, before or after they come."""
    case, left = draw(changing())
    feed = case.feeds[0]
    # A row without a key meets nothing: it passes at once, whatever it says.
    items = tuple(i for i in feed.items if i[1]["n"] != -77 and i[1]["k"] is not None)
    case, left = replace(case, feeds=(replace(feed, items=items),)), [r for r in left if r["k"] is not None]
    how = draw(st.sampled_from(("inner", "left", "right", "full", "semi", "anti")))
    mine, others = "(x := s.changes('kind'))", "x.select('k', 'n', 'ts', other='id')"
    text = draw(
        st.sampled_from(
            (
                f"{mine}.join({others}, 'k', '{how}')",
                f"{mine}.join({others}, ['k', 'n'], '{how}', within=6)",
                f"{mine}.join({others}, 'k', '{how}', where='id < other + 3')",
                f"{mine}.group_by('k').agg(c='count(*)').join({others}, 'k', '{how}')",
                f"{mine}.select('k', 'n').intersect(x.where('v > 0').select('k', 'n'))",
                f"{mine}.select('k', 'n').difference(x.where('v > 0').select('k', 'n'))",
            )
        )
    )
    return Case(text + draw(st.sampled_from(("", ".group_by('k').agg(rows='count(*)')"))), case.feeds), left


@given(changing_joins(), cuts())
@settings(max_examples=25)
def test_a_join_waits_for_what_is_taken_back_before_it_comes(given_: tuple[Case, list[Row]], cut: Cut) -> None:
    case, left = given_
    found = on_kernels(case, cut, change=at_once)
    plain = Case(case.query.replace(".changes('kind')", ""), (Feed("s", tuple(("", r) for r in left)),))
    expected = on_reference(plain)
    assert_converges(expected.rows, found.rows, "engine")
    assert_converges(expected.rows, on_reference_at_once(case), "reference")
    assert found.state == 0


#: A row that never comes is taken back once, one before it comes, and of two equal ones one.
_BEFORE_IT_CAME = tuple(
    ("", {"ts": number, "k": "a", "id": id_, "n": id_, "kind": kind})
    for number, (id_, kind) in enumerate(
        [(7, "d"), (1, "d"), (2, "c"), (3, "c"), (3, "c"), (1, "c"), (3, "d"), (1, "c")]
    )
)


def _waiting(how: str, on_engine: Callable[[Case, Cut], Outcome]) -> None:
    feed = Feed("s", tuple(("", {**r, "ts": 0}) for _, r in _BEFORE_IT_CAME), schema=f"{SCHEMA}, kind string")
    case = Case(f"(x := s.changes('kind')).join(x.select('k', other='id'), 'k', '{how}', where='id <= other')", (feed,))
    left = tuple(("", r) for _, r in _BEFORE_IT_CAME if r["id"] in (1, 2, 3) and r["kind"] == "c")
    rows = [{**r, "ts": 0} for _, r in (left[0], left[1], left[3])]
    plain = Case(case.query.replace(".changes('kind')", ""), (Feed("s", tuple(("", r) for r in rows)),))
    found = on_engine(case, Cut(file_rows=1, max_rows=1, empty_file=True))
    assert_converges(on_reference(plain).rows, found.rows, "engine")
    assert_converges(on_reference(plain).rows, on_reference_at_once(case), "reference")
    assert found.shown and all(re.search('"(id|other)": 7', shown) for shown in found.shown)
    result = interpret(at_once(case.stream()).plan, {"s": feed.arrivals()}, traced=False)
    assert {d.row["id"] for d in result.dead_letters if d.reason == NEVER_CAME and "id" in d.row} == {7}


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
def test_what_never_comes_changes_nothing_of_a_join(how: str) -> None:
    _waiting(how, lambda case, cut: on_kernels(case, cut, change=at_once))


@pytest.mark.parametrize("query", ["s.agg(x='sum(n)')", "s.group_by('k').agg(m='sum(n)').agg(x='sum(m)')"])
def test_one_sum_of_all_that_is_too_large_for_a_while_is_told_when_it_fits(query: str) -> None:
    numbers = (2**63 - 1, 2**63 - 2, -(2**62), -(2**62), -5)
    rows = tuple(("", {"ts": 0, "k": "abcde"[i], "id": i, "n": n}) for i, n in enumerate(numbers))
    case = Case(query, (Feed("s", rows),))
    found = on_kernels(case, Cut(file_rows=1, max_rows=1), change=at_once)
    assert holding(found.rows) == [{"x": sum(numbers)}]
    assert len(found.shown) == 1
    assert holding(on_reference_at_once(case)) == [{"x": sum(numbers)}]


@pytest.mark.spark
def test_what_never_comes_changes_nothing_of_a_join_on_spark(spark: Any) -> None:
    _waiting("full", lambda case, cut: on_spark(case, cut, spark, change=at_once))


@given(changing(), cuts())
@settings(max_examples=15)
def test_what_is_taken_back_was_never_there(given_: tuple[Case, list[Row]], cut: Cut) -> None:
    """In whatever order it comes; what says neither is a dead letter."""
    case, left = given_
    found = on_kernels(case, cut, change=at_once)
    plain = Case(case.query.replace(".changes('kind')", ""), (Feed("s", tuple(("", r) for r in left)),))
    assert_converges(on_reference(plain).rows, found.rows, "engine")
    assert_converges(on_reference(plain).rows, on_reference_at_once(case), "reference")
    unclear = [r["id"] for r in case.feeds[0].rows() if r["kind"] == "?" and r["ts"] is not None]
    failed = [shown for shown in found.shown if "-77" not in shown]
    assert len(failed) == len(unclear) and all('"kind": "?"' in shown for shown in failed)
    # What is taken back and never came is told when its group is over, unless it comes when that is over already.
    owed = [r for r in case.feeds[0].rows() if r["n"] == -77 and r["ts"] is not None]
    late = [number for _, reason, number in found.letters if reason in ("late", "forbidden")]
    assert len(owed) == len(found.shown) - len(failed) + sum(number in late for number in (r["id"] for r in owed))
    result = interpret(at_once(case.stream()).plan, {f.name: f.arrivals() for f in case.feeds}, traced=False)
    never = [d for d in result.dead_letters if d.kind == "failed" and d.row["n"] == -77]
    assert len(never) == len(found.shown) - len(failed)
