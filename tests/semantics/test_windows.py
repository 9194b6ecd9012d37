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


#: Windows as written, with size, slide and whether they grow from a landmark at 0.
INNER = {"10": (10, 10), "10, slide=5": (10, 5), "10, slide=4": (10, 4), "5, slide=10": (5, 10), "landmark=10": (0, 10)}
OUTER = {"20": (20, 20), "20, slide=10": (20, 10), "10, slide=20": (10, 20), "landmark=20": (0, 20)}


@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("inner", INNER)
def test_windows_of_windows_close_with_their_last_label(inner: str, outer: str) -> None:
    """By definition: when all labels of inner windows that lie in the outer one are of windows that are over."""
    (size, slide), (width, step) = INNER[inner], OUTER[outer]
    label, labels = ("window_start", range(-40, 80, slide)) if size else ("window_end", range(slide, 80, slide))
    ends = {w: w + size for w in labels}
    query = f"s.window({inner}).agg(n='count(*)').rename({label}='w').window({outer}, on='w').agg(m='sum(n)')"
    times = (3, 12, 29)
    held = {w for w in labels for t in times if (w <= t < w + size if size else w - slide <= t < w)}
    for bound in (14, 20, 25, 26, 30, 39, 40, 46):
        expected = set()
        for o in range(-40, 80, step):
            inside = [w for w in labels if (o <= w < o + width if width else 0 <= w < o)]
            # Of landmark windows those count whose last period has an event.
            new = [w for w in inside if w in held and (width or w >= o - step)]
            if new and all(ends[w] <= bound for w in inside):
                expected.add(o)
        items = [*({"ts": t, "id": t} for t in times), f"[< {bound}, *, *]"]
        case = Case(query, (feed(items),))
        assert {r["window_start" if width else "window_end"] for r in rows(case)} == expected, bound


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


# --- which landmark windows there are ---

EVENT, LATER = {"ts": 0, "k": "a", "id": 0}, {"ts": 3, "k": "b", "id": 1}
LANDMARKS = "window(landmark=1, on='ts').agg(n='count(*)')"
#: Those of periods with events, in whatever order it is said that they are over, and with whatever else.
_TOLD = {
    "up to": (["[< 2, *, *]", "[>= 0, *, *]"], [1, 4]),
    "up to, and no further": (["[< 3, *, *]", "[< 2, *, *]"], [1]),
    "single times": (["[< 2, *, *]", "[2, *, *]", "[>= 3, *, *]"], [1, 4]),
    "a range": (["[< 1, *, *]", "[[1, 4), *, *]", "[>= 4, *, *]"], [1, 4]),
    "a range that ends early": (["[< 1, *, *]", "[[1, 3), *, *]", "[>= 4, *, *]"], [1]),
    "everything": (["[*, *, *]", "[< 3, *, *]", "[< 7, *, *]"], [1, 4]),
    "all keys": (["[*, {'a', 'b'}, *]", "[< 5, *, *]"], [1, 4]),
}


#: What may lie in front of them: much of it keeps nothing apart that time has told.
_FRONT = [
    "", "limit(9).", "limit(2).", "order_by('ts').", "distinct().", "top(1, by='id', per=['ts']).", "select('ts').",
    "union(t).", "join(t, on='k').", "join(t, on='k', how='left', within=5).", "join(t, on='k', rows=2).",
]  # fmt: skip


@pytest.mark.parametrize("told", _TOLD)
@pytest.mark.parametrize("on", _FRONT)
def test_landmark_windows_are_those_of_periods_with_events(told: str, on: str) -> None:
    said, expected = _TOLD[told]
    for each in permutations(said):
        before = [{**EVENT, "ts": -1}, {**LATER, "ts": -1}, "[*, 'c', *]", "[< 6, *, *]"]
        other = (feed(before, name="t", ends=".ends()"),) if "(t" in on else ()
        case = Case(f"s.{on}{LANDMARKS}", (feed([EVENT, LATER, *each], ends=".ends()"), *other))
        assert [r["window_end"] for r in rows(case)] == [1, 4], each
        if not on:
            assert [r["window_end"] for r in rows(Case(case.query, (feed([EVENT, LATER, *each]),)))] == expected, each


# --- anything, against the definition ---

TIMES, KEYS = range(24), ("a", "b")


@st.composite
def promised(draw: st.DrawFn) -> str:
    a, b = draw(st.integers(0, 20)), draw(st.integers(1, 10))
    listed = "{" + ", ".join(str(t) for t in draw(st.sets(st.integers(0, 14), min_size=1, max_size=6))) + "}"
    times = f"< {a}", f"<= {a}", f"[{a}, {a + b})", f"({a}, {a + b}]", f">= {a}", str(a), listed, "*"
    time = draw(st.sampled_from(times))
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
    """By definition: the windows (and keys) with an event, none of whose possible events can come any more.

    Of landmark windows those count whose last period has an event.
    """
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
        if inside(row, label) and (size or row["ts"] >= label - slide):
            key = row["k"] if by_key else None
            # Landmark windows end for all keys together.
            open_ = [p for p in possible if inside(p, label) and (not by_key or not size or p["k"] == key)]
            if not open_:
                found.add((label, key))
    return found


def labels_of(outcome: Outcome, by_key: bool) -> set[tuple[Any, ...]]:
    return {(r.get("window_start", r.get("window_end")), r["k"] if by_key else None) for r in outcome.rows}


def check(
    items: list[Any], window: tuple[str, dict[str, int]], by_key: bool, cut: Cut, engine: Any = on_kernels
) -> None:
    text, shape = window
    by = ".group_by('k')" if by_key else ""
    case = Case(f"s{text}{by}.agg(n='count(*)')", (feed(items, SCHEMA),))
    expected = answered(items, shape, by_key)
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


LANDMARK_CASES = (streams(), streams(), st.sampled_from(_FRONT), st.integers(1, 5), cuts())


def check_landmarks(items: list[Any], others: list[Any], front: str, every: int, cut: Cut) -> None:
    feeds = (feed(items), feed(others, name="t")) if "(t" in front else (feed(items),)
    case = Case(f"s.{front}window(landmark={every}, on='ts').agg(n='count(*)')", feeds)
    found, whole = on_kernels(case, cut), on_kernels(case, WHOLE)
    assert_grammatical(found)
    assert difference(found.rows, whole.rows) == ([], [])
    if "join" not in front:  # Its inputs meet in the order in which they are read.
        assert difference(found.rows, on_reference(case).rows) == ([], [])


@given(*LANDMARK_CASES)
@settings(max_examples=40)
def test_landmark_windows_behind_anything_do_not_depend_on_the_cut(
    items: list[Any], others: list[Any], front: str, every: int, cut: Cut
) -> None:
    check_landmarks(items, others, front, every, cut)


@pytest.mark.fuzz
@given(*LANDMARK_CASES)
@settings(suppress_health_check=list(HealthCheck))
def test_fuzz_landmarks(items: list[Any], others: list[Any], front: str, every: int, cut: Cut) -> None:
    check_landmarks(items, others, front, every, cut)


@given(streams(), st.sampled_from([b for b in _BEHIND if "t.window" not in b and "limit" not in b]), cuts())
@settings(max_examples=30)
def test_whatever_is_behind_windows_comes_when_the_reference_has_it(items: list[Any], behind: str, cut: Cut) -> None:
    case = Case(f"s.window(6){behind}", (feed(items, SCHEMA),))
    found = on_kernels(case, replace(cut, restart=False))
    for number, expected in enumerate(by_epoch(case, found.plans), start=1):
        assert difference(expected, found.epochs.get(number, [])) == ([], []), f"epoch {number}"
