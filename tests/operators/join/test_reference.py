"""Joins of two streams against their definition: a loop over all pairs of all events."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripts import arrivals, bag, let_in, run, scripts, shown, stream

from penstock.builder.stream import StreamBuilder
from penstock.operators.join.operator import KINDS
from penstock.reference.item import events, punctuations

Row = dict[str, Any]
LEFT, RIGHT = "t int, k int, v int", "t int, k int, w int"
CUTS = st.none() | st.sets(st.integers(1, 20))


def belong(left: Row, right: Row, band: Any, where: str | None, null_safe: bool) -> bool:
    if left["k"] != right["k"] or (left["k"] is None and not null_safe):
        return False
    if band is not None:
        if left["t"] is None or right["t"] is None:
            return False
        low, high = band
        distance = right["t"] - left["t"]
        if (low is not None and distance < low) or (high is not None and distance > high):
            return False
    v, w = left["v"], right["w"]
    if where == "v > w":
        return v is not None and w is not None and v > w
    if where is not None:
        return right["t"] is None or (v is not None and w is not None and v + w == 4)
    return True


def answer(how: str, lefts: list[Row], rights: list[Row], pairs: list[tuple[int, int]]) -> list[Row]:
    """What a join of a kind makes of the pairs of positions that belong together."""
    lonely_left = [i for i in range(len(lefts)) if i not in [p[0] for p in pairs]]
    lonely_right = [j for j in range(len(rights)) if j not in [p[1] for p in pairs]]
    if how in ("semi", "anti"):
        return [a for i, a in enumerate(lefts) if (i in lonely_left) == (how == "anti")]
    nothing: Row = dict.fromkeys(["t", "k", "v", "w"])
    joined = [(lefts[i], rights[j]) for i, j in pairs]
    joined += [(lefts[i], nothing) for i in lonely_left if how in ("left", "full")]
    joined += [(nothing, rights[j]) for j in lonely_right if how in ("right", "full")]
    return [
        {"k": b["k"] if a is nothing else a["k"], "t": a["t"], "v": a["v"], "t_right": b["t"], "w": b["w"]}
        for a, b in joined
    ]


def sides(finite: bool) -> tuple[StreamBuilder, StreamBuilder]:
    if not finite:
        return stream("l", LEFT), stream("r", RIGHT)
    return stream("l", LEFT, k=(0, 1, 2)), stream("r", RIGHT, k=(0, 1, 2), w=(0, 1, 2, 3))


@given(
    left=scripts(LEFT, nulls=("t", "k", "v")),
    right=scripts(RIGHT, nulls=("t", "k", "w")),
    how=st.sampled_from(KINDS),
    band=st.sampled_from([None, (0, 0), (-1, 2), (-2, -1), (None, 1), (0, None), (1, 3)]),
    where=st.sampled_from([None, "v > w", "v + w = 4 or t_right is null"]),
    null_safe=st.booleans(),
    finite=st.booleans(),
    cut=CUTS,
)
@settings(max_examples=150)
def test_all_kinds_end_with_the_batch_answer(
    left: list[Any], right: list[Any], how: str, band: Any, where: str | None, null_safe: bool, finite: bool, cut: Any
) -> None:
    a, b = sides(finite)
    times = {"between": band, "times": ("t", "t")} if band is not None else {}
    declared = a.join(b, "k", how, where=where, **times).operator
    query = StreamBuilder(replace(declared, null_safe=null_safe))  # type: ignore[call-arg]
    result = run(query, {"l": left, "r": right}, ends=True, punctuate_at=cut, traced=False)
    lefts, rights = let_in(result, "l"), let_in(result, "r")
    pairs = [
        (i, j)
        for i, x in enumerate(lefts)
        for j, y in enumerate(rights)
        if belong(x, y, band, where, null_safe)
    ]  # fmt: skip
    assert bag(events(result.outputs)) == bag(answer(how, lefts, rights, pairs))
    assert result.states["join-1"] == []
    assert punctuations(result.outputs)[-1].restricted == ()
    # Without punctuation everything is held to the end, and nothing else comes of it.
    silent = run(query, {"l": lefts, "r": rights}, ends=True, punctuate_at=(), traced=False)
    assert bag(events(silent.outputs)) == bag(events(result.outputs))


@given(
    left=scripts(LEFT, nulls=("t", "k", "v")),
    right=scripts(RIGHT, nulls=("t", "k", "w")),
    how=st.sampled_from(KINDS),
    rows=st.tuples(*[st.none() | st.integers(1, 3)] * 2),
    finite=st.booleans(),
    cut=CUTS,
)
def test_windows_of_rows_end_with_the_batch_answer(
    left: list[Any], right: list[Any], how: str, rows: Any, finite: bool, cut: Any
) -> None:
    a, b = sides(finite)
    query = a.join(b, "k", how, rows=rows, times=("t", "t"), where="v is null or w is null or v != w")
    result = run(query, {"l": left, "r": right}, ends=True, punctuate_at=cut, traced=False)
    lefts, rights = let_in(result, "l"), let_in(result, "r")
    pairs: list[tuple[int, int]] = []
    for k in {x["k"] for x in lefts} - {None}:
        line = [
            (x["t"], side, [(v is None, v or 0) for v in x.values()], i)
            for side, events_ in ((0, lefts), (1, rights))
            for i, x in enumerate(events_)
            if x["k"] == k and x["t"] is not None
        ]
        line.sort()
        for place, (_, side, _, i) in enumerate(line):
            before = [entry[3] for entry in line[:place] if entry[1] != side]
            last = before if rows[1 - side] is None else before[-rows[1 - side] :]
            pairs += [(i, j) if side == 0 else (j, i) for j in last]
    pairs = [(i, j) for i, j in pairs if lefts[i]["v"] is None or lefts[i]["v"] != rights[j]["w"]]
    assert bag(events(result.outputs)) == bag(answer(how, lefts, rights, pairs))
    assert result.states["join-1"] == []
    assert punctuations(result.outputs)[-1].restricted == ()


#: Every value that random punctuations can tell apart, and times as far as a band reaches.
VALUES, TIMES = [None, *range(-1, 6)], [None, *range(-5, 10)]


@given(
    left=scripts(LEFT, nulls=("t", "k")),
    right=scripts(RIGHT, nulls=("t", "k")),
    how=st.sampled_from(KINDS),
    band=st.sampled_from([None, (-1, 2), (-2, -1), (None, 1), (1, 3)]),
)
def test_an_event_is_held_exactly_while_a_partner_could_come(
    left: list[Any], right: list[Any], how: str, band: Any
) -> None:
    a, b = sides(False)
    times = {"between": band, "times": ("t", "t")} if band is not None else {}
    result = run(a.join(b, "k", how, **times), {"l": left, "r": right}, traced=False)
    lefts, rights = let_in(result, "l"), let_in(result, "r")
    promised = {name: punctuations(result.streams[f"source:{name}"]) for name in ("l", "r")}

    def could_come(name: str, row: Row) -> bool:
        return not any(p.matches_row(row) for p in promised[name])

    def awaited(name: str, row: Row) -> bool:
        for t, value in product(TIMES, VALUES):
            other = {"t": t, "k": row["k"], "w" if name == "l" else "v": value}
            pair = (row, other) if name == "l" else (other, row)
            met = belong(*({"v": None, "w": None, **x} for x in pair), band, None, False)
            if met and could_come("r" if name == "l" else "l", other):
                return True
        return False

    settled = how in ("semi", "anti")
    pairs = [(i, j) for i, x in enumerate(lefts) for j, y in enumerate(rights) if belong(x, y, band, None, False)]
    alone = [x for i, x in enumerate(lefts) if not (settled and i in [p[0] for p in pairs])]
    expected = [x for x in alone if awaited("l", x)] + [x for x in rights if awaited("r", x)]
    assert bag([held.row for held in result.states["join-1"]]) == bag(expected)


@given(left=scripts(LEFT), right=scripts(RIGHT), rows=st.tuples(*[st.none() | st.integers(1, 2)] * 2))
@settings(max_examples=100)
def test_a_turn_comes_exactly_when_nothing_older_can(left: list[Any], right: list[Any], rows: Any) -> None:
    a, b = sides(False)
    query = a.join(b, "k", rows=rows, times=("t", "t"))
    result = run(query, {"l": left, "r": right}, traced=False)
    promised = {name: punctuations(result.streams[f"source:{name}"]) for name in ("l", "r")}

    def had_its_turn(row: Row) -> bool:
        older = (
            (name, {"t": t, "k": row["k"], value: x})
            for name, value in (("l", "v"), ("r", "w"))
            for t, x in product(range(-1, row["t"] + 1), VALUES)
        )
        return all(any(p.matches_row(o) for p in promised[name]) for name, o in older)

    settled = {name: [row for row in let_in(result, name) if had_its_turn(row)] for name in ("l", "r")}
    whole = run(query, {"l": settled["l"], "r": settled["r"]}, ends=True, punctuate_at=(), traced=False)
    assert bag(events(result.outputs)) == bag(events(whole.outputs))


@given(script=scripts(LEFT, nulls=("t", "k")), how=st.sampled_from(KINDS), cut=CUTS)
def test_a_stream_joined_with_itself(script: list[Any], how: str, cut: Any) -> None:
    source = stream("l", LEFT)
    query = source.join(source, "k", how, between=(0, 2), times=("t", "t"))
    result = run(query, {"l": script}, ends=True, punctuate_at=cut, traced=False)
    rows = [{**row, "w": row["v"]} for row in let_in(result, "l")]
    pairs = [(i, j) for i, x in enumerate(rows) for j, y in enumerate(rows) if belong(x, y, (0, 2), None, False)]
    expected = answer(how, let_in(result, "l") if how in ("semi", "anti") else rows, rows, pairs)
    assert bag(events(result.outputs)) == bag(expected)
    assert result.states["join-1"] == []


@given(left=scripts(LEFT, nulls=("k", "v")), right=scripts(LEFT, nulls=("k", "v")), cut=CUTS)
def test_intersect_and_difference_are_those_of_sets(left: list[Any], right: list[Any], cut: Any) -> None:
    a, b = stream("l", LEFT), stream("r", LEFT)
    both = run(a.intersect(b), {"l": left, "r": right}, ends=True, punctuate_at=cut, traced=False)
    only = run(a.difference(b), {"l": left, "r": right}, ends=True, punctuate_at=cut, traced=False)
    lefts, rights = ({tuple(row.values()) for row in let_in(both, name)} for name in ("l", "r"))
    assert bag(events(both.outputs)) == sorted(map(repr, lefts & rights))
    assert bag(events(only.outputs)) == sorted(map(repr, lefts - rights))
    assert all(held == [] for result in (both, only) for held in result.states.values())


def test_an_event_joined_with_itself_comes_once() -> None:
    source = stream("s", "k int, v string")
    query = source.join(source, "k")
    result = run(query, {"s": arrivals(source, (1, "a"), (1, "b"), (2, "c"), (None, "d"))})
    assert bag(events(result.outputs)) == sorted(
        map(repr, [(1, "a", "a"), (1, "a", "b"), (1, "b", "a"), (1, "b", "b"), (2, "c", "c")])
    )


def test_an_event_without_a_partner_leaves_when_none_can_come() -> None:
    left, right = stream("l", "k int, v int"), stream("r", "k int, w int")
    query = left.join(right, "k", "full")
    result = run(
        query,
        {
            "l": arrivals(left, (1, 10), (None, 11), (2, 12)),
            "r": arrivals(right, (2, 20), "[1, *]", "[2, 7]", "[2, *]"),
        },
        order=["l", "l", "l", "r", "r", "r", "r"],
    )
    # Of the keys nothing is promised yet: more left events may come, and leave alone. They have no w, though.
    assert shown(result.outputs) == [(None, 11, None), (2, 12, 20), (1, 10, None), "[2, *, 7]"]
    assert [str(held) for held in result.states["join-1"]] == ["input 1: k 2, w 20 (has had a partner)"]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("inner", ["[1, *, *]"]),
        ("left", ["[1, *, *]"]),
        ("semi", ["[1, *]"]),
        ("anti", ["[1, *]"]),
        # The right side may still bring an event with key 1, which leaves alone.
        ("right", []),
        ("full", []),
    ],
)
def test_a_promise_of_one_side(how: str, expected: list[str]) -> None:
    left, right = stream("l", "k int, v int"), stream("r", "k int, w int")
    result = run(left.join(right, "k", how), {"l": arrivals(left, "[1, *]")})
    assert shown(result.outputs) == expected
    both = run(left.join(right, "k", how), {"l": arrivals(left, "[1, *]"), "r": arrivals(right, "[{0, 1}, *]")})
    last = events(both.outputs) or shown(both.outputs)[-1]
    # Where right events count only as partners of left ones, or leave alone, they decide about 0 as well.
    assert last == {"anti": "[1, *]", "semi": "[{0, 1}, *]", "left": "[1, *, *]", "full": "[1, *, *]"}.get(
        how, "[{0, 1}, *, *]"
    )


def test_a_promise_on_another_attribute_waits_for_what_is_held() -> None:
    left, right = stream("l", "k int, v int"), stream("r", "k int, w int")
    sent = {"l": arrivals(left, (1, 5), "[*, 5]", "[*, 6]"), "r": arrivals(right, (1, 7), "[1, *]")}
    result = run(left.join(right, "k"), sent, order=["l", "l", "l", "r", "r"])
    assert shown(result.outputs) == ["[*, 6, *]", (1, 5, 7), "[*, 5, *]"]


def test_two_promises_release_together_what_none_does_alone() -> None:
    left, right = stream("l", "k int, v int"), stream("r", "k int, side string", side=("in", "out"))
    sent = {"l": arrivals(left, (1, 5)), "r": arrivals(right, "[1, 'in']", "[{1, 2}, 'out']")}
    result = run(left.join(right, "k", "left"), sent, order=["l", "r", "r"])
    assert shown(result.outputs) == ["[1, *, 'in']", (1, 5, None), "[{1, 2}, *, 'out']"]


def test_the_last_rows_are_counted_in_order_of_time() -> None:
    quote, trade = stream("quote", "ts int, sku string, price int"), stream("trade", "ts int, sku string, n int")
    query = trade.join(quote, "sku", "left", rows=1, times=("ts", "ts"))
    sent = {
        "quote": arrivals(quote, (4, "a", 14), (1, "a", 11), (2, "b", 12), "[<= 5, *, *]"),
        "trade": arrivals(trade, (3, "a", 1), (5, "a", 2), (1, "b", 3), (None, "a", 4), "[<= 3, *, *]", "[*, 'a', *]"),
    }
    order = ["quote"] * 3 + ["trade"] * 4 + ["quote", "trade", "trade"]
    result = run(query, sent, order=order)
    assert shown(result.outputs) == [
        ("a", None, 4, None, None),  # Without a time there is no last quote.
        ("b", 1, 3, 2, 12),  # The quote comes after the trade and joins it, the last one before.
        ("a", 3, 1, 1, 11),
        ("a", 3, 1, 4, 14),
        ("a", 5, 2, 4, 14),
        "['a', *, *, <= 5, *]",  # No trade of 'a' is left to meet these quotes.
    ]
    # Of 'a' more quotes may come and meet the last trade; of 'b' both sides may go on.
    assert sorted(str(held) for held in result.states["join-1"]) == [
        "input 0: ts 1, sku b, n 3 (has had a partner)",
        "input 0: ts 5, sku a, n 2 (has had a partner)",
        "input 1: ts 2, sku b, price 12 (has had a partner)",
    ]


def test_what_has_had_its_turn_stays_for_those_who_wait_for_theirs() -> None:
    left, right = stream("l", "t int, k int"), stream("r", "t int, k int")
    query = left.join(right, "k", rows=1, times=("t", "t"))
    sent = {"l": arrivals(left, (1, 7), "[<= 3, *]", "[<= 5, *]"), "r": arrivals(right, (5, 7), "[<= 3, *]", "[*, 7]")}
    result = run(query, sent, order=["l", "l", "r", "r", "r", "l"])
    # No other right event comes, but one is there: it waits for what the left may bring before it.
    assert (7, 1, 5) in shown(result.outputs)
    assert [str(held) for held in result.states["join-1"]] == ["input 1: t 5, k 7 (has had a partner)"]
