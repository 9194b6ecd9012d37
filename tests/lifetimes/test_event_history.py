"""Notation, the canonical history table, weighted changes, classes of streams."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_streams import ordered_streams, perfect_streams, retractions, streams
from speculative.stream_class import (
    closed_at,
    closed_up_to,
    is_closed,
    is_ordered,
    is_perfect,
    is_valid,
)

from penstock.errors import UserError
from penstock.reference.lifetimes.event import InvalidStreamError, StreamEvent, events, parse
from penstock.reference.lifetimes.history import WeightedChange, changes, coalesce, fold, from_changes, net

G1 = "I(1,∞,P1) C(1) R(1,∞,10,P1) R(1,10,5,P1) I(4,9,P2) C(10)"


def test_g1_the_canonical_table() -> None:
    assert fold(events(G1)) == Counter({(1, 5, "P1"): 1, (4, 9, "P2"): 1})


@given(streams(ids=True))
def test_the_notation_can_be_read_back(stream: list[StreamEvent]) -> None:
    again = parse(" ".join(map(repr, stream)))
    assert again == stream
    assert list(map(repr, again)) == list(map(repr, stream))


def test_payloads_of_every_kind_can_be_read_back() -> None:
    text = "I(1,2,-3) I(1,2,2.5) I(1,2,P1) I(1,2,'12') I(1,2,(a,(1,b)))"
    assert [e.payload for e in events(text)] == [-3, 2.5, "P1", "12", ("a", (1, "b"))]
    assert " ".join(map(repr, events(text))) == text


@pytest.mark.parametrize("text", ["K(1,2)", "I(1,2,3", "R(1,2,3)", "C(1,2)", "nothing"])
def test_what_is_no_event_is_an_error_that_quotes_it(text: str) -> None:
    with pytest.raises(UserError, match=r"no event|not closed|takes"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("I(5,5,1)", "event 1, .*ends before it begins"),
        ("I(1,8,1) R(1,8,8,1)", "event 2, .*new end must be from 1 to before 8"),
        ("I(3,8,1) R(3,8,2,1)", "new end"),
        ("I(1,8,1) R(1,8,5,2)", "nothing that it takes back"),
        ("R(1,8,5,1) I(1,8,1)", "event 1, .*nothing that it takes back"),
        ("I(1,8,1) R(1,8,5,1) R(1,8,4,1)", "event 3"),
        ("C(4) I(3,8,1)", "sync time 3 is before the CTI 4"),
        ("I(1,8,1) C(4) R(1,8,3,1)", "sync time 3 is before the CTI 4"),
        ("C(4) C(3)", "before the CTI 4"),
    ],
)
def test_the_converter_refuses_invalid_streams(text: str, why: str) -> None:
    with pytest.raises(InvalidStreamError, match=why):
        fold(events(text))
    assert not is_valid(events(text))


def test_equal_tuples_are_a_bag() -> None:
    assert fold(events("I(1,8,1) I(1,8,1) R(1,8,5,1)")) == Counter({(1, 8, 1): 1, (1, 5, 1): 1})


@given(streams(), st.integers(0, 12))
def test_net_changes_say_the_same_as_events(stream: list[StreamEvent], cut: int) -> None:
    before, epoch = fold(stream[:cut]), net(changes(stream[cut:]))
    after = fold(stream)
    assert {(c.valid_from, c.valid_to, c.payload): c.weight for c in epoch} == {
        row: after[row] - before[row] for row in {*before, *after} if after[row] != before[row]
    }
    said = from_changes(epoch)
    assert fold([*from_changes(changes(stream[:cut])), *said]) == after
    assert net(changes(said)) == epoch
    assert len(said) <= len(stream[cut:])


def test_as_many_changes_as_can_be_are_one_retraction() -> None:
    changed = [WeightedChange("P", 1, end, weight) for end, weight in ((10, -1), (4, -1), (6, 1), (12, 1))]
    assert from_changes(changed) == events("R(1,4,1,P) I(1,12,P) R(1,10,6,P)")


@given(streams(), st.data())
def test_coalescing_keeps_every_moment_and_has_one_form(stream: list[StreamEvent], data: st.DataObject) -> None:
    table = fold(stream)
    cut = Counter[tuple[float, float, object]]()
    for (vs, ve, payload), n in table.items():
        middle = data.draw(st.integers(int(vs), int(min(ve, 30))))
        pieces = [(vs, middle), (middle, ve)] if vs < middle < ve else [(vs, ve)]
        for piece in pieces:
            cut[(*piece, payload)] += n
    assert coalesce(cut) == coalesce(table)
    for moment in range(30):
        then = Counter(p for vs, ve, p in table.elements() if vs <= moment < ve)
        assert then == Counter(p for vs, ve, p in coalesce(table).elements() if vs <= moment < ve)


@given(streams())
def test_classes_of_streams(stream: list[StreamEvent]) -> None:
    assert is_valid(stream) and is_closed(stream) and closed_at(stream, 99)
    assert is_perfect(stream) == (is_ordered(stream) and not retractions(stream))
    for n in range(len(stream)):  # Lemma 2, and 4: a prefix inherits, an extension stays closed.
        assert is_ordered(stream[:n]) or not is_ordered(stream)
        until = closed_up_to(stream[:n])
        assert until is None or closed_at(stream, until)


@given(ordered_streams())
def test_an_ordered_stream_shortens_each_tuple_once(stream: list[StreamEvent]) -> None:
    assert is_ordered(stream) and is_valid(stream)


@given(perfect_streams())
def test_perfect_streams(stream: list[StreamEvent]) -> None:
    assert is_perfect(stream) and is_valid(stream)


def test_closed() -> None:
    assert not is_closed(events("I(1,8,1) C(4) I(5,6,1)"))
    assert not is_closed(events("I(4,8,1) C(4)"))
    assert is_closed(events("I(3,8,1) C(4)")) and closed_up_to(events("C(2) I(3,8,1) C(4)")) == 4
    assert not closed_at(events("C(4)"), 5)
