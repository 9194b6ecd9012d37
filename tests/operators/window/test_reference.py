"""Windows and their punctuation, against plain enumeration of a small domain."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.builder.stream import StreamBuilder
from penstock.errors import FailingError
from penstock.operators.source.operator import Source
from penstock.operators.window import operator as operators
from penstock.operators.window.reference import BucketReference, Times, complete_landmarks, complete_windows
from penstock.pattern.restriction import NOTHING, Restriction, at_least, at_most, between, equal, greater, less, one_of
from penstock.pattern.schema import Schema
from penstock.plan.window import TimeWindow, Window
from penstock.reference.item import Event, events

DOMAIN = range(-80, 81)
values = st.integers(-20, 20)
restrictions: st.SearchStrategy[Restriction] = st.one_of(
    *(values.map(make) for make in (less, at_most, greater, at_least, equal)),
    st.builds(between, values, values, st.booleans(), st.booleans()),
    st.lists(values, min_size=1, max_size=8).map(one_of),
).filter(lambda r: r != NOTHING)
windows = st.builds(
    lambda size, slide, origin, grain: Window.sliding(size * grain, slide, origin=origin, granularity=grain),
    st.integers(1, 5), st.integers(1, 7), st.integers(-9, 9), st.integers(1, 3),
)  # fmt: skip


def is_complete(start: int, size: int, grain: int, given_: list[Restriction]) -> bool:
    return all(any(r.matches(t) for r in given_) for t in range(start, start + size) if t % grain == 0)


@given(window=windows, given_=st.lists(restrictions, min_size=1, max_size=4))
@settings(max_examples=400, deadline=None)
def test_complete_windows_are_those_all_of_whose_possible_events_match(
    window: TimeWindow, given_: list[Restriction]
) -> None:
    complete = complete_windows(window, given_, Times(window.granularity))
    said = window.closed_by(*given_)
    for start in DOMAIN:
        if (start - window.origin) % window.slide == 0:
            expected = is_complete(start, window.size, window.granularity, given_)
            assert any(c.matches(start) for c in complete) == expected
            assert any(c.matches(start) for c in said) == expected


@given(
    every=st.integers(1, 6),
    origin=st.integers(-5, 5),
    grain=st.integers(1, 3),
    given_=st.lists(restrictions, max_size=4),
)
@settings(max_examples=300, deadline=None)
def test_complete_landmarks(every: int, origin: int, grain: int, given_: list[Restriction]) -> None:
    window = Window.landmark(every, origin=origin, granularity=grain)
    complete = complete_landmarks(window, given_, Times(grain))
    first_possible = -(-origin // grain) * grain
    for end in range(origin + every, 60, every):
        if end <= first_possible:
            continue  # A window in which no event is possible is as good as closed and as good as open.
        expected = is_complete(origin, end - origin, grain, given_)
        assert (complete is not None and complete.matches(end)) == expected


@given(window=windows, tick=st.integers(-30, 30))
@settings(max_examples=200, deadline=None)
def test_windows_of_an_event(window: TimeWindow, tick: int) -> None:
    operator = StreamBuilder(Source((), Schema.parse("ts int", "ts"), name="s")).window(window).operator
    assert isinstance(operator, operators.Bucket)
    if tick % window.granularity:
        with pytest.raises(FailingError, match="off the grid"):
            BucketReference(operator).on_event(Event({"ts": tick}))
        return
    found = [e["window_start"] for e in events(BucketReference(operator).on_event(Event({"ts": tick})))]
    lattice = [s for s in DOMAIN if (s - window.origin) % window.slide == 0]
    assert found == [s for s in lattice if s <= tick < s + window.size]
