"""Align: it waits, and changes nothing of what is said in the end."""

from __future__ import annotations

import random
from collections import Counter
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_streams import C_INFINITY, ctis, inserts, often, retractions, streams
from speculative.align import Aligner, Schedule, at_once, behind, never
from speculative.operator import feed
from speculative.snapshot import LEVELS
from speculative.state import STATES
from speculative.stream_class import is_ordered, is_perfect

from penstock.errors import UserError
from penstock.reference.lifetimes.event import Cti, Insert, StreamEvent, events
from penstock.reference.lifetimes.history import Converter, fold
from penstock.reference.lifetimes.oracle import COMBINE, snapshot

Mode = Literal["final", "sync"]
every_mode = pytest.mark.parametrize("mode", ["final", "sync"])


def schedules(lag: int) -> dict[str, Schedule]:
    return {"never": never, "behind": behind(lag), "at once": at_once}


@every_mode
@often
@given(stream=streams(), lag=st.integers(0, 12))
def test_it_is_transparent(mode: Mode, stream: list[StreamEvent], lag: int) -> None:
    for schedule in schedules(lag).values():
        operator = Aligner(mode, schedule)
        said = feed(operator, stream)
        assert fold(said) == fold(stream)
        assert len(retractions(said)) <= len(retractions(stream))
        assert not operator.blocked


@often
@given(streams())
def test_waiting_until_all_is_final_gives_perfect_output(stream: list[StreamEvent]) -> None:
    operator = Aligner("final", never)
    said: list[StreamEvent] = []
    for event in stream:
        fresh = operator.on(event)
        assert isinstance(event, Cti) or not fresh  # Ultra and strong operators speak at CTIs alone.
        said += fresh
        if isinstance(event, Cti):
            assert max((e.ve for e in inserts(said)), default=0) <= event.t
    assert is_perfect(said)


@often
@given(streams())
def test_waiting_until_all_is_due_gives_ordered_output(stream: list[StreamEvent]) -> None:
    operator = Aligner("sync", never)
    said: list[StreamEvent] = []
    for event in stream:
        fresh = operator.on(event)
        assert isinstance(event, Cti) or not fresh
        said += fresh
    assert is_ordered(said)
    assert ctis(said) == sorted({t for t in ctis(stream) if t > 0})


@often
@given(streams())
def test_not_waiting_passes_everything_at_once(stream: list[StreamEvent]) -> None:
    operator = Aligner("sync", at_once)
    assert [s for event in stream for s in operator.on(event) if not isinstance(s, Cti)] == [
        e for e in stream if not isinstance(e, Cti)
    ]


@every_mode
@often
@given(stream=streams(), lag=st.integers(0, 12))
def test_any_wait_comes_to_one_table(mode: Mode, stream: list[StreamEvent], lag: int) -> None:
    """Convergence: any block time, any level, as long as nothing is forgotten."""
    expected = snapshot(fold(stream), COMBINE["sum"])
    for schedule in schedules(lag).values():
        aligned = feed(Aligner(mode, schedule), stream)
        for level in LEVELS.values():
            assert fold(feed(level(STATES["sum"], cti="strict"), aligned)) == expected


@every_mode
@often
@given(stream=streams(), lag=st.integers(0, 12))
def test_what_is_out_has_its_retractions_pass_at_once(mode: Mode, stream: list[StreamEvent], lag: int) -> None:
    """Unless a CTI let it go before its time, which only `sync` does."""
    operator, told, taken = Aligner(mode, behind(lag)), Converter(), Converter()
    let_go = False
    for event in stream:
        taken.on(event)
        for said in operator.on(event):
            told.on(said)
        let_go |= isinstance(event, Cti)
        if mode == "final" or not let_go:
            waiting = Counter((e.vs, e.ve, e.payload) for _, e in operator._inserts)
            assert told.table + waiting == taken.table
            assert len(operator._inserts) == operator.blocked


def test_longer_waits_take_less_back() -> None:
    """On disordered data, as a whole; a single stream may differ."""
    rng = random.Random(1)
    late = sorted((Insert(k, k + 10, 1) for k in range(400)), key=lambda e: e.vs + rng.randint(0, 19))
    taken_back = []
    for lag in (0, 5, 10, 20):
        engine = LEVELS["PP"](STATES["count"])
        said = feed(engine, feed(Aligner("sync", behind(lag)), [*late, C_INFINITY]))
        taken_back.append(len(retractions(said)))
    assert taken_back == sorted(taken_back, reverse=True)
    assert taken_back[0] > 100 and taken_back[-1] == 0


def test_retractions_that_wait_become_one() -> None:
    said = feed(Aligner("sync", never), events("I(4,9,2) C(5) R(4,9,8,2) R(4,8,7,2) R(4,7,6,2) C(∞)"))
    assert said == events("I(4,9,2) C(5) R(4,9,6,2) C(∞)")


def test_defect_13_what_is_taken_back_altogether_is_not_said() -> None:
    for mode in ("final", "sync"):
        assert feed(Aligner(mode, never), events("I(8,10,7) R(8,10,8,7) C(∞)")) == events("C(∞)")


def test_defect_14_what_a_cti_lets_go_is_in_order() -> None:
    for mode in ("final", "sync"):
        assert feed(Aligner(mode, never), events("I(5,6,9) I(4,8,2) C(∞)")) == events("I(4,8,2) I(5,6,9) C(∞)")


def test_a_full_block_holds_time_zero_back_too() -> None:
    assert feed(Aligner("final", never), events("I(0,5,1)")) == []
    assert feed(Aligner("final", lambda event: 0), events("I(0,5,1) I(1,5,1)")) == events("I(0,5,1)")


def test_an_output_time_that_falls_is_an_error() -> None:
    times = iter([5, 4])
    with pytest.raises(UserError, match="output time falls from 5 to 4"):
        feed(Aligner("final", lambda event: next(times)), events("I(0,5,1) I(1,5,1)"))
