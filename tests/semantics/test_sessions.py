"""Sessions end when nothing can make them longer: neither later nor sooner, in whatever order their events come.

The expectation is written from the definition, by enumeration; and no cut into epochs changes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

import pytest
from backend import assert_grammatical, difference, on_kernels, on_reference, on_spark
from case import WHOLE, Case, Cut, Feed, at
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from random_cases import cuts
from test_speculation import assert_converges, at_once

import penstock as ps
from penstock.errors import UserError
from penstock.pattern.pattern import Pattern

SCHEMA = "ts int, k string, id int"
KEYS = ("a", "b", None)


def feed(items: Sequence[Any], schema: str = SCHEMA, promises: str = ".punctuated()") -> Feed:
    return Feed("s", tuple(("", item) for item in items), promises, schema=schema)


@st.composite
def promised(draw: st.DrawFn) -> str:
    a, b = draw(st.integers(0, 20)), draw(st.integers(1, 10))
    time = draw(st.sampled_from((f"< {a}", f"< {a}", f"<= {a}", f"[{a}, {a + b})", f">= {a}", str(a), "*")))
    keys = ("'a'", "{'a', 'b'}", "< 'b'") if time == "*" else ("*", "*", "*", "'a'", "{'a', 'b'}", ">= 'b'")
    return f"[{time}, {draw(st.sampled_from(keys))}, *]"


@st.composite
def streams(draw: st.DrawFn) -> list[Any]:
    """Events, some of them twice, and punctuations that none of them breaks."""
    items: list[Any] = []
    said: list[Pattern] = []
    for number in range(draw(st.integers(2, 16))):
        if draw(st.integers(0, 2)) == 0:
            items.append(draw(promised()))
            said.append(Pattern.parse(items[-1], feed([]).declared.schema))
        else:
            row = {"ts": draw(st.integers(0, 18)), "k": draw(st.sampled_from(KEYS)), "id": number}
            row["ts"] = None if draw(st.integers(0, 20)) == 0 else row["ts"]
            if not any(p.matches_row(row) for p in said):
                items += [row] * draw(st.sampled_from((1, 1, 1, 2)))
    return items


def sessions_of(rows: Sequence[Mapping[str, Any]], gap: int, by_key: bool) -> list[dict[str, Any]]:
    """By definition: events are together if one can get from one to the other in steps of no more than the gap."""
    found: list[dict[str, Any]] = []
    for key in KEYS if by_key else ("",):
        times = sorted(r["ts"] for r in rows if r["ts"] is not None and (not by_key or r["k"] == key))
        last: dict[str, Any] | None = None
        for t in times:
            if last is None or t > last["window_end"]:
                last = {"window_start": t, "window_end": t + gap, **({"k": key} if by_key else {}), "n": 0}
                found.append(last)
            last["window_end"], last["n"] = t + gap, last["n"] + 1
    return found


def over(items: Sequence[Any], gap: int, by_key: bool) -> list[dict[str, Any]]:
    """The sessions before which, and at the ends of which, no event of their key can come any more."""
    said = [Pattern.parse(i, feed([]).declared.schema) for i in items if isinstance(i, str)]
    rows = [i for i in items if not isinstance(i, str)]
    others = ["", "a", "b", "c", None]

    def possible(t: int, key: Any) -> bool:
        return not any(p.matches_row({"ts": t, "k": key, "id": -1}) for p in said)

    return [
        s
        for s in sessions_of(rows, gap, by_key)
        if not any(possible(t, k) for t in range(-12, s["window_end"] + 1) for k in ([s["k"]] if by_key else others))
    ]


def query(gap: int, by_key: bool) -> str:
    return f"s.window(session={gap}){'.group_by(' + repr('k') + ')' if by_key else ''}.agg(n='count(*)')"


def check(items: list[Any], gap: int, by_key: bool, cut: Cut, engine: Any = on_kernels) -> None:
    case = Case(query(gap, by_key), (feed(items),))
    expected = over(items, gap, by_key)
    reference = on_reference(case)
    assert difference(reference.rows, expected) == ([], [])
    found = engine(case, cut)
    assert_grammatical(found)
    # An event without a time is in no session, and what its stream makes of it is not told here.
    assert found.letters == reference.letters
    assert all(kind == "malformed" for _, kind, _ in found.letters)
    assert difference(found.rows, expected) == ([], [])


@given(streams(), st.integers(1, 6), st.booleans(), cuts())
@settings(max_examples=60)
def test_sessions_are_answered_by_definition_under_any_cut(items: list[Any], gap: int, by_key: bool, cut: Cut) -> None:
    check(items, gap, by_key, cut)


@given(streams(), st.integers(1, 6), st.booleans(), cuts())
@settings(max_examples=40)
def test_sessions_told_at_once_become_those_that_hold(items: list[Any], gap: int, by_key: bool, cut: Cut) -> None:
    case = Case(query(gap, by_key), (feed(items, promises=".punctuated().ends()"),))
    found = on_kernels(case, cut, change=at_once)
    assert_grammatical(found)
    assert_converges(sessions_of([i for i in items if not isinstance(i, str)], gap, by_key), found.rows, "at once")
    assert found.state == 0


@pytest.mark.fuzz
@given(streams(), st.integers(1, 6), st.booleans(), cuts())
@settings(suppress_health_check=list(HealthCheck))
def test_fuzz_sessions(items: list[Any], gap: int, by_key: bool, cut: Cut) -> None:
    check(items, gap, by_key, cut)


@pytest.mark.spark
def test_on_spark(spark: Any) -> None:
    @given(streams(), st.integers(1, 6), st.booleans(), cuts(max_rows=(5, None)))
    @settings(max_examples=3, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    def run(items: list[Any], gap: int, by_key: bool, cut: Cut) -> None:
        check(items, gap, by_key, cut, lambda case, cut: on_spark(case, cut, spark))

    run()


@pytest.mark.spark
def test_events_a_gap_apart_are_together_as_in_spark(spark: Any) -> None:
    times = [0, 10, 20.000001, 40, 35, 60]
    frame = spark.createDataFrame([(datetime(2026, 1, 1) + timedelta(seconds=t),) for t in times], "ts timestamp")
    counted = frame.selectExpr("session_window(ts, '10 seconds') AS w").groupBy("w").count()
    theirs = counted.selectExpr("unix_micros(w.start) - unix_micros(w.end) AS length", "count").collect()
    case = Case(
        "s.window(session='10 s').agg(n='count(*)')",
        (feed([{"ts": at(t), "id": i} for i, t in enumerate(times)], "ts timestamp, id int", ".ends()"),),
    )
    mine = on_reference(case).rows
    lengths = sorted(((r["window_start"] - r["window_end"]) // timedelta(microseconds=1), r["n"]) for r in mine)
    assert lengths == sorted((r["length"], r["count"]) for r in theirs)


@pytest.mark.parametrize(
    ("kind", "tick", "gap"),
    [
        ("int", lambda t: t, "5"),
        ("smallint", lambda t: t, "5"),
        ("date", lambda t: date(1970, 1, 1) + timedelta(days=t), "5"),
        ("date", lambda t: date(1970, 1, 1) + timedelta(days=t), "'5 days'"),
        ("timestamp", at, "'5 s'"),
    ],
)
def test_time_is_whatever_other_windows_count(kind: str, tick: Any, gap: str) -> None:
    shown = str if kind.endswith("int") else lambda t: f"'{tick(t)}'"
    items = [{"ts": tick(t), "id": t} for t in (7, -3, 2, 13, 30)]
    case = Case(
        f"s.window(session={gap}).agg(n='count(*)')", (feed([*items, f"[< {shown(19)}, *]"], f"ts {kind}, id int"),)
    )
    expected = [
        {"window_start": tick(-3), "window_end": tick(12), "n": 3},
        {"window_start": tick(13), "window_end": tick(18), "n": 1},
    ]
    for found in (on_reference(case), on_kernels(case, WHOLE), on_kernels(case, Cut(file_rows=1, max_rows=1))):
        assert difference(found.rows, expected) == ([], [])
    # An event at the end of a session would still make it longer.
    early = Case(case.query, (feed([*items, f"[< {shown(18)}, *]"], f"ts {kind}, id int"),))
    assert len(on_reference(early).rows) == len(on_kernels(early, WHOLE).rows) == 1


@pytest.mark.parametrize("by", ["", ".group_by('k')", ".group_by('k', 'ts')", ".group_by('ts')"])
@pytest.mark.parametrize("over", ["[<= 2147483647, *, *]", "[< 2147483647, *, *]", "[< 2147483600, *, *]"])
def test_up_to_the_greatest_value_is_everything(by: str, over: str) -> None:
    items = [{"ts": 5, "k": "a", "id": 1}, {"ts": 2147483640, "k": "a", "id": 2}, {"ts": 5, "k": None, "id": 3}, over]
    case = Case(f"s.window(session=7){by}.agg(n='count(*)')", (feed(items),))
    expected = on_reference(case).rows
    for cut in (WHOLE, Cut(file_rows=1, max_rows=1, restart=True)):
        assert difference(on_kernels(case, cut).rows, expected) == ([], [])
    # A session of one time, which is its key, needs no more than that.
    last = "<=" in over or ("'ts'" in by and "< 2147483647" in over)
    assert len(expected) == (3 if "'k'" in by else 2) - (not last)


@pytest.mark.parametrize(
    ("kind", "first", "last", "gap"),
    [
        ("timestamp", at(0), datetime.max, "'5 s'"),
        ("date", date(1970, 1, 1), date.max, "5"),
        ("bigint", 0, 2**63 - 1, "5"),
    ],
)
def test_what_would_last_beyond_all_time_is_a_dead_letter(kind: str, first: Any, last: Any, gap: str) -> None:
    items = [{"ts": first, "id": 1}, {"ts": last, "id": 2}, {"ts": first, "id": 3}]
    case = Case(f"s.window(session={gap}).agg(n='count(*)')", (feed(items, f"ts {kind}, id int", ".ends()"),))
    for found in (on_reference(case), on_kernels(case, WHOLE), on_kernels(case, Cut(max_rows=1))):
        assert [(r["window_start"], r["n"]) for r in found.rows] == [(first, 2)]
        assert [why for _, why, _ in found.letters] == ["failed"]


def test_times_on_a_grid_end_a_session_sooner() -> None:
    """After second 5 comes second 6, so none comes at the end of a session that ends in between."""
    items = [{"ts": at(0), "id": 1}, "[<= '1970-01-01 00:00:05', *]"]
    for rest, count in (("", 0), (", granularity='1 s'", 1)):
        case = Case(f"s.window(session='5500 ms'{rest}).agg(n='count(*)')", (feed(items, "ts timestamp, id int"),))
        assert len(on_reference(case).rows) == len(on_kernels(case, WHOLE).rows) == count


def test_how_many_bids_a_user_made_in_each_session_of_activity() -> None:
    """As NEXMark asks in query 11; and then how many sessions there were an hour, by their ends."""
    bids = [("ann", 0), ("bob", 3), ("ann", 8), ("bob", 14), ("bob", 13), ("ann", 30), ("ann", 19)]
    items = [{"ts": at(t), "bidder": who, "price": t} for who, t in bids]
    sessions = "s.window(session='10 s').group_by('bidder').agg(bid_count='count(*)')"
    case = Case(sessions, (feed(items, "ts timestamp, bidder string, price int", ".disorder('7 s').ends()"),))
    expected = [
        {"window_start": at(0), "window_end": at(18), "bidder": "ann", "bid_count": 2},
        {"window_start": at(3), "window_end": at(24), "bidder": "bob", "bid_count": 3},
        {"window_start": at(30), "window_end": at(40), "bidder": "ann", "bid_count": 1},
    ]
    letter = ("s", "late", None)
    found = on_kernels(case, Cut(max_rows=2))
    assert on_reference(case).letters == found.letters == [letter]
    assert difference(found.rows, expected) == ([], [])
    early = on_kernels(case, Cut(max_rows=2), change=at_once)
    assert_converges(found.rows, early.rows, "at once")
    hourly = f"{sessions}.rename(window_start='since').window('1 h', on='window_end')"
    hourly += ".group_by('bidder').agg(sessions='count(*)')"
    counts = on_kernels(Case(hourly, case.feeds), WHOLE).rows
    assert {(r["bidder"], r["sessions"]) for r in counts} == {("ann", 2), ("bob", 1)}


# --- mistakes ---

STREAM = ps.stream("s", "ts timestamp, k string", time="ts")


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: STREAM.window("10 s", session="10 s"), "exactly one of a size, rows=, landmark= and session="),
        (lambda: STREAM.window(session="0 s"), "session gap: '0 s' is not positive"),
        (lambda: STREAM.window(session=10), r"Window.session\(10\) does not fit attribute 'ts', a timestamp"),
        (lambda: STREAM.window(session="10 s", slide="5 s"), "neither a slide nor an origin"),
        (lambda: STREAM.window(session="10 s", origin="2026-01-01"), "neither a slide nor an origin"),
        (lambda: STREAM.window(session="10 s").where("k = 'a'"), r"must be followed by group_by\(…\).agg\(…\)"),
        (lambda: STREAM.rename(k="window_start").window(session="10 s"), "already has an attribute 'window_start'"),
        (lambda: STREAM.window(session="10 s").agg(window_start="count(*)"), "'window_start' is a grouping attribute"),
        (
            lambda: at_once(STREAM.group_by("ts").agg(n="count(*)").window(session="10 s", on="ts").agg(m="sum(n)")),
            "a session keeps no events, so it cannot give one up that is taken back",
        ),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(build: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        build()


def test_a_session_that_collects_values_may_grow_without_end() -> None:
    report = STREAM.disorder("5 s").window(session="10 s").group_by("k").agg(n="count(distinct ts)").check()
    assert not report.safe and "keeps every value" in str(report)
    assert STREAM.disorder("5 s").window(session="10 s").group_by("k").agg(n="count(*)").check().safe
