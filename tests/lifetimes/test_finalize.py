"""Finalize: any order becomes a valid stream; what is closed too early is dropped, and no more than that."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_streams import ctis, disordered, inserts, often
from speculative.align import behind
from speculative.finalize import Finalize
from speculative.operator import feed

from penstock.errors import UserError
from penstock.reference.lifetimes.event import (
    INFINITY,
    Cti,
    ExternalCti,
    Insert,
    InvalidStreamError,
    Retract,
    SourceEvent,
    StreamEvent,
    events,
    parse,
)
from penstock.reference.lifetimes.history import Converter, Table, fold

G3 = "R(0,10,8,P0) R(0,6,4,P0) R(0,8,6,P0) I(0,10,P0) {} I(1,5,P1)"
by_both = pytest.mark.parametrize("matching", ["id", "value"])


@by_both
@pytest.mark.parametrize(("counted", "cti"), [("X(0,8,4)", "C(8)"), ("X(0,9,5)", "C(9)"), ("X(0,8,5)", "")])
def test_g3(matching: str, counted: str, cti: str) -> None:
    """The literature counts the event at 8 inside of [0, 8); by its own definition it is outside."""
    finalize = Finalize(matching=matching)  # type: ignore[arg-type]
    assert feed(finalize, parse(G3.format(counted))) == events("I(0,4,P0) I(1,5,P1) " + cti)


#: Defects of the literature's listing, and what the streams that show them come to.
DEFECTS = {
    "15: a tuple that began long ago can still be shortened": (
        "I(7,13,1) X(9,∞,1) X(0,9,1) R(7,13,11,1)",
        "I(7,11,1)",
    ),
    "16: a stretch is closed when all before it are": ("I(10,∞,2) X(8,∞,1) X(0,8,1) I(1,6,1)", "I(10,∞,2) I(1,6,1)"),
    "17: what has no lifetime is not said": ("R(4,9,4,1) I(4,9,1) X(0,∞,2)", ""),
    "18: an event counts where it was, not where its chain ends": (
        "R(4,5,4,1) X(5,∞,1) R(4,10,5,1) I(4,9,2) X(0,5,3) I(4,10,1)",
        "I(4,9,2)",
    ),
}


@by_both
@pytest.mark.parametrize("defect", DEFECTS)
def test_defects_of_the_literature(defect: str, matching: str) -> None:
    text, expected = DEFECTS[defect]
    finalize = Finalize(matching=matching)  # type: ignore[arg-type]
    said = feed(finalize, parse(text))
    assert fold(said) == fold(events(expected))
    assert said[-1] == Cti(INFINITY) and not finalize.dropped and not finalize.size


def test_defect_19_a_chain_without_its_middle_link_needs_an_id() -> None:
    text = "X(0,4,2) X(10,∞,0) X(4,10,1) R(3,5,3,1) I(3,8,1) R(3,8,5,1)"
    assert not fold(feed(Finalize(), parse(text)))
    assert fold(feed(Finalize(matching="value"), parse(text))) == fold(events("I(3,5,1)"))


@often
@given(disordered())
def test_any_order_becomes_a_valid_stream_of_the_same_content(
    case: tuple[list[StreamEvent], list[SourceEvent]],
) -> None:
    source, arrivals = case
    finalize = Finalize()
    said = feed(finalize, arrivals)
    assert fold(said) == fold(source)
    assert said[-1] == Cti(INFINITY)
    assert not finalize.dropped and not finalize.size


@often
@given(disordered())
def test_ctis_come_as_early_as_they_are_known(case: tuple[list[StreamEvent], list[SourceEvent]]) -> None:
    """After each event: the end of all stretches, from 0 on, that are counted and complete."""
    _, arrivals = case
    finalize = Finalize()
    for n, event in enumerate(arrivals, 1):
        told = ctis(finalize.on(event))
        here = arrivals[:n]
        known = 0.0
        for x in sorted((e for e in here if isinstance(e, ExternalCti)), key=lambda x: x.vs):
            inside = sum(x.vs <= e.sync < x.ve for e in here if not isinstance(e, ExternalCti))
            if x.vs == known and inside == x.count:
                known = x.ve
        assert finalize.cti == known
        assert told == sorted(set(told))


@often
@given(disordered())
def test_no_event_waits(case: tuple[list[StreamEvent], list[SourceEvent]]) -> None:
    """What is told is always all that follows from the events that are here."""
    _, arrivals = case
    finalize, told = Finalize(), Converter()
    ends: dict[object, float] = {}
    here: dict[object, Insert] = {}
    for event in arrivals:
        for said in finalize.on(event):
            told.on(said)
        if isinstance(event, Insert | Retract):
            ends[event.id] = min(ends.get(event.id, INFINITY), event.ve if isinstance(event, Insert) else event.vn)
        if isinstance(event, Insert):
            here[event.id] = event
        expected = [Insert(e.vs, ends[e.id], e.payload) for e in here.values() if ends[e.id] > e.vs]
        assert told.table == fold(expected)


@st.composite
def unique(draw: st.DrawFn) -> list[SourceEvent]:
    """Disordered, with chains in order, no ids, and no tuple twice: what matching by value must get right."""
    source, arrivals = draw(disordered())
    turns = {id: [e for e in source if isinstance(e, Insert | Retract) and e.id == id] for id in _ids(source)}
    payloads = {id: n for n, id in enumerate(turns)}
    found: list[SourceEvent] = []
    for event in arrivals:
        if isinstance(event, ExternalCti):
            found.append(event)
        elif isinstance(event, Insert | Retract):
            found.append(_renamed(turns[event.id].pop(0), payloads[event.id]))
    return found


def _ids(stream: list[StreamEvent]) -> list[object]:
    return [e.id for e in stream if isinstance(e, Insert)]


def _renamed(event: Insert | Retract, payload: int) -> StreamEvent:
    if isinstance(event, Insert):
        return Insert(event.vs, event.ve, payload)
    return Retract(event.vs, event.ve, event.vn, payload)


@by_both
@often
@given(arrivals=unique())
def test_chains_that_come_in_order_need_no_id(matching: str, arrivals: list[SourceEvent]) -> None:
    finalize = Finalize(matching=matching)  # type: ignore[arg-type]
    assert fold(feed(finalize, arrivals)) == fold(e for e in arrivals if not isinstance(e, ExternalCti))
    assert not finalize.size


@pytest.mark.parametrize("late", ["drop", "clip"])
@often
@given(case=disordered(), lag=st.integers(0, 14))
def test_what_comes_after_its_time_is_lost_and_nothing_else(
    late: str, case: tuple[list[StreamEvent], list[SourceEvent]], lag: int
) -> None:
    _, arrivals = case
    finalize, told = Finalize(behind(lag), late=late), Converter()  # type: ignore[arg-type]
    in_time: dict[object, list[Insert | Retract]] = {}
    lost: list[Retract] = []
    dropped = 0
    for event in arrivals:
        before = finalize.cti
        for said in finalize.on(event):
            told.on(said)
        if isinstance(event, Insert | Retract):
            if event.sync >= before:
                in_time.setdefault(event.id, []).append(event)
            else:
                dropped += 1
                lost += [event] if isinstance(event, Retract) else []
    expected: list[StreamEvent] = []
    for chain in in_time.values():
        end = min(e.ve if isinstance(e, Insert) else e.vn for e in chain)
        expected += [Insert(e.vs, end, e.payload) for e in inserts(chain) if end > e.vs]
    if late == "drop":
        assert told.table == fold(expected)
        assert finalize.dropped == dropped and not finalize.clipped
    else:
        # Nearer to the truth than without: never longer than what dropping leaves, and clipped where a CTI was.
        assert finalize.dropped + finalize.clipped == dropped
        assert finalize.clipped <= len(lost)
        assert _length(told.table) <= _length(fold(expected))


def _length(table: Table) -> float:
    return sum(min(ve, 99) - vs for vs, ve, _ in table.elements())


def test_a_clipped_retraction_ends_its_tuple_at_the_cti() -> None:
    stream = parse("I(1,30,5) I(20,25,6) R(1,30,2,5) R(1,30,2,5)")
    finalize = Finalize(behind(10), late="clip")
    assert fold(feed(finalize, stream)) == fold(events("I(1,10,5) I(20,25,6)"))
    assert (finalize.clipped, finalize.dropped) == (1, 1)
    by_value = Finalize(behind(10), late="clip", matching="value")
    assert fold(feed(by_value, stream)) == fold(events("I(1,10,5) I(20,25,6)"))


@by_both
def test_memory_is_bounded_by_patience(matching: str) -> None:
    peaks = []
    for n in (500, 4_000):
        rng = random.Random(n)
        finalize, peak = Finalize(behind(30), matching=matching), 0  # type: ignore[arg-type]
        arrivals = [(k + rng.randint(0, 20), k) for k in range(n)]
        for _, k in sorted(arrivals):
            finalize.on(Insert(k, k + 10, k))
            if k % 3 == 0:
                finalize.on(Retract(k, k + 10, k + 5, k))
            if k % 5 == 0:
                finalize.on(Retract(k, k + 9, k + 8, -1))  # Its insert never comes.
            peak = max(peak, finalize.size)
        peaks.append(peak)
        assert not finalize.dropped
    assert peaks[1] < 1.2 * peaks[0]


@by_both
def test_a_pending_stretch_is_not_closed_in_part(matching: str) -> None:
    finalize = Finalize(behind(0), matching=matching)  # type: ignore[arg-type]
    assert feed(finalize, parse("X(4,12,3) I(8,9,1)")) == parse("I(8,9,1) C(4)")
    assert feed(finalize, parse("I(5,6,1) I(6,7,1)")) == parse("I(5,6,1) I(6,7,1) C(12)")


def test_the_next_stretch_closes_as_soon_as_patience_has_closed_the_gap_before() -> None:
    finalize = Finalize(behind(0))
    assert feed(finalize, parse("X(4,8,1) I(5,6,1)")) == parse("I(5,6,1) C(4) C(8)")


def test_a_count_that_comes_after_its_time_holds_nothing_up() -> None:
    """How many events there were before the CTI is forgotten: the stretch could never be complete."""
    said = feed(Finalize(behind(2)), parse("I(1,9,1) I(6,9,1) X(0,8,3) I(7,9,1) I(20,21,1)"))
    assert said == parse("I(1,9,1) I(6,9,1) C(4) I(7,9,1) C(5) I(20,21,1) C(18)")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("X(0,8,1) X(4,12,1)", r"X\(4,12,1\).*overlaps"),
        ("X(4,12,1) X(0,5,1)", "overlaps"),
        ("X(4,4,0)", "empty"),
        ("X(4,8,1) I(5,6,1) I(6,7,1)", r"I\(6,7,1\).*number 2 of \[4, 8\), where 1 were counted"),
        ("X(8,∞,0) I(1,2,1) I(2,3,1) X(0,8,1)", "2 events have come"),
        ("I(5,5,1)", "ends before it begins"),
        ("I(5,8,1) R(5,8,8,1)", r"R\(5,8,8,1\).*ends before it begins"),
        ("I(1,5,1) I(1,5,1)", "an id of its own"),
    ],
)
def test_what_no_source_may_say(text: str, why: str) -> None:
    with pytest.raises(InvalidStreamError, match=why):
        feed(Finalize(), parse(text))


def test_equal_tuples_by_value_are_a_bag() -> None:
    said = feed(Finalize(matching="value"), parse("I(1,8,1) I(1,8,1) R(1,8,5,1) X(0,∞,3)"))
    assert fold(said) == fold(events("I(1,8,1) I(1,5,1)"))


def test_a_finalize_time_that_falls_is_an_error() -> None:
    times = iter([5, 4])
    with pytest.raises(UserError, match="finalize time falls from 5 to 4"):
        feed(Finalize(lambda event: next(times)), parse("I(7,8,1) I(8,9,1)"))


def test_ctis_of_a_source_are_taken_at_their_word() -> None:
    said = feed(Finalize(), parse("I(1,8,1) C(4) R(1,8,5,1) C(9)"))
    assert said == parse("I(1,8,1) C(4) R(1,8,5,1) C(9)")
