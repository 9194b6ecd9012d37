"""A window is answered when the punctuations together leave none of its events possible: neither later nor sooner.

The expectation is written from the definition, over a small domain, by enumeration; and no cut into epochs changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date, timedelta
from itertools import permutations, product
from typing import Any

import pytest
from backend import Outcome, assert_grammatical, by_epoch, difference, on_kernels, on_reference, on_spark
from case import WHOLE, Case, Cut, Feed, at
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from random_cases import cuts

from penstock.pattern.pattern import Pattern

ONE = Cut(max_rows=1, file_rows=1)
SCHEMA = "ts int, k string, id int"
#: How a tick is written in each kind of time.
KINDS: dict[str, tuple[str, Callable[[int], Any], str, str]] = {
    "int": ("int", lambda t: t, "10", "20"),
    "date": ("date", lambda t: date(1970, 1, 1) + timedelta(days=t), "10", "20"),
    "timestamp": ("timestamp", at, "'10 s'", "'20 s'"),
}


def feed(items: Iterable[Any], schema: str = SCHEMA, name: str = "s", ends: str = "") -> Feed:
    return Feed(name, tuple(("", item) for item in items), f".punctuated(){ends}", schema=schema)


def rows(case: Case, cut: Cut = ONE) -> list[dict[str, Any]]:
    """The same from the reference and the engine, event by event and in one epoch."""
    expected = on_reference(case).rows
    for each in (cut, WHOLE):
        found = on_kernels(case, each)
        assert_grammatical(found)
        assert difference(expected, found.rows) == ([], []), each
    return expected


# --- the windows that were swallowed ---


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "query",
    [
        "s.window({size}).agg(n='count(*)')",
        "s.window(landmark={size}).agg(n='count(*)')",
        "s.window({size}).top(1, by='id', per='window_start')",
        "s.group_by('ts').agg(n='count(*)').window({size}, on='ts').agg(m='count(*)')",
        "s.window({size}).distinct().group_by('window_start').agg(n='count(*)')",
        "s.window({size}).agg(n='count(*)').rename(window_start='w').window({twice}, on='w').agg(m='count(*)')",
    ],
)
def test_punctuations_complete_a_window_together(kind: str, query: str) -> None:
    type_, tick, size, twice = KINDS[kind]
    end = 20 if "twice" in query else 10

    def shown(t: int) -> str:
        return str(t) if kind == "int" else f"'{tick(t)}'"

    items = [
        {"ts": tick(3), "id": 1},
        f"[[{shown(end - 4)}, {shown(end + 2)}), *]",
        f"[< {shown(end - 3)}, *]",
        {"ts": tick(end + 5), "id": 2},
        f"[< {shown(end + 2)}, *]",
    ]
    case = Case(query.format(size=size, twice=twice), (feed(items, f"ts {type_}, id int"),))
    assert len(rows(case)) == 1
    # Already the second punctuation completes it.
    assert len(rows(Case(case.query, (feed(items[:3], f"ts {type_}, id int"),)))) == 1
    assert len(rows(Case(case.query, (feed(items[:2], f"ts {type_}, id int"),)))) == 0


def test_single_times_fill_a_window() -> None:
    times = [f"[{t}, *, *]" for t in (4, 0, 2, 1)]
    case = Case("s.window(5).agg(n='count(*)')", (feed([{"ts": 3, "id": 1}, *times, "[3, *, *]"]),))
    assert rows(case) == [{"window_start": 0, "n": 1}]
    assert rows(Case(case.query, (feed([{"ts": 3, "id": 1}, *times]),))) == []


def test_a_promise_for_a_key_and_one_for_all_complete_the_window_of_the_key() -> None:
    events = [{"ts": 3, "k": "a", "id": 1}, {"ts": 4, "k": "b", "id": 2}]
    query = "s.window(10).group_by('k').agg(n='count(*)')"
    assert rows(Case(query, (feed([*events, "[< 5, 'a', *]", "[[5, 12), *, *]"]),))) == [
        {"window_start": 0, "k": "a", "n": 1}
    ]
    assert rows(Case(query, (feed([*events, "[[5, 12), {'a', 'b'}, *]", "[< 8, {'b', 'c'}, *]"]),))) == [
        {"window_start": 0, "k": "b", "n": 1}
    ]


def test_times_on_a_grid_leave_no_gap() -> None:
    case = Case(
        "s.window('10 s', granularity='1 s').agg(n='count(*)')",
        (
            feed(
                [
                    {"ts": at(3), "id": 1},
                    "[<= '1970-01-01 00:00:05', *]",
                    "[['1970-01-01 00:00:06', '1970-01-01 00:00:10'), *]",
                ],
                "ts timestamp, id int",
            ),
        ),
    )
    assert len(rows(case)) == 1


# --- the smaller ones ---


@pytest.mark.parametrize("origin", [0, 3])
def test_an_outer_window_closes_with_its_last_inner_one(origin: int) -> None:
    """Labels of inner windows lie on a grid: behind 10 comes 20."""
    inner = f"s.window(10, origin={origin}).agg(n='count(*)')"
    case = Case(
        f"{inner}.rename(window_start='w').window(20, origin={origin}, on='w').agg(m='sum(n)')",
        (feed([{"ts": origin + 3, "id": 1}, {"ts": origin + 12, "id": 2}, f"[< {origin + 20}, *, *]"]),),
    )
    (row,) = rows(case)
    assert row["m"] == 2


def test_landmarks_over_labels_close_with_the_last_label() -> None:
    case = Case(
        "s.window(10).agg(n='count(*)').window(landmark=20, on='window_start', origin=10).agg(m='sum(n)')",
        (feed([{"ts": 13, "id": 1}, "[< 30, *, *]"]),),
    )
    assert rows(case) == [{"window_end": 30, "m": 1}]


@pytest.mark.parametrize(
    ("kind", "most"),
    [("tinyint", 127), ("smallint", 32767), ("int", 2**31 - 1), ("bigint", 2**63 - 1),
     ("date", "'9999-12-31'"), ("timestamp", "'9999-12-31 23:59:59.999999'")],
)  # fmt: skip
@pytest.mark.parametrize("single", [False, True])
def test_up_to_the_greatest_value_is_everything(kind: str, most: Any, single: bool) -> None:
    size = "'7 s'" if kind == "timestamp" else "7"
    first = at(3) if kind == "timestamp" else date(1970, 1, 4) if kind == "date" else 3
    said = [f"[< {most}, *]", f"[{most}, *]"] if single else [f"[<= {most}, *]"]
    last = {"date": date.max, "timestamp": at(0).max}.get(kind, most)
    case = Case(
        f"s.window({size}).agg(n='count(*)')",
        (feed([{"ts": first, "id": 1}, {"ts": last, "id": 2}, *said], f"ts {kind}, id int"),),
    )
    assert len(rows(case)) == 2


def test_weeks_that_begin_on_a_monday() -> None:
    """A window of so many days counts from a date."""
    events = [{"ts": date(2026, 1, d), "id": d} for d in (4, 5, 11, 12)]
    case = Case(
        "s.window(7, origin='2026-01-05').agg(n='count(*)')",
        (feed([*events, "[< '2026-01-12', *]"], "ts date, id int"),),
    )
    assert rows(case) == [
        {"window_start": date(2025, 12, 29), "n": 1},
        {"window_start": date(2026, 1, 5), "n": 2},
    ]


def test_nan_is_beyond_every_bound() -> None:
    nan = float("nan")
    events = [{"ts": 1, "v": 3.0, "id": 1}, {"ts": 1, "v": nan, "id": 2}]
    case = Case("s.group_by('v').agg(n='count(*)')", (feed([*events, "[*, > 2, *]"], "ts int, v double, id int"),))
    assert len(rows(case)) == 2
    # And an event with NaN that comes afterwards is late.
    late = Case(case.query, (feed(["[*, > 2, *]", events[1]], "ts int, v double, id int"),))
    assert on_reference(late).letters == on_kernels(late, ONE).letters == [("s", "late", 2)]


# --- how many landmark windows there are ---

EVENT = {"ts": 0, "k": "a", "id": 0}
LANDMARKS = "s.window(landmark=1).agg(n='count(*)')"
#: Whether time has come so far is the same in every order: who says `>= 0` does not take it back.
_TOLD = {
    "up to": (["[< 2, *, *]", "[>= 0, *, *]"], 2),
    "single times": (["[< 2, *, *]", "[2, *, *]", "[>= 3, *, *]"], 3),
    "a range": (["[< 1, *, *]", "[[1, 4), *, *]", "[>= 4, *, *]"], 4),
    "what was said already": (["[< 1, *, *]", "[[1, 4), *, *]", "[>= 1, *, *]"], 4),
    "nothing": (["[>= 0, *, *]"], 1),
}


@pytest.mark.parametrize("told", _TOLD)
def test_landmark_windows_go_as_far_as_time_has_come_though_nothing_more_can_come(told: str) -> None:
    said, last = _TOLD[told]
    for each in permutations(said):
        case = Case(LANDMARKS, (feed([EVENT, *each]),))
        assert [r["window_end"] for r in rows(case)] == list(range(1, last + 1)), each


def test_landmark_windows_up_to_the_bounds_of_time() -> None:
    """Beyond the bounds nothing comes: then 4 is the last of all times, and it has come."""
    times = Feed("s", (("", EVENT), ("", "[< 2, *, *]"), ("", "[<= 4, *, *]")), ".bounds('ts', -5, 4).punctuated()")
    case = Case(LANDMARKS, (replace(times, schema=SCHEMA),))
    assert [r["window_end"] for r in rows(case)] == [1, 2, 3, 4, 5]
    # Up to the greatest value there is nobody means so many windows.
    assert rows(Case(LANDMARKS, (feed([EVENT, "[< 2, *, *]", f"[<= {2**31 - 1}, *, *]"]),))) == [
        {"window_end": 1, "n": 1},
        {"window_end": 2, "n": 1},
    ]


def test_landmark_windows_go_on_after_all_of_them_were_complete() -> None:
    """Nothing can come from 0 on, yet time goes on: there is a window whenever it is told that a period has passed."""
    case = Case(LANDMARKS, (feed([EVENT, "[>= 0, *, *]", "[< 2, *, *]", "[< 3, *, *]"], ends=".ends()"),))
    found = on_kernels(case, ONE)
    assert [[r["window_end"] for r in found.epochs.get(e, [])] for e in (1, 2, 3, 4)] == [[], [1], [2], [3]]
    assert found.state == 0
    assert_grammatical(found)
    # Behind them it is not promised that there are no more.
    behind = Case(f"{LANDMARKS}.rename(window_end='w').window(2, on='w').agg(m='sum(n)')", case.feeds)
    assert rows(behind) == [{"window_start": 0, "m": 1}, {"window_start": 2, "m": 2}]


@pytest.mark.parametrize("keys", [["'a'", "'b'"], ["{'a', 'b'}"]])
@pytest.mark.parametrize("query", [LANDMARKS, f"s.select('ts', 'id').{LANDMARKS.removeprefix('s.')}"])
def test_landmark_windows_when_every_declared_key_is_over(keys: list[str], query: str) -> None:
    """Then nothing can come, but that is not the end: time may be told to have come further."""
    over = [f"[*, {k}, *]" for k in keys]
    for said in permutations([*over, "[< 3, *, *]", "[< 2, 'a', *]"]):
        stream = feed([EVENT, *said], ends=".ends()")
        declared = replace(stream, promises=f".punctuate(ps.Punctuate.values('k', ['a', 'b'])){stream.promises}")
        assert [r["window_end"] for r in rows(Case(query, (declared,)))] == [1, 2, 3]


@pytest.mark.parametrize("here", ["s", "t"])
@pytest.mark.parametrize("more", [0, 3])
def test_landmark_windows_go_as_far_as_any_of_the_streams_has_told(here: str, more: int) -> None:
    """Streams end in whatever epoch they are read out in; how far they had come is not forgotten by then."""
    told = {here: [*["[*, 'b', *]"] * more, "[<= 4, *, *]"], "st".replace(here, ""): ["[*, 'b', *]"] * (3 - more)}
    for text in ("s.union(t)", "t.union(s)"):
        case = Case(
            f"{text}.window(landmark=3, origin=-1).agg(n='count(*)')",
            (feed([EVENT, *told["s"]], ends=".ends()"), feed(told["t"], name="t", ends=".ends()")),
        )
        assert [r["window_end"] for r in rows(case)] == [2, 5]


@pytest.mark.parametrize("on", ["order_by('ts')", "distinct()", "top(1, by='id', per=['ts'])", "select('ts', 'id')"])
def test_landmark_windows_behind_an_operator_go_as_far_as_time_has_come(on: str) -> None:
    for said in permutations(["[< 2, *, *]", "[>= 0, *, *]"]):
        case = Case(f"s.{on}.window(landmark=1).agg(n='count(*)')", (feed([EVENT, *said], ends=".ends()"),))
        assert [r["window_end"] for r in rows(case)] == [1, 2], said


@pytest.mark.parametrize("within", ["", ", within=5"])
@pytest.mark.parametrize("waits", ["s", "t"])
def test_landmark_windows_behind_a_join_go_as_far_as_both_sides_have_told(within: str, waits: str) -> None:
    told = {"s": ["[< 4, *, *]"], "t": ["[< 2, *, *]", "[< 6, *, *]"]}
    told[waits] = [*["[*, 'b', *]"] * 2, *told[waits]]
    case = Case(
        f"s.join(t, on='k'{within}).window(landmark=1, on='ts').agg(n='count(*)')",
        (feed([EVENT, *told["s"]], ends=".ends()"), feed([{**EVENT, "ts": 1}, *told["t"]], name="t", ends=".ends()")),
    )
    assert [r["window_end"] for r in rows(case)] == [1, 2, 3, 4]


def test_landmark_windows_of_partitions_go_as_far_as_all_of_them_have_told() -> None:
    """Partitions do not end one by one: the source is as far as the slowest of them."""
    items = (("p", EVENT), ("p", "[< 2, *, *]"), ("q", "[< 3, *, *]"), ("p", "[>= 0, *, *]"), ("q", "[>= 2, *, *]"))
    for some, last in ((items[:3], 2), (items[:4], 3), (items, 3)):
        case = Case(LANDMARKS, (Feed("s", some, ".punctuated()", schema=SCHEMA),))
        assert [r["window_end"] for r in rows(case)] == list(range(1, last + 1))


# --- anything, against the definition ---

TIMES, KEYS = range(24), ("a", "b")


@st.composite
def promised(draw: st.DrawFn) -> str:
    a, b = draw(st.integers(0, 20)), draw(st.integers(1, 10))
    listed = "{" + ", ".join(str(t) for t in draw(st.sets(st.integers(0, 14), min_size=1, max_size=6))) + "}"
    time = draw(st.sampled_from((f"< {a}", f"<= {a}", f"[{a}, {a + b})", f"({a}, {a + b}]", f">= {a}", str(a), listed)))
    key = draw(st.sampled_from(("*", "*", "*", "'a'", "{'a', 'b'}", "< 'b'", ">= 'b'")))
    return f"[{time}, {key}, *]"


@st.composite
def streams(draw: st.DrawFn) -> list[Any]:
    """Events and punctuations; no event breaks a punctuation, or it would be a dead letter and prove nothing."""
    items: list[Any] = []
    given_: list[Pattern] = []
    for number in range(draw(st.integers(2, 14))):
        if draw(st.integers(0, 2)):
            text = draw(promised())
            given_.append(Pattern.parse(text, feed([]).declared.schema))
            items.append(text)
        else:
            row = {"ts": draw(st.integers(0, 15)), "k": draw(st.sampled_from(KEYS)), "id": number}
            if not any(p.matches_row(row) for p in given_):
                items.append(row)
    return items


@st.composite
def windowed(draw: st.DrawFn) -> tuple[str, dict[str, int]]:
    shape = {"size": draw(st.integers(1, 8)), "slide": draw(st.integers(1, 8)), "origin": draw(st.integers(-3, 3))}
    if draw(st.booleans()):
        return ".window({size}, slide={slide}, origin={origin})".format(**shape), shape
    return ".window(landmark={slide}, origin={origin})".format(**shape), {**shape, "size": 0}


def answered(items: list[Any], shape: dict[str, int], by_key: bool) -> set[tuple[Any, ...]]:
    """By definition: the windows (and keys) with an event, none of whose possible events can come any more."""
    schema = feed([]).declared.schema
    patterns = [Pattern.parse(i, schema) for i in items if isinstance(i, str)]
    possible = [
        {"ts": t, "k": k, "id": None}
        for t, k in product(range(-12, 40), (*KEYS, "", "c", None))
        if not any(p.matches_row({"ts": t, "k": k, "id": None}) for p in patterns)
    ]
    size, slide, origin = shape["size"], shape["slide"], shape["origin"]

    def inside(row: dict[str, Any], label: int) -> bool:
        return label <= row["ts"] < label + size if size else origin <= row["ts"] < label

    found: set[tuple[Any, ...]] = set()
    labels = [origin + w * slide for w in range(-40, 40) if size or w > 0]
    for row, label in product((i for i in items if not isinstance(i, str)), labels):
        if inside(row, label):
            key = row["k"] if by_key else None
            # Landmark windows end for all keys together.
            open_ = [p for p in possible if inside(p, label) and (not by_key or not size or p["k"] == key)]
            if not open_:
                found.add((label, key))
    return found


def landmarks_answered(items: list[Any], shape: dict[str, int], by_key: bool) -> set[tuple[Any, ...]]:
    """By definition: those that are complete as far as promises with an end go, by these or others; and if nothing can
    come at all, those up to the first that holds the latest event.
    """
    schema = feed([]).declared.schema
    complete = answered(items, shape, by_key)
    ending = [i for i in items if not isinstance(i, str) or not Pattern.parse(i, schema)["ts"].matches(10**6)]
    told = answered(ending, shape, by_key)
    latest = max((i["ts"] for i in items if not isinstance(i, str)), default=0)
    first = min((label for label, _ in complete if label > latest), default=0)
    return told | {(label, key) for label, key in complete if label <= first}


def labels_of(outcome: Outcome, by_key: bool) -> set[tuple[Any, ...]]:
    return {(r.get("window_start", r.get("window_end")), r["k"] if by_key else None) for r in outcome.rows}


def check(
    items: list[Any], window: tuple[str, dict[str, int]], by_key: bool, cut: Cut, engine: Any = on_kernels
) -> None:
    text, shape = window
    by = ".group_by('k')" if by_key else ""
    case = Case(f"s{text}{by}.agg(n='count(*)')", (feed(items, SCHEMA),))
    expected = answered(items, shape, by_key) if shape["size"] else landmarks_answered(items, shape, by_key)
    found = engine(case, cut)
    assert_grammatical(found)
    assert not found.letters
    assert labels_of(found, by_key) == expected
    assert difference(found.rows, on_reference(case).rows) == ([], [])


@given(streams(), windowed(), st.booleans(), cuts())
@settings(max_examples=60)
def test_windows_are_answered_by_definition_under_any_cut(
    items: list[Any], window: tuple[str, dict[str, int]], by_key: bool, cut: Cut
) -> None:
    check(items, window, by_key, cut)


@pytest.mark.fuzz
@given(streams(), windowed(), st.booleans(), cuts())
@settings(suppress_health_check=list(HealthCheck))
def test_fuzz_windows(items: list[Any], window: tuple[str, dict[str, int]], by_key: bool, cut: Cut) -> None:
    check(items, window, by_key, cut)


@given(items=streams(), window=windowed(), by_key=st.booleans(), cut=cuts(max_rows=(5, None)))
@settings(max_examples=3, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
def test_spark_answers_by_definition(
    spark: Any, items: list[Any], window: tuple[str, dict[str, int]], by_key: bool, cut: Cut
) -> None:
    check(items, window, by_key, cut, lambda case, cut: on_spark(case, cut, spark))


# --- anything behind windows: the same under every cut, never later than in one epoch ---

_BEHIND = (
    ".group_by('k').agg(n='count(*)').rename(window_start='w').window(12, on='w').group_by('k').agg(m='sum(n)')",
    ".group_by('k').agg(n='count(*)').top(1, by='n', per='window_start')",
    ".group_by('k').agg(n='count(*)').distinct()",
    ".top(1, by='id', per='window_start')",
    ".group_by('k').agg(n='count(*)').order_by('window_start').limit(2)",
    ".group_by('k').agg(n='count(*)').join(t.window(6).group_by('k').agg(c='count(*)'), ['window_start', 'k'])",
    ".join(t.window(6), ['window_start', 'k'], 'left').group_by('window_start').agg(n='count(*)')",
    ".group_by('ts').agg(n='count(*)').window(landmark=4, on='ts').agg(m='sum(n)')",
)


@given(streams(), streams(), st.sampled_from(_BEHIND), cuts())
@settings(max_examples=40)
def test_whatever_is_behind_windows_does_not_depend_on_the_cut(
    items: list[Any], others: list[Any], behind: str, cut: Cut
) -> None:
    feeds = (feed(items, SCHEMA), feed(others, SCHEMA, "t")) if "t.window" in behind else (feed(items, SCHEMA),)
    case = Case(f"s.window(6){behind}", feeds)
    found, whole = on_kernels(case, cut), on_kernels(case, WHOLE)
    assert_grammatical(found)
    assert difference(found.rows, whole.rows) == ([], [])


@given(streams(), st.sampled_from([b for b in _BEHIND if "t.window" not in b and "limit" not in b]), cuts())
@settings(max_examples=30)
def test_whatever_is_behind_windows_comes_when_the_reference_has_it(items: list[Any], behind: str, cut: Cut) -> None:
    case = Case(f"s.window(6){behind}", (feed(items, SCHEMA),))
    found = on_kernels(case, replace(cut, restart=False))
    for number, expected in enumerate(by_epoch(case, found.plans), start=1):
        assert difference(expected, found.epochs.get(number, [])) == ([], []), f"epoch {number}"
