"""Distinct: each event once, and no longer remembered than it could come again."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from scripts import arrivals, let_in, run, scripts, shown, stream

from penstock.reference.item import events

EVENT = "a int, b int"


@given(script=scripts(EVENT, nulls=("a", "b"), size=14), cut=st.none() | st.sets(st.integers(1, 14)))
def test_the_end_is_a_set(script: list[Any], cut: Any) -> None:
    result = run(stream("s", EVENT).distinct(), {"s": script}, ends=True, punctuate_at=cut, traced=False)
    sent = [tuple(row.values()) for row in let_in(result, "s")]
    assert [tuple(row.values()) for row in events(result.outputs)] == list(dict.fromkeys(sent))
    assert result.states["distinct-1"] == []


def test_an_event_is_forgotten_when_it_cannot_come_again() -> None:
    source = stream("s", EVENT)
    sent = arrivals(source, (1, None), (1, None), (2, 5), "[1, *]", (2, 5), (2, 6), "[*, 5]")
    result = run(source.distinct(), {"s": sent})
    assert shown(result.outputs) == [(1, None), (2, 5), "[1, *]", (2, 6), "[*, 5]"]
    assert [str(held) for held in result.states["distinct-1"]] == ["a 2, b 6"]


def test_not_a_number_is_like_itself() -> None:
    source = stream("s", "x double")
    result = run(source.distinct(), {"s": [{"x": x} for x in (float("nan"), 0.0, float("nan"), -0.0)]})
    assert len(events(result.outputs)) == 2
