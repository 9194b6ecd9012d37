"""Top and limit, event by event."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripts import arrivals, bag, let_in, run, scripts, shown, stream

from penstock.reference.item import events, punctuations

EVENT = "a int, b int, c int"


def test_the_best_of_each_group_when_it_is_complete() -> None:
    source = stream("s", "segment int, speed double")
    items = [(7, 40.0), (7, 60.0), (8, 10.0), (7, 50.0), "[7, *]", (8, None), (8, 5.0), (8, math.nan), "[*, < 1.0]"]
    result = run(source.top(2, by="speed desc", per="segment"), {"s": arrivals(source, *items)}, ends=True)
    assert shown(result.outputs) == [(7, 60.0), (7, 50.0), "[7, *]", (8, 10.0), (8, 5.0), "[*, *]"]
    # No more than two of a group are ever held.
    held = [len(step.state) for step in result.trace if step.kind == "top"]
    assert held == [1, 2, 3, 3, 1, 2, 2, 2, 2, 0]


def test_null_comes_last_and_not_a_number_before_it() -> None:
    source = stream("s", "x double, y int")
    sent = [{"x": x, "y": 0} for x in (None, 1.0, math.nan, -math.inf)]
    for order, expected in (("x", ["-inf", "1.0", "nan", "None"]), ("x desc", ["1.0", "-inf", "nan", "None"])):
        for count in (1, 2, 3, 4):
            found = run(source.top(count, by=order), {"s": sent}, ends=True).outputs
            assert [str(row["x"]) for row in events(found)] == expected[:count]


ORDERS = ("a desc", "b, a desc", "c", "c desc, b desc")
GROUPS: tuple[list[str], ...] = ([], ["a"], ["b", "c"], ["a", "b", "c"])


@given(
    script=scripts(EVENT, nulls=("a", "b"), size=14),
    by=st.sampled_from(ORDERS),
    per=st.sampled_from(GROUPS),
    count=st.integers(1, 3),
    finite=st.booleans(),
    cut=st.none() | st.sets(st.integers(1, 14)),
)
def test_by_definition(script: list[Any], by: str, per: list[str], count: int, finite: bool, cut: Any) -> None:
    source = stream("s", EVENT, **({"c": (0, 1, 2, 3, 4)} if finite else {}))
    result = run(source.top(count, by, per), {"s": script}, ends=True, punctuate_at=cut, traced=False)
    named = [(n.split()[0], n.endswith("desc")) for n in by.split(", ")]
    order = [*named, *((n, False) for n in ("a", "b", "c") if n not in [x for x, _ in named])]

    def place(row: dict[str, Any]) -> list[float]:
        return [math.inf if row[n] is None else -row[n] if down else row[n] for n, down in order]

    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in let_in(result, "s"):
        groups.setdefault(tuple(row[n] for n in per), []).append(row)
    expected = [row for group in groups.values() for row in sorted(group, key=place)[:count]]
    assert bag(events(result.outputs)) == bag(expected)
    assert result.states["top-1"] == []
    assert all(set(p.restricted) <= set(per) for p in punctuations(result.outputs))
    assert punctuations(result.outputs)[-1].restricted == ()


@pytest.mark.parametrize("ends", [False, True])
def test_a_limit_ends_the_stream(ends: bool) -> None:
    source = stream("s", "n int")
    items = [(1,), "[1]", (2,), (3,), "[2]", (4,)]
    result = run(source.limit(3), {"s": arrivals(source, *items)}, ends=ends)
    assert shown(result.outputs) == [(1,), "[1]", (2,), (3,), "[*]"]


def test_a_stream_that_ends_below_the_limit() -> None:
    source = stream("s", "n int")
    assert shown(run(source.limit(3), {"s": arrivals(source, (1,))}, ends=True).outputs) == [(1,), "[*]"]


def test_what_is_behind_a_limit_is_complete_with_it() -> None:
    source = stream("s", "k int, n int")
    query = source.limit(3).group_by("k").agg(n="count(*)")
    result = run(query, {"s": arrivals(source, (1, 1), (2, 1), (1, 1), (1, 1))})
    assert shown(result.outputs) == [(1, 2), (2, 1), "[*, *]"]
