"""Order: a sorted prefix as soon as punctuation completes it; with slack, a buffer that sorts as well as it can."""

from __future__ import annotations

import math
from typing import Any, cast

import pytest
from disorder import disorder
from hypothesis import given
from hypothesis import strategies as st
from scripts import arrivals, bag, let_in, run, scripts, shown, stream

from penstock.operators.order_by.operator import OrderBy
from penstock.operators.order_by.punctuation import OrderBehaviour
from penstock.pattern.pattern import Pattern
from penstock.reference.item import events, punctuations

DISORDERED = [1, 2, 3, 5, 4, 6, 7, 9, 10, 8]


def test_the_disorder_of_a_sequence() -> None:
    found = disorder(DISORDERED)
    assert (found.places, found.band, found.distance) == (2, 2, 2)
    assert disorder([1, 1, 2]) == disorder([]) == disorder([7])


@pytest.mark.parametrize(
    ("slack", "expected"),
    [
        (0, DISORDERED),
        (1, [1, 2, 3, 4, 5, 6, 7, 9, 8, 10]),
        (2, sorted(DISORDERED)),
    ],
)
def test_bsort(slack: int, expected: list[int]) -> None:
    numbers = stream("s", "n int")
    result = run(numbers.order_by("n", slack=slack), {"s": arrivals(numbers, *((n,) for n in DISORDERED))}, ends=True)
    assert [row["n"] for row in events(result.outputs)] == expected
    # Full, it gives up one for each that comes; the rest leaves at the end.
    holding = [len(step.state) for step in result.trace if step.kind == "orderby"]
    assert holding == [min(i, slack) for i in range(1, 11)] + [0]


@given(values=st.lists(st.integers(0, 9), max_size=12), extra=st.integers(0, 2))
def test_bsort_sorts_whatever_its_slack_allows(values: list[int], extra: int) -> None:
    numbers = stream("s", "n int, place int")
    sent = arrivals(numbers, *((n, place) for place, n in enumerate(values)))
    slack = disorder(values).overtaken + extra
    result = run(numbers.order_by("n", slack=slack), {"s": sent}, ends=True, traced=False)
    assert shown(result.outputs)[:-1] == sorted((n, place) for place, n in enumerate(values))
    tight = run(numbers.order_by("n", slack=max(0, slack - extra - 1)), {"s": sent}, ends=True, traced=False)
    assert bag(events(tight.outputs)) == bag(events(result.outputs))


EVENT = "a int, b int, c int"
ORDERS = [("a",), ("a desc",), ("a", "b desc"), ("b desc", "a", "c desc"), ("c", "a")]


@given(
    script=scripts(EVENT, nulls=("a", "b"), size=14),
    by=st.sampled_from(ORDERS),
    finite=st.booleans(),
    cut=st.none() | st.sets(st.integers(1, 14)),
)
def test_the_output_is_sorted_and_complete(script: list[Any], by: tuple[str, ...], finite: bool, cut: Any) -> None:
    source = stream("s", EVENT, **({"b": (0, 1, 2, 3)} if finite else {}))
    result = run(source.order_by(*by), {"s": script}, ends=True, punctuate_at=cut, traced=False)

    def place(row: dict[str, Any]) -> list[float]:
        names = [(n.split()[0], -1 if n.endswith("desc") else 1) for n in by]
        return [math.inf if row[n] is None else sign * row[n] for n, sign in names]

    assert events(result.outputs) == sorted(let_in(result, "s"), key=place)
    assert result.states["orderby-1"] == []
    assert punctuations(result.outputs)[-1].restricted == ()


@given(script=scripts(EVENT, nulls=("a",), size=12), by=st.sampled_from(ORDERS))
def test_nothing_is_held_that_could_leave(script: list[Any], by: tuple[str, ...]) -> None:
    """An event is held exactly while some event that is not behind it could be let in: try all there are."""
    source = stream("s", EVENT)
    result = run(source.order_by(*by), {"s": script}, traced=False)
    promised = punctuations(result.streams["source:s"])
    # Every value that the punctuations can tell apart, null included.
    domain: list[Any] = [None, *range(-1, 6)]

    def place(row: dict[str, Any]) -> list[float]:
        names = [(n.split()[0], -1 if n.endswith("desc") else 1) for n in by]
        return [math.inf if row[n] is None else sign * row[n] for n, sign in names]

    def possible(limit: list[float]) -> bool:
        rows = ({"a": a, "b": b, "c": c} for a in domain for b in domain for c in domain)
        return any(place(r) <= limit and not any(p.matches_row(r) for p in promised) for r in rows)

    held = [e.row for e in result.states["orderby-1"]]
    assert all(possible(place(dict(row))) for row in held)


def test_a_prefix_by_two_attributes() -> None:
    source = stream("s", "hour int, sensor int, v int")
    sent = arrivals(source, (1, 4, 10), (2, 1, 11), (1, 2, 12), "[< 1, *, *]", "[1, <= 3, *]", "[1, *, *]")
    result = run(source.order_by("hour", "sensor"), {"s": sent})
    assert shown(result.outputs) == ["[< 1, *, *]", (1, 2, 12), "[1, <= 3, *]", (1, 4, 10), "[1, *, *]"]
    assert [str(held) for held in result.states["orderby-1"]] == ["hour 2, sensor 1, v 11"]


def test_descending_order_completes_from_above_and_nulls_come_last() -> None:
    source = stream("s", "n int")
    sent = arrivals(source, (1,), (None,), (5,), (3,), "[>= 3]", "[< 3]")
    result = run(source.order_by("n desc"), {"s": sent})
    assert shown(result.outputs) == [(5,), (3,), "[>= 3]", (1,), "[< 3]"]
    assert shown(run(source.order_by("n desc"), {"s": sent}, ends=True).outputs)[-2:] == [(None,), "[*]"]


def test_not_a_number_comes_behind_all_numbers_either_way() -> None:
    source = stream("s", "x double")
    sent = [{"x": x} for x in (1.0, math.nan, None, math.inf)]
    up = run(source.order_by("x"), {"s": [*sent, Pattern.parse("[<= 7]", source.schema)]}, ends=True)
    assert [str(row["x"]) for row in events(up.outputs)] == ["1.0", "inf", "nan", "None"]
    sent = [*sent, Pattern.parse("[>= 0]", source.schema)]
    down = run(source.order_by("x desc"), {"s": sent})
    assert [str(row["x"]) for row in events(down.outputs)] == ["inf", "1.0"]
    down = run(source.order_by("x desc"), {"s": sent}, ends=True)
    assert [str(row["x"]) for row in events(down.outputs)] == ["inf", "1.0", "nan", "None"]


def test_with_slack_only_the_end_passes() -> None:
    """What is sorted approximately promises nothing but the end; the engine says as little."""
    numbers = stream("s", "n int", n=(1, 2, 3))
    sent = arrivals(numbers, (2,), (1,), "[1]", (3,), "[2]", "[3]")
    query = numbers.order_by("n", slack=1)
    behaviour = OrderBehaviour(cast(OrderBy, query.operator))
    for item in (i for i in sent if isinstance(i, Pattern)):
        assert behaviour.receive([(item,)]) == ()
    assert shown(run(query, {"s": sent}).outputs) == [(1,), (2,)]
    assert shown(run(query, {"s": sent}, ends=True).outputs) == [(1,), (2,), (3,), "[*]"]
