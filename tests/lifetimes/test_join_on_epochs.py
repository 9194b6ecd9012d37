"""Joins of lifetimes by epochs and columns: what they guarantee, against the definition."""

from __future__ import annotations

from itertools import zip_longest

from hypothesis import given, settings
from hypothesis import strategies as st
from on_epochs import Bench, as_changes, cut, stays, told_at_once
from random_streams import streams

from penstock.reference.lifetimes.event import Cti, StreamEvent, Time, events
from penstock.reference.lifetimes.history import Converter, Table, fold, from_changes
from penstock.reference.lifetimes.oracle import join


def payload(row: dict[str, int]) -> tuple[int, int]:
    return row["v"], row["v_right"]


def run(bench: Bench, left: list[list[StreamEvent]], right: list[list[StreamEvent]]) -> list[StreamEvent]:
    found: list[StreamEvent] = []
    for epoch in zip_longest(left, right, fillvalue=[]):
        rows, said = bench.epoch(*epoch)
        found += [*from_changes(as_changes(rows, payload)), *(Cti(t) for t in said)]
    return found


@settings(max_examples=25)
@given(streams(), streams(), st.booleans(), st.sets(st.integers(0, 12)))
def test_any_cut_comes_to_the_definition_and_is_valid(
    left: list[StreamEvent], right: list[StreamEvent], residual: bool, cuts: set[int]
) -> None:
    query = stays("l").join(stays("r"), "k", where="v < v_right" if residual else None)
    bench = Bench(told_at_once(query), lambda value: abs(value) % 2)
    told = run(bench, cut(left, cuts), cut(right, cuts))

    def matches(one: int, other: int) -> bool:
        return abs(one) % 2 == abs(other) % 2 and (one < other or not residual)

    assert fold(told) == join(fold(left), fold(right), matches)  # Folding refuses what is invalid.
    assert not bench.live()


@settings(max_examples=40)
@given(streams(closed=False), streams(closed=False))
def test_what_is_final_of_both_is_final_and_what_has_ended_is_forgotten(
    left: list[StreamEvent], right: list[StreamEvent]
) -> None:
    bench, told = Bench(told_at_once(stays("l").join(stays("r"), "k"))), Converter()
    final = join(fold(left), fold(right), lambda one, other: True)
    reached: list[Time] = [0, 0]
    for epoch in zip_longest(cut(left, ()), cut(right, ()), fillvalue=[]):
        rows, said = bench.epoch(*epoch)
        for event in [*from_changes(as_changes(rows, payload)), *(Cti(t) for t in said)]:
            told.on(event)
        reached = [max([t, *(e.t for e in some if isinstance(e, Cti))]) for t, some in zip(reached, epoch, strict=True)]
        assert told.cti == min(reached)
        assert before(told.table, told.cti) == before(final, told.cti)
        for runs in bench.held:
            ends = [row["b"] for row in bench.live_of(runs)]
            assert all(end is None or end > min(reached) for end in ends)


def before(table: Table, t: Time) -> set[tuple[Time, Time, object]]:
    return {(vs, min(ve, t), p) for vs, ve, p in table if vs < t}


def test_the_worked_example_of_the_papers() -> None:
    """G2, an event an epoch."""
    bench = Bench(told_at_once(stays("l").join(stays("r"), "k")), lambda value: value)
    script = [
        *((0, "I(0,2,100)"), (0, "C(1)"), (0, "I(2,6,1)"), (1, "I(3,5,1)"), (1, "C(3)"), (0, "R(2,6,4,1)")),
    ]
    told = []
    for port, text in script:
        rows, said = bench.epoch(*(events(text) if port == side else [] for side in (0, 1)))
        told.append([*from_changes(as_changes(rows, payload)), *(Cti(t) for t in said)])
    assert told == [[], [], [], events("I(3,5,(1,1))"), events("C(1)"), events("R(3,5,4,(1,1))")]
    assert [row["a"] for row in bench.live()] == [
        0,
        2,
        3,
    ]  # The first may still be cut short.


def test_a_pair_whose_end_stays_is_not_told_again() -> None:
    bench = Bench(told_at_once(stays("l").join(stays("r"), "k")))
    bench.epoch(events("I(1,9,5)"), events("I(2,4,6)"))
    assert bench.epoch(events("R(1,9,6,5)"), [])[0] == []
