"""What operators answer to assumed feedback: stateless ones, windows, and those that keep whole events."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pyarrow as pa
import pytest

import penstock as ps
from penstock.analysis.cascade import respond
from penstock.errors import UnknownOperatorError
from penstock.operators.sink.operator import Sink
from penstock.operators.window.feedback import PIECES
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import one_of
from penstock.pattern.schema import Schema
from penstock.plan.operator import Operator
from penstock.plan.response import Response
from penstock.plan.window import TimeWindow

S = ps.stream("s", "ts int, k string, n bigint, v double", time="ts")
T = ps.stream("t", "ts int, k string, n bigint, v double", time="ts")
RATES = ps.table("rates", "k string, rate int", key="k").read_parquet("rates")
BY_NUMBER = ps.table("by_number", "f double, rate int", key="f").read_parquet("rates")
VERSIONED = ps.table("rates", "k string, rate int, since int", key="k", version="since").read_parquet("rates")
ONLY_BEHIND = Response(output=True, inputs=(None,), send=((),))


def told(stream: ps.Stream, text: str) -> Response:
    return respond(stream.operator, Pattern.parse(text, stream.schema))


def said(stream: ps.Stream, text: str) -> list[list[str]]:
    """By input, what is passed on."""
    return [[str(p) for p in sent] for sent in told(stream, text).send]


def same(rows: pa.Table) -> pa.Table:
    return rows


def is_only_behind(response: Response) -> bool:
    """Results are dropped, and that is all; it says why."""
    return bool(response.why) and response == Response(output=True, inputs=(None,), send=((),), why=response.why)


def test_nothing_is_done_about_nothing() -> None:
    for stream in (S, S.where("n > 0"), S.distinct(), S.join(T, "k"), S.group_by("k").agg(c="count(*)"), S.union(T)):
        nothing = Pattern.by_name(stream.schema, {"k": one_of([])})
        assert respond(stream.operator, nothing) == Response()


def test_a_source_guards_what_leaves_it() -> None:
    assert told(S, "[< 3, *, *, *]") == Response(output=True)


@pytest.mark.parametrize("stream", [S.where("n > 0"), ps.Stream(Sink((S.operator,), S.schema))])
def test_select_and_sink_drop_on_arrival_and_pass_on(stream: ps.Stream) -> None:
    pattern = Pattern.parse("[< 3, *, *, > 0.5]", S.schema)
    assert respond(stream.operator, pattern) == Response(inputs=(pattern,), send=((pattern,),))
    assert said(stream, "[*, *, *, *]") == [["[*, *, *, *]"]]


# --- project, map, lookup, union -------------------------------------------------------------------------------------


def test_project_inverts_renames_and_keeps_quiet_about_what_it_computes() -> None:
    stream = S.select("k", when="ts", m="n + 1")
    assert said(stream, "['a', < 3, *]") == [["[< 3, 'a', *, *]"]]
    assert is_only_behind(told(stream, "[*, *, 7]"))
    half = told(stream, "[*, < 3, 7]")  # Without m it would match more.
    assert is_only_behind(half) and "'m' is computed" in half.why


def test_two_names_of_one_attribute_hold_both_restrictions() -> None:
    stream = S.select(a="ts", b="ts")
    assert said(stream, "[< 7, > 3]") == [["[(3, 7), *, *, *]"]]
    assert told(stream, "[< 3, > 7]") == Response()


def test_map_passes_on_what_it_keeps() -> None:
    stream = S.map(same, keeps=["ts", "k"])
    assert said(stream, "[< 3, 'a', *, *]") == [["[< 3, 'a', *, *]"]]
    assert is_only_behind(told(stream, "[< 3, *, 1, *]"))
    wider = S.map(same, "ts bigint, k string, n double", keeps=["ts", "n"])
    assert said(wider, f"[< {2**40}, *, *]") == [["[(, ), *, *, *]"]]  # Every int, and no null.
    assert is_only_behind(told(wider, "[*, *, 1.5]"))  # A bigint has no 1.5, and a double not every bigint.


def test_lookup_knows_the_stream_and_not_the_table() -> None:
    inner, left = (S.lookup(RATES, "k", how, columns=["k", "rate"]) for how in ("inner", "left"))
    assert inner.schema.names == ("ts", "k", "n", "v", "k_rates", "rate")
    for stream in (inner, left):
        assert said(stream, "[*, 'a', *, *, *, *]") == [["[*, 'a', *, *]"]]
        answer = told(stream, "[*, 'a', *, *, *, > 1]")
        # Which keys that means, each epoch finds out.
        assert answer.anew and is_only_behind(replace(answer, anew=False))
    assert said(inner, "[*, *, *, *, 'a', *]") == [["[*, 'a', *, *]"]]
    # The key of a row that is not there is null: an event without a row is wanted.
    assert is_only_behind(replace(told(left, "[*, *, *, *, 'a', *]"), anew=False))


@pytest.mark.parametrize(
    ("stream", "why"),
    [
        (S.order_by("ts").lookup(RATES, "k"), "what order_by keeps may meet another state of it"),
        (S.impute(same, keeps=["ts"]).lookup(RATES, "k"), "what impute keeps may meet another state of it"),
        (S.lookup(BY_NUMBER, {"v": "f"}), "keys that are floating numbers are not listed"),
        (
            S.lookup(VERSIONED, "k", "left", columns=["rate"]),
            "before its first version an event has no row, and is wanted",
        ),
    ],
)
def test_where_nothing_can_be_said_of_keys_it_is_told_why(stream: ps.Stream, why: str) -> None:
    answer = told(stream, "[*, *, *, *, > 1]")
    assert is_only_behind(answer)
    assert answer.why.startswith("'rate' is from table '") and answer.why.endswith(f"': {why}")


def test_union_tells_all_inputs_by_name() -> None:
    swapped = T.select("v", "n", "k", "ts")
    answer = told(S.union(swapped), "[< 3, *, *, > 0.5]")
    assert answer.output and answer.inputs == (None, None)
    assert [[str(p) for p in sent] for sent in answer.send] == [["[< 3, *, *, > 0.5]"], ["[> 0.5, *, *, < 3]"]]


# --- operators that keep whole events --------------------------------------------------------------------------------


def test_distinct_forgets_and_never_lets_in_again() -> None:
    pattern = Pattern.parse("[*, 'a', *, > 0.5]", S.schema)
    expected = Response(inputs=(pattern,), send=((pattern,),), purge=True, pinned=True)
    assert respond(S.distinct().operator, pattern) == expected


def test_order_by_needs_no_memory_of_what_it_purged() -> None:
    pattern = Pattern.parse("[*, *, 1, *]", S.schema)
    expected = Response(inputs=(pattern,), send=((pattern,),), purge=True)
    assert respond(S.order_by("v").operator, pattern) == expected
    # With slack each event pushes another one out: what is wanted would wait for what is not.
    assert respond(S.order_by("v", slack=3).operator, pattern).send == ((),)


def test_nothing_is_guessed_of_unknown_operators() -> None:
    class Odd(Operator):
        pass

    odd = Odd((S.operator, T.operator), S.schema)
    with pytest.raises(UnknownOperatorError, match="'odd'"):
        respond(odd, Pattern.parse("[< 3, *, *, *]", S.schema))


@pytest.mark.parametrize(
    "stream",
    [S.limit(3), S.pace(T, on="ts", bound=5), S.top(2, by="n", per=["k"]), S.window(landmark=5).agg(c="max(n)")],
)
def test_when_nothing_is_wanted_at_all_everything_goes(stream: ps.Stream) -> None:
    answer = told(stream, f"[{', '.join('*' * len(stream.schema))}]")
    assert all(len(sent) == 1 and sent[0].restricted == () for sent in answer.send)
    assert answer.output and answer.pinned and len(answer.send) == len(stream.operator.inputs)


@pytest.mark.parametrize("stream", [S.limit(3), S.top(2, by="n"), S.top(2, by="n", per=["n"])])
def test_an_event_less_would_let_others_in(stream: ps.Stream) -> None:
    assert is_only_behind(told(stream, "[*, 'a', *, *]"))


# --- windows ---------------------------------------------------------------------------------------------------------

COMPARISONS = [f"{c} {v}" for c in ("<", "<=", ">", ">=") for v in range(-5, 12)]
OTHERS = [*map(str, range(-5, 12)), "[0, 4]", "(0, 4)", "[-3, 5)", "{0, 4}", "{-2, 0, 2, 7}", "{0, 1, 2, 3}"]


@pytest.mark.parametrize("origin", [0, 1, -3])
@pytest.mark.parametrize(("size", "slide"), list(product((1, 2, 3, 5), (1, 2, 3, 4))))
def test_an_event_goes_just_if_all_its_windows_may(size: int, slide: int, origin: int) -> None:
    stream = S.window(size, slide=slide, origin=origin)
    window = stream.operator.window  # type: ignore[attr-defined]
    assert isinstance(window, TimeWindow)
    starts = range(origin - 30 * slide, origin + 30 * slide, slide)
    windows = {ts: [w for w in starts if w <= ts < w + size] for ts in range(-15, 20)}
    for label in (*COMPARISONS, *OTHERS):
        answer = told(stream, f"[*, *, *, *, {label}]")
        assert answer.output
        unwanted = Pattern.parse(f"[{label}]", Schema.parse("window_start bigint"))["window_start"]
        for ts, mine in windows.items():
            row = {"ts": ts, "k": None, "n": None, "v": None}
            goes = any(p.matches_row(row) for p in answer.send[0])
            if mine:
                assert goes == all(map(unwanted.matches, mine)), (window, label, ts)
            guards = [p for p in answer.inputs if p is not None]
            assert all(not p.matches_row(row) or goes for p in guards)


def test_the_window_takes_other_attributes_along() -> None:
    sliding = S.window(10, slide=5)
    assert said(sliding, "[*, 'a', *, > 1, *]") == [["[*, 'a', *, > 1.0]"]]
    assert said(sliding, "[*, 'a', *, *, < 20]") == [["[< 20, 'a', *, *]"]]
    assert said(sliding, "[> 3, *, *, *, < 20]") == [["[(3, 20), *, *, *]"]]
    assert said(sliding, "[*, *, *, *, >= 20]") == [["[>= 25, *, *, *]"]]
    stuck = told(sliding, "[*, *, *, *, 20]")
    assert is_only_behind(stuck) and "every event is in a window that is wanted too" in stuck.why
    assert said(S.window(10), "[*, *, *, *, {0, 10, 50}]") == [["[[0, 20), *, *, *]", "[[50, 60), *, *, *]"]]


def test_golden_windows_up_to_the_fourth() -> None:
    # From the literature: slide = range = 2 from 0, `WID <= 4` means times before 8; its window 4 starts at 6.
    assert said(S.window(2), "[*, *, *, *, <= 6]") == [["[< 8, *, *, *]"]]


def test_long_lists_of_windows_are_passed_on_in_part() -> None:
    stream = S.window(10)
    labels = Pattern.by_name(stream.schema, {"window_start": one_of(range(0, 20 * (PIECES + 9), 20))})
    answer = respond(stream.operator, labels)
    assert answer.output and len(answer.send[0]) == PIECES


def test_windows_beyond_the_type_of_the_time() -> None:
    tiny = ps.stream("u", "ts tinyint", time="ts").window(100, slide=100)
    assert said(tiny, "[*, >= 100]") == [["[>= 100]"]]
    assert said(tiny, "[*, >= 200]") == [[]]
    assert said(tiny, "[*, < 1000]") == [["[(, )]"]]


def test_timestamps() -> None:
    stream = ps.stream("u", "ts timestamp, v int", time="ts").window("10 min", slide="5 min")
    at = "'2026-01-01 10:{:02d}:00'".format
    assert said(stream, f"[*, *, < {at(20)}]") == [[f"[< {at(20)}, *]"]]
    assert said(stream, f"[*, *, > {at(20)}]") == [[f"[>= {at(30)}, *]"]]


def test_windows_that_only_their_aggregate_can_tell() -> None:
    count, landmark = S.window(rows=3), S.window(landmark=10)
    for stream in (count, landmark):  # Only an aggregate can be behind them, and it sends whole groups.
        assert said(stream, "[*, 'a', *, *, *]") == [["[*, 'a', *, *]"]]
    shifted = told(count, "[*, *, *, *, 3]")
    assert not shifted.output and shifted.send == ((),)
    assert said(landmark, "[*, *, *, *, > 20]") == [["[>= 20, *, *, *]"]]
    assert said(landmark, "[*, *, *, *, <= 20]") == [[]]
