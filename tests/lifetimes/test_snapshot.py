"""What snapshot operators guarantee, on random streams, at every level, with every state and policy."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_streams import C_INFINITY, inserts, often, ordered_streams, perfect_streams, retractions, streams
from speculative.operator import feed
from speculative.snapshot import LEVELS, CtiPolicy, Emptiness, PerfectnessPreserving
from speculative.state import STATES

from penstock.reference.lifetimes.event import Cti, Insert, Retract, StreamEvent, Time
from penstock.reference.lifetimes.history import Converter, Table, coalesce, fold
from penstock.reference.lifetimes.oracle import COMBINE, endpoints, snapshot

every_level = pytest.mark.parametrize("level", LEVELS)
every_policy = pytest.mark.parametrize("policy", ["strict", "chop"])


def before(table: Table, t: Time) -> Table:
    """What a table says of the time before t."""
    return coalesce(Counter([(vs, min(ve, t), p) for vs, ve, p in table.elements() if vs < t]))


@often
@given(streams(), st.sampled_from(sorted(STATES)))
def test_valid_in_valid_out_and_the_table_is_the_definition_s(stream: list[StreamEvent], name: str) -> None:
    expected = snapshot(fold(stream), COMBINE[name])
    for level in LEVELS.values():
        assert fold(feed(level(STATES[name], cti="strict"), stream)) == expected
        assert coalesce(fold(feed(level(STATES[name], cti="chop"), stream))) == coalesce(expected)


@often
@given(streams(), st.sampled_from(["sum", "count", "max"]))
def test_gaps_are_results_where_that_is_wanted(stream: list[StreamEvent], name: str) -> None:
    table = fold(stream)
    expected = snapshot(table, COMBINE[name], zero=True)
    end, nothing = max(endpoints(table, zero=True)), set(COMBINE[name]([]))
    for level in LEVELS.values():
        assert fold(feed(level(STATES[name], cti="strict", empty="zero"), stream)) == expected
        chopped = fold(feed(level(STATES[name], cti="chop", empty="zero"), stream))
        assert before(chopped, end) == coalesce(expected)
        assert all(p in nothing for _, ve, p in chopped if ve > end)


@pytest.mark.parametrize("empty", ["skip", "zero"])
@every_policy
@often
@given(stream=streams(closed=False))
def test_what_is_final_is_right_whatever_comes(policy: CtiPolicy, empty: Emptiness, stream: list[StreamEvent]) -> None:
    """Progressive, in the strongest form: at each CTI said, all before it is as it will be in the end."""
    for level in LEVELS.values():
        engine, told = level(STATES["sum"], cti=policy, empty=empty), Converter()
        final = fold(feed(level(STATES["sum"], cti=policy, empty=empty), [*stream, C_INFINITY]))
        for event in stream:
            for said in engine.on(event):
                told.on(said)
            if isinstance(event, Cti):
                assert before(told.table, told.cti) == before(final, told.cti)
                assert policy == "strict" or told.cti == event.t


def restricted(stream: list[StreamEvent], t: Time) -> list[StreamEvent]:
    """The events with sync times before t. A chain may lose links in the middle: what is left is linked again."""
    ends: dict[object, Time] = {}
    found: list[StreamEvent] = []
    for event in stream:
        if isinstance(event, Cti) or event.sync >= t:
            continue
        if isinstance(event, Insert):
            ends[event.id] = event.ve
            found.append(event)
        else:
            found.append(Retract(event.vs, ends[event.id], event.vn, event.payload, event.id))
            ends[event.id] = event.vn
    return found


@often
@given(streams(ids=True), st.integers(0, 16))
def test_progressive(stream: list[StreamEvent], t: int) -> None:
    part = restricted(stream, t)
    expected = snapshot(fold(part), COMBINE["sum"])
    for level in LEVELS.values():
        assert fold(feed(level(STATES["sum"], cti="strict"), [*part, C_INFINITY])) == expected


@st.composite
def said_otherwise(draw: st.DrawFn) -> tuple[list[StreamEvent], list[StreamEvent]]:
    """Two streams of the same content: other order, and retractions in two steps."""
    stream = [e for e in draw(streams(ids=True)) if not isinstance(e, Cti)]
    chains: dict[object, list[StreamEvent]] = {}
    for event in stream:
        chain = chains.setdefault(event.id, [])
        if isinstance(event, Retract) and event.ve - event.vn > 1 and draw(st.booleans()):
            middle = event.vn + 1
            chain.append(Retract(event.vs, event.ve, middle, event.payload))
            event = Retract(event.vs, middle, event.vn, event.payload)
        chain.append(event)
    turns = draw(st.permutations([name for name, chain in chains.items() for _ in chain]))
    return [*stream, C_INFINITY], [*(chains[name].pop(0) for name in turns), C_INFINITY]


@often
@given(said_otherwise())
def test_the_order_of_events_does_not_matter(both: tuple[list[StreamEvent], list[StreamEvent]]) -> None:
    assert fold(both[0]) == fold(both[1])
    for level in LEVELS.values():
        one, other = (fold(feed(level(STATES["sum"], cti="strict"), stream)) for stream in both)
        assert one == other


@often
@given(streams(), st.data())
def test_cutting_lifetimes_in_pieces_changes_no_moment(stream: list[StreamEvent], data: st.DataObject) -> None:
    """View-update compliance."""
    table = fold(stream)
    pieces: list[StreamEvent] = []
    for vs, ve, payload in table.elements():
        middle = data.draw(st.integers(int(vs), int(min(ve, 20))))
        cuts = [vs, middle, ve] if vs < middle < ve else [vs, ve]
        pieces += [Insert(a, b, payload) for a, b in pairwise(cuts)]
    expected = coalesce(snapshot(table, COMBINE["sum"]))
    for level in LEVELS.values():
        assert coalesce(fold(feed(level(STATES["sum"]), [*pieces, C_INFINITY]))) == expected


@every_policy
@often
@given(stream=perfect_streams())
def test_perfect_in_perfect_out(policy: CtiPolicy, stream: list[StreamEvent]) -> None:
    said = feed(PerfectnessPreserving(STATES["sum"], cti=policy), stream)
    assert not retractions(said)
    assert [e.sync for e in said] == sorted(e.sync for e in said)


@often
@given(ordered_streams())
def test_ordered_in_ordered_out(stream: list[StreamEvent]) -> None:
    said = feed(LEVELS["OP"](STATES["sum"]), stream)
    assert [e.sync for e in said] == sorted(e.sync for e in said)


@often
@given(streams(), st.sampled_from(["sum", "top2"]))
def test_who_speaks_earlier_says_no_less(stream: list[StreamEvent], name: str) -> None:
    said = {key: feed(level(STATES[name], cti="strict"), stream) for key, level in LEVELS.items()}
    sizes = {key: len(inserts(s)) + len(retractions(s)) for key, s in said.items()}
    assert sizes["PP"] <= sizes["OP"] and sizes["PP"] <= sizes["ML"]


@every_policy
@often
@given(stream=streams())
def test_invariants_of_the_structures(policy: CtiPolicy, stream: list[StreamEvent]) -> None:
    engine = PerfectnessPreserving(STATES["rank"], cti=policy)
    taken, told = Converter(), Converter()
    for event in stream:
        tau = engine.tau
        taken.on(event)
        for said in engine.on(event):
            told.on(said)
        holding = list(taken.table.elements())
        assert all(ve <= engine.tau for _, ve, _ in told.table)
        # What is open, and nothing else, ends after the watermark; it is what the last boundary holds (B2).
        assert Counter((vs, ve, p) for ve, (vs, p) in engine.ecq) == Counter(h for h in holding if h[1] > engine.tau)
        last = engine.pos.items[-1]
        assert sorted(p for _, p in last.state.payloads()) == sorted(p for _, (_, p) in engine.ecq)
        assert last.holding == len(engine.ecq)
        # What is told between two boundaries is what the definition says of them (B1).
        for (begin, boundary), (end, _) in pairwise(engine.pos):
            now = [p for vs, ve, p in holding if vs <= begin and end <= ve]
            rows = Counter(p for vs, ve, p in told.table.elements() if (vs, ve) == (begin, end))
            assert rows == Counter(COMBINE["rank"](now)) == Counter(boundary.state.payloads())
        if isinstance(event, Insert):
            assert engine.tau == max(tau, event.vs)
        if isinstance(event, Cti):
            due = [time for time in endpoints(taken.table) if time <= event.t]
            least = max([tau, *due])
            assert engine.tau in ((least,) if policy == "strict" else (least, event.t))
            # Only the snapshot into which the CTI falls, and later ones, are kept (B3, B4).
            times = engine.pos.times
            assert all(after >= event.t for after in times[1:])
            assert event.t == 0 or times[0] < event.t


@every_level
@often
@given(stream=streams(closed=False))
def test_after_a_cti_only_what_lives_on_is_kept(level: str, stream: list[StreamEvent]) -> None:
    engine, taken = LEVELS[level](STATES["sum"], cti="strict"), Converter()
    for event in stream:
        taken.on(event)
        engine.on(event)
        if isinstance(event, Cti):
            assert {t for t, _ in engine.pos if t >= event.t} <= {t for t in endpoints(taken.table) if t >= event.t}
            assert len([t for t, _ in engine.pos if t < event.t]) <= 1
    engine.on(C_INFINITY)
    assert not engine.ecq and len([t for t, _ in engine.pos if t < math.inf]) <= 1


def long_stream(n: int, *, length: int, disorder: int, every: int) -> list[StreamEvent]:
    """Tuples of about this length, some corrected, late by up to so much, with a CTI from time to time."""
    rng = random.Random(n)
    arrivals: list[tuple[int, Insert, int]] = []
    for k in range(n):
        insert = Insert(k, k + rng.randint(1, 2 * length), rng.randint(0, 99))
        arrivals.append((k + rng.randint(0, disorder), insert, rng.choice([0, 0, 0, 0, 1])))
    stream: list[StreamEvent] = []
    for position, (_, insert, corrected) in enumerate(sorted(arrivals, key=lambda a: a[0])):
        stream.append(insert)
        if corrected:
            stream.append(Retract(insert.vs, insert.ve, (insert.vs + insert.ve) // 2, insert.payload))
        if position % every == every - 1:
            stream.append(Cti(max(0, position - disorder)))
    return [*stream, C_INFINITY]


@every_level
@pytest.mark.parametrize(("length", "every"), [(10, 20), (40, 10**9)])
def test_work_grows_as_input_and_output_do(level: str, length: int, every: int) -> None:
    """Steps by n log n + m: one constant for all n, with and without CTIs that let go of state."""
    ratios = []
    for n in (250, 1_000, 4_000):
        stream = long_stream(n, length=length, disorder=20, every=every)
        engine = LEVELS[level](STATES["sum"])
        said = feed(engine, stream)
        ratios.append(engine.steps / (len(stream) * math.log2(len(stream)) + len(said)))
    assert max(ratios) < 8
    assert ratios[-1] < 1.1 * ratios[0]


@every_level
def test_bounded_lifetimes_cost_the_same_for_ever(level: str) -> None:
    costs, kept = [], []
    for n in (500, 4_000):
        engine = LEVELS[level](STATES["sum"])
        sizes = []
        for event in long_stream(n, length=10, disorder=20, every=20):
            engine.on(event)
            sizes.append(len(engine.pos) + len(engine.ecq))
        costs.append(engine.steps / n)
        kept.append(max(sizes))
    assert costs[1] < 1.1 * costs[0]
    assert kept[1] < 1.5 * kept[0]
