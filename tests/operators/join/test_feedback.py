"""What joins answer to assumed feedback: the five cases of the literature, outer joins, bands, rows, many inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import penstock as ps
from penstock.analysis.cascade import respond
from penstock.operators.join.operator import Join, Taken
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Schema
from penstock.plan.response import Response


def stream(name: str, schema: str, time: str | None = None) -> ps.Stream:
    return ps.stream(name, schema, time=time)


S1, S2 = stream("s1", "a int, b int"), stream("s2", "b int, c int")
S, T = (stream(name, "ts int, k int, v int", "ts") for name in "st")


def told(joined: ps.Stream, text: str) -> Response:
    return respond(joined.operator, Pattern.parse(text, joined.schema))


def said(joined: ps.Stream, text: str) -> list[str]:
    """By input, what is passed on."""
    return [" ".join(map(str, sent)) for sent in told(joined, text).send]


def is_only_behind(response: Response) -> bool:
    nothing = Response(output=True, inputs=(None,) * len(response.inputs), send=((),) * len(response.inputs))
    return bool(response.why) and response == replace(nothing, why=response.why)


# --- the cases of the literature -------------------------------------------------------------------------------------


def test_golden_three_tables() -> None:
    """From the literature: A(a, t, id) ⋈ B(t, id, b); the output has the keys first."""
    a, b = stream("a", "a int, t int, id int"), stream("b", "t int, id int, b int")
    c = a.join(b, ["t", "id"])
    assert c.schema.names == ("t", "id", "a", "b")
    assert said(c, "[3, 4, *, *]") == ["[*, 3, 4]", "[3, 4, *]"]
    assert said(c, "[*, *, 50, *]") == ["[50, *, *]", ""]
    assert said(c, "[*, *, 50, 50]") == ["", ""]
    assert is_only_behind(told(c, "[*, *, 50, 50]"))


#: Case → pattern over (b, a, c), and what goes left and right.
CASES = {
    "1 left": ("[*, <= 3, *]", ["[<= 3, *]", ""]),
    "1 right": ("[*, *, 2]", ["", "[*, 2]"]),
    "2": ("[1, *, *]", ["[*, 1]", "[1, *]"]),
    "3": ("[*, <= 3, 2]", ["", ""]),
    "4": ("[1, <= 3, 2]", ["", ""]),
    "5 left": ("[1, <= 3, *]", ["[<= 3, 1]", ""]),
    "5 right": ("[1, *, 2]", ["", "[1, 2]"]),
    "nothing is wanted": ("[*, *, *]", ["[*, *]", "[*, *]"]),
}


@pytest.mark.parametrize("case", CASES)
def test_cases_of_the_inner_join(case: str) -> None:
    text, expected = CASES[case]
    joined = S1.join(S2, "b")
    answer = told(joined, text)
    assert [" ".join(map(str, sent)) for sent in answer.send] == expected
    # What goes to an input is dropped and purged there; nothing else is needed then, and nothing must stay.
    assert [None if p is None else str(p) for p in answer.inputs] == [e or None for e in expected]
    assert answer.output == (not any(expected)) and answer.purge == any(expected) and not answer.pinned
    assert bool(answer.why) == (not all(expected))


def test_golden_counterexamples_of_halves() -> None:
    """From the literature: what halves of a pattern would lose, `<4,1,2>` in each case."""
    left, right = [(4, 1)], [(1, 2)]
    joined = S1.join(S2, "b")
    for text in ("[*, <= 3, 2]", "[1, <= 3, 2]", "[1, <= 3, *]"):
        answer = told(joined, text)
        for rows, sent, schema in ((left, answer.send[0], S1.schema), (right, answer.send[1], S2.schema)):
            events = [dict(zip(schema.names, row)) for row in rows]
            assert not [e for e in events for p in sent if p.matches_row(e)], text


def test_golden_probes_and_detectors() -> None:
    """From the literature: probe vehicles and detectors at the same place and time."""
    place = "freeway_id int, milepost int, timestamp timestamp"
    probe = stream("probe", f"id int, {place}, speed int", "timestamp")
    detector = stream("detector", f"id int, {place}, speed int", "timestamp")
    joined = probe.join(detector, ["freeway_id", "milepost", "timestamp"], suffix="_detector")
    at = "'2010-04-01 10:00:00'"
    assert said(joined, f"[11, 30, {at}, *, *, *, *]") == [f"[*, 11, 30, {at}, *]"] * 2
    assert joined.schema.names[3:5] == ("id", "speed")
    assert said(joined, "[*, *, *, *, >= 50, *, *]") == ["[*, *, *, *, >= 50]", ""]


# --- kinds -----------------------------------------------------------------------------------------------------------

#: What a pattern over (b, a, c) may do: by kind, on the key, on the left, on the right, on key and left.
KINDS = {
    "inner": (["[*, 1]", "[1, *]"], ["[1, *]", ""], ["", "[*, 1]"], ["[1, 1]", ""]),
    # Without a right event its left partner would come out padded: only if that is unwanted too, by the key.
    "left": (["[*, 1]", "[1, *]"], ["[1, *]", ""], ["", ""], ["[1, 1]", ""]),
    "right": (["[*, 1]", "[1, *]"], ["", ""], ["", "[*, 1]"], ["", ""]),
    "full": (["[*, 1]", "[1, *]"], ["", ""], ["", ""], ["", ""]),
}


@pytest.mark.parametrize("how", KINDS)
def test_outer_joins_invent_no_lonely_events(how: str) -> None:
    joined = S1.join(S2, "b", how)
    for text, expected in zip(("[1, *, *]", "[*, 1, *]", "[*, *, 1]", "[1, 1, *]"), KINDS[how]):
        answer = told(joined, text)
        assert [" ".join(map(str, sent)) for sent in answer.send] == expected, text
        assert answer.output == (not any(expected))
        # Once events of one side are gone, the lonely ones of the other must stay away.
        assert answer.pinned == (how != "inner" and all(expected))


def test_semi_and_anti() -> None:
    semi, anti = S1.join(S2, "b", "semi"), S1.join(S2, "b", "anti")
    for joined in (semi, anti):
        assert said(joined, "[*, 1]") == ["[*, 1]", "[1, *]"]
        assert said(joined, "[<= 3, *]") == ["[<= 3, *]", ""]
        assert said(joined, "[<= 3, 1]") == ["[<= 3, 1]", ""]
    # Fewer right events: fewer results of a semi-join, all of them unwanted; but more of an anti-join.
    assert not told(semi, "[*, 1]").pinned
    assert told(anti, "[*, 1]").pinned
    assert not told(anti, "[<= 3, *]").pinned


def test_intersect_and_difference_take_feedback_on_any_attribute_to_both_sides() -> None:
    other = S1.where("a > 0")
    for joined, pinned in ((S1.intersect(other), False), (S1.difference(other), True)):
        (below,) = joined.operator.inputs
        assert said(joined, "[1, < 2]") == ["[1, < 2]"]
        answer = respond(below, Pattern.parse("[1, < 2]", below.schema))
        assert [" ".join(map(str, sent)) for sent in answer.send] == ["[1, < 2]", "[1, < 2]"]
        assert answer.pinned == pinned


def test_a_residual_predicate_changes_nothing() -> None:
    for text, expected in CASES.values():
        assert said(S1.join(S2, "b", where="a < c"), text) == expected


def with_columns(how: str, *columns: tuple[str, tuple[tuple[int, str], ...]]) -> ps.Stream:
    """A join whose output is put together by hand."""
    joined = S1.join(S2, "b", how).operator
    assert isinstance(joined, Join)
    taken = tuple(Taken(name, origins) for name, origins in columns)
    schema = Schema.parse(", ".join(f"{c.name} int" for c in taken))
    return ps.Stream(replace(joined, columns=taken, schema=schema))


def test_a_key_that_is_there_twice() -> None:
    both = ("x", ((0, "b"),)), ("y", ((1, "b"),))
    assert said(with_columns("inner", *both), "[< 7, > 3]") == ["[*, (3, 7)]", "[(3, 7), *]"]
    assert said(with_columns("inner", *both), "[*, > 3]") == ["[*, > 3]", "[> 3, *]"]
    # The right copy is null for lonely left events: these are wanted, whatever their key.
    assert said(with_columns("left", *both), "[*, > 3]") == ["", ""]
    assert said(with_columns("left", *both), "[> 3, *]") == ["[*, > 3]", "[> 3, *]"]
    # Here lonely events of either side have no value in one of the two.
    assert said(with_columns("full", *both), "[> 3, *]") == ["", ""]


def test_the_first_value_of_two_that_may_differ_is_known_to_nobody() -> None:
    for how in ("inner", "left", "full"):
        mixed = with_columns(how, ("x", ((0, "a"), (1, "c"))), ("b", ((0, "b"), (1, "b"))))
        assert said(mixed, "[1, *]") == ["", ""]
        assert said(mixed, "[*, 1]") == ["[*, 1]", "[1, *]"]


def test_a_key_on_both_ends() -> None:
    a, b = stream("a", "x int, y int"), stream("b", "k int, v int")
    joined = a.join(b, {"x": "k", "y": "k"})
    assert said(joined, "[1, *, *]") == ["[1, *]", "[1, *]"]
    assert said(joined, "[> 1, < 9, *]") == ["[> 1, < 9]", "[(1, 9), *]"]


def test_keys_of_different_width() -> None:
    small, large = stream("a", "k tinyint, v int"), stream("b", "k bigint, w int")
    assert said(small.join(large, "k", "full"), "[300, *, *]") == ["", "[300, *]"]
    assert said(small.join(large, "k"), "[< 100, *, *]") == ["[< 100, *]", "[< 100, *]"]


# --- bands and rows --------------------------------------------------------------------------------------------------


def test_time_reaches_across_the_band() -> None:
    """Left at t meets right from t - 2 to t + 3, so right at u meets left from u - 3 to u + 2."""
    joined = S.join(T, "k", between=(-2, 3))
    assert joined.schema.names == ("k", "ts", "v", "ts_right", "v_right")
    assert said(joined, "[*, < 10, *, *, *]") == ["[< 10, *, *]", "[< 8, *, *]"]
    assert said(joined, "[*, >= 10, *, *, *]") == ["[>= 10, *, *]", "[>= 13, *, *]"]
    assert said(joined, "[*, *, *, < 10, *]") == ["[< 7, *, *]", "[< 10, *, *]"]
    assert said(joined, "[1, [10, 20), *, *, *]") == ["[[10, 20), 1, *]", "[[13, 18), 1, *]"]
    # One moment is less than the band is wide, and of other attributes the other side knows nothing.
    assert said(joined, "[*, 10, *, *, *]") == ["[10, *, *]", ""]
    assert said(joined, "[*, < 10, 5, *, *]") == ["[< 10, *, 5]", ""]


def test_times_of_both_sides_need_the_guard_behind_too() -> None:
    answer = told(S.join(T, "k", within=2), "[*, < 10, *, < 20, *]")
    assert [str(p) for p in answer.inputs] == ["[< 10, *, *]", "[< 8, *, *]"]
    assert answer.output and answer.purge and not answer.pinned


def test_times_of_outer_joins() -> None:
    left = S.join(T, "k", "left", between=(-2, 3))
    answer = told(left, "[*, < 10, *, *, *]")
    assert [str(p) for p in answer.inputs] == ["[< 10, *, *]", "[< 8, *, *]"]
    assert answer.pinned and not answer.output
    assert is_only_behind(told(left, "[*, *, *, < 10, *]"))
    assert said(S.join(T, "k", "anti", between=(-2, 3)), "[< 10, *, *]") == ["[< 10, *, *]", "[< 8, *, *]"]
    assert is_only_behind(told(S.join(T, "k", "full", within=2), "[*, < 10, *, *, *]"))


def test_open_bands() -> None:
    later = S.join(T, "k", between=(0, None))  # right at or after left
    assert said(later, "[*, >= 10, *, *, *]") == ["[>= 10, *, *]", ""]
    assert said(later, "[*, < 10, *, *, *]") == ["[< 10, *, *]", "[< 10, *, *]"]
    assert said(later, "[*, *, *, >= 10, *]") == ["[>= 10, *, *]", "[>= 10, *, *]"]
    # Whoever has a partner has one with a time.
    assert said(later, "[*, (,), *, *, *]") == ["[(, ), *, *]", "[(, ), *, *]"]


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
def test_joins_by_rows_let_go_of_whole_keys_only(how: str) -> None:
    joined = S.join(T, ["k", "v"], how, rows=2)
    rest = ", *" * (len(joined.schema) - 2)
    answer = told(joined, f"[1{rest}, *]" if joined.schema.names[0] == "k" else "[*, 1, *]")
    assert [" ".join(map(str, sent)) for sent in answer.send] == ["[*, 1, *]", "[*, 1, *]"]
    assert answer.purge and answer.pinned and not answer.output
    time = joined.schema.names.index("ts")
    texts: list[Any] = ["*"] * len(joined.schema)
    texts[time] = "< 10"
    assert is_only_behind(told(joined, f"[{', '.join(texts)}]"))


# --- many inputs -----------------------------------------------------------------------------------------------------


def test_many_inputs() -> None:
    third = stream("u", "ts int, k int, v int", "ts")
    joined = ps.join(S, T, third, on="k", strategy="mjoin")
    assert joined.schema.names == ("k", "ts", "v", "ts_2", "v_2", "ts_3", "v_3")
    assert said(joined, "[7, *, *, *, *, *, *]") == ["[*, 7, *]"] * 3
    assert said(joined, "[7, *, *, *, 5, *, *]") == ["", "[*, 7, 5]", ""]
    assert said(joined, "[*, *, *, < 9, 5, *, *]") == ["", "[< 9, *, 5]", ""]
    assert is_only_behind(told(joined, "[*, *, 5, *, 5, *, *]"))
    assert not told(joined, "[7, *, *, *, *, *, *]").pinned


def test_many_inputs_within_windows() -> None:
    third = stream("u", "ts int, k int, v int", "ts")
    joined = ps.join(S, T, third, on="k", windows=[1, 4, None], strategy="mjoin")
    # An event of T is at most 1 after one of S and at most 4 before it; one of U at most 1 after it.
    assert said(joined, "[*, < 20, *, *, *, *, *]") == ["[< 20, *, *]", "[< 16, *, *]", ""]
    assert said(joined, "[*, > 20, *, *, *, *, *]") == ["[> 20, *, *]", "[> 21, *, *]", "[> 21, *, *]"]
    # One of U may be any time before one of T, so for T its time is unknown; and it knows T's, 4 before it or later.
    assert said(joined, "[*, *, *, > 20, *, > 20, *]") == ["", "", "[> 24, *, *]"]


def test_without_a_window_times_tell_nothing_not_even_that_there_is_one() -> None:
    third = stream("u", "ts int, k int, v int", "ts")
    joined = ps.join(S, T, third, on="k", windows=[None, None, 2], strategy="mjoin")
    assert said(joined, "[*, (,), *, *, *, *, *]") == ["[(, ), *, *]", "", "[(, ), *, *]"]
