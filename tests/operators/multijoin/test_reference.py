"""The join of many inputs against its definition, and against binary joins."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from scripts import arrivals, bag, let_in, run, scripts, shown, stream

from penstock.builder.stream import StreamBuilder
from penstock.operators.join.operator import Taken
from penstock.operators.multijoin.operator import MultiJoin
from penstock.pattern.schema import Attribute, Schema
from penstock.reference.item import events, punctuations

EVENT = "t int, k int, v int"
Row = dict[str, Any]


def multijoin(*inputs: StreamBuilder, windows: tuple[int | None, ...]) -> StreamBuilder:
    """All inputs on `k`, with their times and values numbered."""
    columns = [Taken("k", ((0, "k"),))]
    for i, _ in enumerate(inputs):
        columns += [Taken(f"t{i}", ((i, "t"),)), Taken(f"v{i}", ((i, "v"),))]
    attributes = tuple(Attribute(c.name, inputs[c.origins[0][0]].schema.type_of(c.origins[0][1])) for c in columns)
    return StreamBuilder(
        MultiJoin(
            tuple(s.operator for s in inputs),
            Schema(attributes),
            keys=(("k",),) * len(inputs),
            columns=tuple(columns),
            times=("t",) * len(inputs),
            windows=windows,
        )
    )


def belong(windows: tuple[int | None, ...], i: int, x: Row, j: int, y: Row) -> bool:
    if x["k"] is None or x["k"] != y["k"]:
        return False
    if windows[i] is None and windows[j] is None:
        return True
    if x["t"] is None or y["t"] is None:
        return False
    window = windows[i] if x["t"] <= y["t"] else windows[j]
    return window is None or abs(x["t"] - y["t"]) <= window


def all_combinations(inputs: list[list[Row]], windows: tuple[int | None, ...]) -> list[Row]:
    out = []
    for chosen in product(*inputs):
        if all(belong(windows, i, chosen[i], j, chosen[j]) for i, j in combinations(range(len(chosen)), 2)):
            values = [value for row in chosen for value in (row["t"], row["v"])]
            out.append(dict(enumerate([chosen[0]["k"], *values])))
    return out


@given(
    sent=st.lists(scripts(EVENT, nulls=("t", "k"), size=8), min_size=3, max_size=3),
    windows=st.tuples(*[st.none() | st.integers(0, 3)] * 3),
    finite=st.booleans(),
    cut=st.none() | st.sets(st.integers(1, 24)),
)
def test_the_end_is_the_batch_answer(sent: list[list[Any]], windows: Any, finite: bool, cut: Any) -> None:
    few: dict[str, Any] = {"v": (0, 1, 2, 3, 4)} if finite else {}
    streams = [stream(name, EVENT, **few) for name in "abc"]
    query = multijoin(*streams, windows=windows)
    result = run(query, dict(zip("abc", sent)), ends=True, punctuate_at=cut, traced=False)
    expected = all_combinations([let_in(result, name) for name in "abc"], windows)
    assert bag(events(result.outputs)) == bag(expected)
    assert result.states["multijoin-1"] == []
    assert punctuations(result.outputs)[-1].restricted == ()


@given(
    sent=st.lists(scripts(EVENT, nulls=("t",), size=8), min_size=3, max_size=3),
    windows=st.tuples(*[st.none() | st.integers(0, 3)] * 3),
)
def test_an_event_is_held_exactly_while_another_could_belong_to_it(sent: list[list[Any]], windows: Any) -> None:
    query = multijoin(*(stream(name, EVENT) for name in "abc"), windows=windows)
    result = run(query, dict(zip("abc", sent)), traced=False)
    promised = [punctuations(result.streams[f"source:{name}"]) for name in "abc"]
    times, values = [None, *range(-4, 9)], [None, *range(-1, 6)]

    def awaited(i: int, row: Row) -> bool:
        found = False
        for j in {0, 1, 2} - {i}:
            others = [{"t": t, "k": row["k"], "v": v} for t in times for v in values]
            fitting = [o for o in others if belong(windows, i, row, j, o)]
            if not fitting:
                return False
            found = found or any(not any(p.matches_row(o) for p in promised[j]) for o in fitting)
        return found

    expected = [row for i, name in enumerate("abc") for row in let_in(result, name) if awaited(i, row)]
    assert bag([held.row for held in result.states["multijoin-1"]]) == bag(expected)


def test_an_event_waits_until_all_others_have_let_it_down() -> None:
    a, b, c = (stream(name, EVENT) for name in "abc")
    query = multijoin(a, b, c, windows=(5, 5, 5))
    sent = {
        "a": arrivals(a, (10, 1, 0)),
        "b": arrivals(b, (12, 1, 1), "[<= 15, *, *]"),
        "c": arrivals(c, (14, 1, 2), (15, 1, 3), "[*, 1, *]"),
    }
    order = ["a", "b", "b", "c", "c", "c"]
    result = run(query, sent, order=order)
    assert shown(result.outputs) == [(1, 10, 0, 12, 1, 14, 2), (1, 10, 0, 12, 1, 15, 3)]
    # Neither b nor c has another one for the event of a. For the others, a itself may bring one.
    assert [str(held) for held in result.states["multijoin-1"]] == [
        "input 1: t 12, k 1, v 1",
        "input 2: t 14, k 1, v 2",
        "input 2: t 15, k 1, v 3",
    ]
    sent["a"] += arrivals(a, "[<= 17, *, *]")
    later = run(query, sent, order=[*order, "a"])
    assert [str(held) for held in later.states["multijoin-1"]] == [
        "input 2: t 14, k 1, v 2",
        "input 2: t 15, k 1, v 3",
    ]
    sent["b"] += arrivals(b, "[*, 1, *]")
    sent["a"] += arrivals(a, "[*, 1, *]")
    last = run(query, sent, order=[*order, "a", "b", "a"])
    assert last.states["multijoin-1"] == []
    frontiers = ["[*, *, *, <= 15, *, *, *]", "[*, <= 17, *, *, *, *, *]"]
    assert shown(last.outputs)[2:] == [*frontiers, "[1, *, *, *, *, *, *]"]


def test_each_input_waits_by_its_own_window() -> None:
    a, b = stream("a", EVENT), stream("b", EVENT)
    query = multijoin(a, b, windows=(1, 4))
    sent = {"a": arrivals(a, (10, 1, 0), "[<= 9, *, *]"), "b": arrivals(b, (6, 1, 1), (5, 1, 2), "[>= 7, *, *]")}
    result = run(query, sent, order=["a", "a", "b", "b", "b"])
    assert [row for row in shown(result.outputs) if isinstance(row, tuple)] == [(1, 10, 0, 6, 1)]
    # What a brings at 10 is within 4 of the event of b at 6. The event of a waits for one of b at 6, as old as can be.
    assert [str(held) for held in result.states["multijoin-1"]] == ["input 0: t 10, k 1, v 0", "input 1: t 6, k 1, v 1"]
