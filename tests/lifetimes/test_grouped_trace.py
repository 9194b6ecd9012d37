"""A snapshot operator for each group, chains of operators, states, and what a trace shows."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_streams import ctis, often, streams
from speculative.alter_lifetime import window
from speculative.equijoin import Equijoin
from speculative.grouped import GroupApply
from speculative.operator import feed
from speculative.snapshot import LEVELS, CtiPolicy
from speculative.state import STATES
from speculative.trace import lines, trace

from penstock.errors import UserError
from penstock.reference.lifetimes.event import StreamEvent, events
from penstock.reference.lifetimes.history import Table, coalesce, fold
from penstock.reference.lifetimes.oracle import COMBINE, alter_lifetime, join, snapshot


def grouped_by_definition(table: Table, name: str) -> Table:
    found: Table = Counter()
    for key in {p % 2 for _, _, p in table}:
        part: Table = Counter({row: n for row, n in table.items() if row[2] % 2 == key})
        for (vs, ve, result), n in snapshot(part, COMBINE[name]).items():
            found[vs, ve, (key, result)] += n
    return found


def grouped(level: str, policy: CtiPolicy, name: str = "sum") -> GroupApply:
    return GroupApply(
        lambda: LEVELS[level](STATES[name], cti=policy), key=lambda payload: payload % 2, value=lambda payload: payload
    )


@often
@given(streams(), st.sampled_from(["sum", "top2"]))
def test_a_group_is_a_stream_of_its_own(stream: list[StreamEvent], name: str) -> None:
    expected = grouped_by_definition(fold(stream), name)
    for level in LEVELS:
        assert fold(feed(grouped(level, "strict", name), stream)) == expected
        chopped = feed(grouped(level, "chop", name), stream)
        assert coalesce(fold(chopped)) == coalesce(expected)
        assert ctis(chopped) == sorted({t for t in ctis(stream) if t > 0})


def test_groups_in_which_nothing_lives_are_let_go() -> None:
    for level in LEVELS:
        operator = grouped(level, "chop")
        feed(operator, events("I(1,3,1) I(1,9,2) C(2)"))
        assert operator.groups == [1, 0]
        feed(operator, events("C(6)"))
        assert operator.groups == [0]


def test_groups_have_no_results_in_gaps() -> None:
    with pytest.raises(UserError, match="before its first tuple"):
        GroupApply(lambda: LEVELS["PP"](STATES["sum"], empty="zero"), key=lambda p: p, value=lambda p: p)


@often
@given(streams(), streams())
def test_an_aggregate_over_a_join_over_an_aggregate(left: list[StreamEvent], right: list[StreamEvent]) -> None:
    """Chained as streams, equal to the chain of definitions: what is wrong early is repaired through all of them."""
    windows = alter_lifetime(fold(left), lambda vs: vs, lambda vs, ve: 6)
    joined = join(grouped_by_definition(windows, "count"), fold(right), lambda p, q: bool(p[0] == q % 2))
    expected = coalesce(snapshot(joined, COMBINE["max"]))
    for level in LEVELS:
        operator, inner = Equijoin(lambda p: p[0], lambda p: p % 2), list[StreamEvent]()
        for side, stream in ((1, right), (0, feed(grouped(level, "chop", "count"), feed(window(6), left)))):
            inner += [said for event in stream for said in operator.on(event, side)]
        assert coalesce(fold(feed(LEVELS[level](STATES["max"]), inner))) == expected


@pytest.mark.parametrize("name", STATES)
@given(moves=st.lists(st.tuples(st.booleans(), st.integers(-5, 5)), max_size=20), at=st.integers(0, 20))
def test_states_can_undo(name: str, moves: list[tuple[bool, int]], at: int) -> None:
    """Whatever went in and out, and whatever a copy did since."""
    state, held = STATES[name](), Counter[int]()
    for n, (out, payload) in enumerate(moves):
        if n == at:
            other = state.copy()
            other.add(4)
        if out and held[payload]:
            state.remove(payload)
            held[payload] -= 1
        else:
            state.add(payload)
            held[payload] += 1
        assert sorted(state.payloads()) == sorted(COMBINE[name](list(held.elements())))


def test_sums_of_floats_do_not_drift() -> None:
    rng, sums, means = random.Random(1), STATES["sum"](), STATES["avg"]()
    numbers = [rng.uniform(-1e12, 1e12) for _ in range(300)]
    for state in (sums, means):
        for number in [*numbers, 0.1, 0.2]:
            state.add(number)
        for number in numbers:
            state.remove(number)
    whole = sums.copy()
    for number in (0.1, 0.2, -7):
        (whole.add if number == -7 else whole.remove)(number)
    assert repr(whole.payloads()) == "[-7]"
    assert sums.payloads() == [0.30000000000000004] and means.payloads() == [0.15000000000000002]


def test_a_trace_shows_what_is_held() -> None:
    engine = LEVELS["PP"](STATES["sum"])
    third = list(trace(engine, events("I(1,10,5) I(4,8,3) I(2,6,2)")))[2]
    assert (third.tau, third.ecq) == (4, ((6, 2), (8, 3), (10, 5)))
    assert third.pos == ((float("-inf"), ()), (1, (5,)), (2, (7,)), (4, (10,)))
    assert list(third.said) == events("R(1,4,2,5) I(2,4,7)")
    assert list(lines(LEVELS["ML"](STATES["sum"]), events("I(1,10,5) C(∞)"))) == [
        "I(1,10,5) → I(1,10,5) (τ 10; POS −∞ nothing, 1: 5, 10 nothing; ECQ empty)",
        "C(∞) → C(∞) (τ 10; POS 10 nothing; ECQ empty)",
    ]
