"""What joins promise before their inputs are over: nothing too early, and nothing later than need be."""

from __future__ import annotations

from typing import Any

import pytest
from backend import assert_grammatical, difference, on_kernels, on_reference
from case import Case, Cut, Feed
from hypothesis import given, settings
from join_cases import join_cases
from random_cases import cuts

SCHEMA = "ts int, k string, id int, n bigint"


def event(k: str, n: int, ts: int = 0) -> dict[str, Any]:
    return {"ts": ts, "k": k, "id": n, "n": n}


def feed(name: str, *items: Any) -> Feed:
    return Feed(name, tuple(("", item) for item in items), ".punctuated()", schema=SCHEMA)


#: A promise about something else than keys, which an event holds up whose key is ended by the other side only later.
HELD_UP = {
    "a value": ("s.join(t, 'k').group_by('n').agg(c='count(*)')", "[*, *, *, 1]"),
    "a value, before an outer join": ("s.join(t, 'k', 'left').group_by('n').agg(c='count(*)')", "[*, *, *, 1]"),
    "time without a window": ("s.join(t, 'k').group_by('ts').agg(c='count(*)')", "[< 1, *, *, *]"),
    "a window without an end": ("s.join(t, 'k', between=(0, None)).group_by('n').agg(c='count(*)')", "[*, *, *, 1]"),
}


@pytest.mark.parametrize("name", HELD_UP)
@pytest.mark.parametrize("max_rows", [1, 2, None])
def test_a_promise_goes_out_once_nothing_holds_it_up(name: str, max_rows: int | None) -> None:
    query, promise = HELD_UP[name]
    others = [event("b", 2, ts=5)] * 3
    s = feed("s", event("a", 1), promise, *others)
    t = feed("t", event("a", 5), event("c", 6), event("c", 7), "[*, 'a', *, *]", event("c", 8))
    case = Case(query, (s, t))
    found = on_kernels(case, Cut(max_rows=max_rows))
    assert len(found.rows) == 1
    assert difference(found.rows, on_reference(case).rows) == ([], [])


#: One side has ended a key, the other ends it right behind an event of it, and both alone or with others.
ENDS = [("[*, 'b', *, *]", "[*, <= 'c', *, *]"), ("[*, <= 'c', *, *]", "[*, 'b', *, *]"), ("[*, 'b', *, *]",) * 2]


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "anti"])
@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("swapped", [False, True])
def test_an_event_right_before_the_end_of_its_key_leaves_with_it(
    how: str, ends: tuple[str, str], swapped: bool
) -> None:
    names = ("t", "s") if swapped else ("s", "t")
    first = feed(names[0], ends[0], event("x", 0))
    second = feed(names[1], event("y", 1), event("y", 2), event("b", 3), ends[1])
    case = Case(f"s.join(t, 'k', {how!r})", (first, second) if names[0] == "s" else (second, first))
    found = on_kernels(case, Cut(max_rows=2, buckets=1))
    assert difference(found.rows, on_reference(case).rows) == ([], [])


@given(join_cases(ends=False), cuts())
@settings(max_examples=30)
def test_what_is_told_before_the_end_is_true(case: Case, cut: Cut) -> None:
    found = on_kernels(case, cut)
    assert_grammatical(found)
    early, _ = difference(found.rows, on_reference(case.ending()).rows)
    assert not early, f"not in the whole answer: {early}"
