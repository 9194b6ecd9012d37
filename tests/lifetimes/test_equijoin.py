"""Equijoin on lifetimes: the worked example, and what it guarantees on random streams."""

from __future__ import annotations

import math
import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from random_streams import C_INFINITY, ctis, often, streams
from speculative.equijoin import Equijoin, enumerate_sides
from speculative.filter import Filter
from speculative.operator import feed

from penstock.reference.lifetimes.event import Cti, Insert, Retract, StreamEvent, events
from penstock.reference.lifetimes.history import Converter, coalesce, fold
from penstock.reference.lifetimes.oracle import join, select


def same(payload: object) -> object:
    return payload


def test_g2() -> None:
    """The CTI purges A0; what is kept afterwards is what can still meet something."""
    operator = Equijoin(same, same)
    text = "S1 I(0,2,A0) S1 C(1) S1 I(2,6,A1) S2 I(3,5,A1) S2 C(3) S1 R(2,6,4,A1)"
    said = [s for side, event in enumerate_sides(text) for s in operator.on(event, side)]
    assert said == events("I(3,5,(A1,A1)) C(1) R(3,5,4,(A1,A1))")
    assert operator.kept == ([(2, 4, "A1")], [(3, 5, "A1")])
    assert fold(said) == Counter({(3, 4, ("A1", "A1")): 1})


def test_defect_12_what_is_taken_back_altogether_meets_nothing() -> None:
    operator = Equijoin(same, same)
    said = [
        s
        for side, event in enumerate_sides("S2 I(10,12,A) S1 I(9,14,A) S2 R(10,12,10,A) S1 R(9,14,9,A)")
        for s in operator.on(event, side)
    ]
    assert said == events("I(10,12,(A,A)) R(10,12,10,(A,A))")
    assert operator.kept == ([], [])


def test_nothing_is_equal_to_nothing() -> None:
    operator = Equijoin(same, same)
    for payload in (None, (1, None)):
        assert operator.on(Insert(1, 5, payload), 0) == operator.on(Insert(1, 5, payload), 1) == []
    assert operator.kept == ([], [])


@st.composite
def two_inputs(draw: st.DrawFn) -> list[tuple[int, StreamEvent]]:
    """Two valid streams, shuffled into each other."""
    sides = [draw(streams()), draw(streams())]
    turns = draw(st.permutations([0] * len(sides[0]) + [1] * len(sides[1])))
    return [(side, sides[side].pop(0)) for side in turns]


def odd(payload: int) -> int:
    return payload % 2


def close(left: int, right: int) -> bool:
    return left <= right


@often
@given(two_inputs())
def test_the_definition_holds_and_nothing_is_left(arrivals: list[tuple[int, StreamEvent]]) -> None:
    """With a residual; CTIs are the smaller of the two; what was said before a CTI stays."""
    operator, told = Equijoin(odd, odd, close), Converter()
    expected = join(
        *(fold(e for s, e in arrivals if s == side) for side in (0, 1)),
        lambda left, right: odd(left) == odd(right) and close(left, right),
    )
    seen = [0.0, 0.0]
    for side, event in arrivals:
        said = operator.on(event, side)
        for each in said:
            told.on(each)
        if isinstance(event, Cti):
            seen[side] = event.t
            assert ctis(said) in ([], [min(seen)]) and told.cti == min(seen)
    assert told.table == expected
    assert operator.kept == ([], [])


@often
@given(two_inputs(), st.randoms(use_true_random=False))
def test_the_order_between_the_inputs_does_not_matter(
    arrivals: list[tuple[int, StreamEvent]], rng: random.Random
) -> None:
    tables = []
    for _ in range(2):
        operator = Equijoin(odd, odd)
        tables.append(fold(s for side, event in arrivals for s in operator.on(event, side)))
        queues = [[e for s, e in arrivals if s == side] for side in (0, 1)]
        turns = [side for side, _ in arrivals]
        rng.shuffle(turns)
        arrivals = [(side, queues[side].pop(0)) for side in turns]
    assert tables[0] == tables[1]


@often
@given(two_inputs(), st.data())
def test_cutting_lifetimes_in_pieces_changes_no_moment(
    arrivals: list[tuple[int, StreamEvent]], data: st.DataObject
) -> None:
    tables = [fold(e for s, e in arrivals if s == side) for side in (0, 1)]
    operator = Equijoin(odd, odd)
    said: list[StreamEvent] = []
    for side, table in enumerate(tables):
        for vs, ve, payload in table.elements():
            middle = data.draw(st.integers(int(vs), int(min(ve, 20))))
            for a, b in [(vs, middle), (middle, ve)] if vs < middle < ve else [(vs, ve)]:
                said += operator.on(Insert(a, b, payload), side)
    assert coalesce(fold(said)) == coalesce(join(*tables, lambda left, right: odd(left) == odd(right)))


def test_work_grows_as_input_and_output_do() -> None:
    """Long and short lifetimes, one key: only an index keeps the short ones from asking all the others."""
    ratios = []
    for n in (250, 1_000, 4_000):
        rng = random.Random(n)
        operator, said, heard = Equijoin(lambda p: 0, lambda p: 0, lambda left, right: left == right), 0, 0
        for k in range(n):
            insert = Insert(k, math.inf if k % (n // 5) == 0 else k + rng.randint(1, 8), k % 3)
            for side in (0, 1):
                said += len(operator.on(insert, side))
                heard += 1
            if insert.ve < math.inf and rng.random() < 0.2:
                said += len(operator.on(Retract(insert.vs, insert.ve, insert.vs, insert.payload), 0))
                heard += 1
        ratios.append(operator.steps / (heard * math.log2(heard) + said))
        assert operator.on(C_INFINITY, 0) == [] and operator.on(C_INFINITY, 1) == [C_INFINITY]
        assert operator.kept == ([], [])
    assert max(ratios) < 12
    assert ratios[-1] < 1.3 * ratios[0]


@often
@given(streams())
def test_select(stream: list[StreamEvent]) -> None:
    said = feed(Filter(lambda p: p > 0), stream)
    assert fold(said) == select(fold(stream), lambda p: p > 0)
    assert ctis(said) == ctis(stream)
