"""Snapshots by epochs and columns: what they guarantee, against the definition, and event for event."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from on_epochs import Bench, as_events, cut, stays, told_at_once
from random_streams import streams
from speculative.snapshot import MinimumLatency
from speculative.state import STATES
from test_snapshot_golden import GOLDEN

import penstock as ps
from penstock.errors import UserError
from penstock.plan.weight import NEVER_CAME
from penstock.reference.lifetimes.event import Cti, StreamEvent, Time, events
from penstock.reference.lifetimes.history import Converter, Table, changes, coalesce, fold, from_changes
from penstock.reference.lifetimes.oracle import COMBINE, snapshot

#: By the name of a combination, the aggregate that computes it.
AGGREGATES = {
    "sum": "sum(v)",
    "count": "count(*)",
    "min": "min(v)",
    "max": "max(v)",
    "avg": "avg(v)",
    "count_distinct": "count(distinct v)",
}


def query(name: str, *, keys: bool = False) -> ps.Stream:
    snapshots = stays().snapshot()
    return (snapshots.group_by("k") if keys else snapshots).agg(x=AGGREGATES[name])


def run(bench: Bench, epochs: list[list[StreamEvent]], key: int | None = None) -> list[StreamEvent]:
    """All that is told, of one group or without groups."""
    found: list[StreamEvent] = []
    for epoch in epochs:
        rows, said = bench.epoch(epoch)
        found += as_events((r for r in rows if r.get("k") == key), said, lambda r: r["x"])
    return found


@settings(max_examples=25)
@given(streams(), st.sampled_from(sorted(AGGREGATES)), st.sets(st.integers(0, 12)))
def test_any_cut_comes_to_the_definition_and_is_valid(stream: list[StreamEvent], name: str, cuts: set[int]) -> None:
    expected = snapshot(fold(stream), COMBINE[name])
    bench = Bench(told_at_once(query(name)))
    told = run(bench, cut(stream, cuts))
    assert coalesce(fold(told)) == coalesce(expected)  # Folding refuses what is invalid.
    assert [e for e in told if isinstance(e, Cti)] == [e for e in stream if isinstance(e, Cti) and e.t > 0]
    assert not bench.live() and not bench.failed


def for_ever(table: Table, name: str) -> Table:
    """By definition: from the first start on what holds comes to, nothing to SQL's answer, and so it stays."""
    if not table:
        return table
    ends = sorted({at for start, end, _ in table for at in (start, end)} | {math.inf})
    found: Table = Counter()
    for begin, end in pairwise(ends):
        values = [v for start, stop, v in table.elements() if start <= begin and end <= stop]
        nothing = [0 if name.startswith("count") else None]
        found.update((begin, end, x) for x in (COMBINE[name](values) if values else nothing))
    return found


@settings(max_examples=60)
@given(streams(), st.sampled_from(sorted(AGGREGATES)), st.sets(st.integers(0, 12)), st.booleans())
def test_zeros_where_nothing_holds_at_any_cut(stream: list[StreamEvent], name: str, cuts: set[int], keys: bool) -> None:
    snapshots = stays().snapshot(empty="zero")
    made = (snapshots.group_by("k") if keys else snapshots).agg(x=AGGREGATES[name])
    bench = Bench(told_at_once(made), lambda payload: payload % 2)
    every = [bench.epoch(epoch) for epoch in cut(stream, cuts)]
    for key in (0, 1) if keys else (None,):
        mine: Table = Counter({row: n for row, n in fold(stream).items() if key is None or row[2] % 2 == key})
        ours = [([r for r in rows if r.get("k") == key], said) for rows, said in every]
        told = [e for rows, said in ours for e in as_events(rows, said, lambda r: r["x"])]
        assert coalesce(fold(told)) == coalesce(for_ever(mine, name))
    assert not bench.live()


@pytest.mark.parametrize(
    "text",
    [
        "I(1,5,100) I(4,9,200) I(11,12,300)",
        "I(1,∞,100) C(1) R(1,∞,10,100) R(1,10,5,100) I(4,9,200) C(10) I(11,12,300)",
    ],
)
def test_the_worked_examples_with_zeros(text: str) -> None:
    """G1 and G7: the gap and what follows the last end are told; before the first start there is no one to ask of."""
    bench = Bench(told_at_once(stays().snapshot(empty="zero").agg(x="sum(v)", n="count(*)")), lambda payload: 0)
    told: list[StreamEvent] = []
    for event in events(text):
        rows, said = bench.epoch([event])
        told += as_events(rows, said, lambda r: (r["x"], r["n"]))
    assert sorted(coalesce(fold(told)), key=str) == sorted(
        [
            (1, 4, (100, 1)),
            (4, 5, (300, 2)),
            (5, 9, (200, 1)),
            (9, 11, (None, 0)),
            (11, 12, (300, 1)),
            (12, math.inf, (None, 0)),
        ],
        key=str,
    )


@settings(max_examples=25)
@given(streams(), st.sets(st.integers(0, 12)))
def test_groups_do_not_meet(stream: list[StreamEvent], cuts: set[int]) -> None:
    table = fold(stream)
    bench = Bench(told_at_once(query("sum", keys=True)), lambda payload: payload % 2)
    epochs = cut(stream, cuts)
    every = [bench.epoch(epoch) for epoch in epochs]
    for key in (0, 1):
        mine: Table = Counter({row: n for row, n in table.items() if row[2] % 2 == key})
        ours = [([r for r in rows if r["k"] == key], said) for rows, said in every]
        told = [e for rows, said in ours for e in as_events(rows, said, lambda r: r["x"])]
        assert coalesce(fold(told)) == coalesce(snapshot(mine, COMBINE["sum"]))


@settings(max_examples=25)
@given(streams())
def test_an_event_an_epoch_is_told_as_at_minimum_latency(stream: list[StreamEvent]) -> None:
    bench, engine = Bench(told_at_once(query("sum"))), MinimumLatency(STATES["sum"])
    for event in stream:
        # A CTI that says nothing new is not passed on by the one, and by the behaviours of plans it is.
        answer = engine.on(event)
        if not isinstance(event, Cti) or answer:
            rows, said = bench.epoch([event])
            assert fold_net(as_events(rows, said, lambda r: r["x"])) == fold_net(answer)


def fold_net(said: list[StreamEvent]) -> Counter[Any]:
    """Retractions and inserts of one event as a bag; what is taken back and told again alike is nothing."""
    ctis = [e for e in said if isinstance(e, Cti)]
    return Counter([*from_changes(changes(e for e in said if not isinstance(e, Cti))), *ctis])


@pytest.mark.parametrize("text", GOLDEN)
def test_the_worked_examples(text: str) -> None:
    stream = events(text)
    bench = Bench(told_at_once(query("sum")), lambda payload: 0)
    told = []
    for number, event in enumerate(stream):
        rows, said = bench.epoch([event])
        told.append(as_events(rows, said, lambda r: r["x"]))
        if (golden := GOLDEN[text].get(("ML", "chop"))) is not None:
            assert fold_net(told[-1]) == fold_net(events(golden[number]))
    closing = bench.epoch([Cti(math.inf)])
    assert not closing[0]
    assert coalesce(fold(e for some in told for e in some)) == coalesce(snapshot(fold(stream), COMBINE["sum"]))


@settings(max_examples=25)
@given(streams(closed=False), st.sets(st.integers(0, 12)))
def test_what_is_final_is_right_and_what_has_ended_is_forgotten(stream: list[StreamEvent], cuts: set[int]) -> None:
    """Progressive: at each CTI all before it is as the definition has it. Memory: only what holds then is kept."""
    final = coalesce(snapshot(fold(stream), COMBINE["count"]))
    bench, told = Bench(told_at_once(query("count"))), Converter()
    cti: Time = 0
    for epoch in cut(stream, cuts):
        rows, said = bench.epoch(epoch)
        for event in as_events(rows, said, lambda r: r["x"]):
            told.on(event)
        cti = max([cti, *said])
        assert before(told.table, cti) == before(final, cti)
        if not isinstance(epoch[-1], Cti):
            continue  # What is shortened to end at the CTI before leaves with the next one.
        held = [row for row in bench.live() if "a" in row]
        assert all(row["b"] is None or row["b"] > cti for row in held)
        marks = [row for row in bench.live() if "a" not in row]
        assert sum(row["__at"] <= cti for row in marks) <= 1
        assert not marks or held


def before(table: Table, t: Time) -> Table:
    """What a table says of the time before t."""
    return coalesce(Counter([(vs, min(ve, t), p) for vs, ve, p in table.elements() if vs < t]))


@settings(max_examples=25)
@given(streams(), st.randoms(use_true_random=False))
def test_the_order_within_an_epoch_is_no_matter(stream: list[StreamEvent], random: Any) -> None:
    """A retraction may come before what it takes back, as long as both come before they are final."""
    shuffled = [e for e in stream if not isinstance(e, Cti)]
    random.shuffle(shuffled)
    bench = Bench(told_at_once(query("sum")))
    half = len(shuffled) // 2
    told = run(bench, [e for e in (shuffled[:half], shuffled[half:], [Cti(math.inf)]) if e])
    # Not folded as events: what a retraction says that comes early is shortened and grows again.
    assert coalesce(fold(told)) == coalesce(snapshot(fold(stream), COMBINE["sum"]))


def test_a_retraction_whose_insert_never_comes_is_a_dead_letter() -> None:
    bench = Bench(told_at_once(query("sum")))
    assert bench.epoch(events("R(1,9,1,5) R(2,∞,2,7) I(3,6,1)"))[0] != []
    bench.epoch(events("C(4)"))
    assert [row["v"] for row in bench.failed] == [7]  # That began before 4, and nothing is shortened to no end.
    bench.epoch(events("C(9)"))
    assert [row["v"] for row in bench.failed] == [7]
    bench.epoch(events("C(10)"))
    assert [row["v"] for row in bench.failed] == [7, 5]
    assert NEVER_CAME and not bench.live()


def test_what_a_cti_has_passed_is_not_joined_with_what_comes_after() -> None:
    """The boundary at 4 outlives its row: without it [1, 4) would have to be told anew, from before the CTI."""
    stream = events("I(1,10,5) I(4,8,3) I(12,15,4) C(2) R(4,8,4,3) C(∞)")
    told = run(Bench(told_at_once(query("sum"))), [[event] for event in stream])
    assert fold(told) == fold(events("I(1,4,5) I(4,10,5) I(12,15,4)"))


def test_groups_with_zeros_are_never_forgotten_and_the_one_of_all_is_bounded() -> None:
    def state(*keys: str) -> str:
        stream = ps.stream("s", "k int, v int, a int, b int", lifetime=("a", "b")).read_json("in").disorder(2)
        snapshots = stream.snapshot(empty="zero")
        made = (snapshots.group_by(*keys) if keys else snapshots).agg(n="count(*)")
        return made.at(ps.Consistency.middle()).check().findings[-1].state

    assert (state(), state("k")) == ("bounded", "unbounded")


def test_zero_and_skip_are_all_there_is() -> None:
    with pytest.raises(UserError, match="snapshot\\(empty='none'\\)"):
        stays().snapshot(empty="none")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        # All that began after what is final goes again: the group has been seen all the same.
        "I(1,5,7) C(5) I(9,12,7) R(9,12,9,7) I(10,11,7) C(∞)",
        # A zero that began before what is final must not grow.
        "I(1,5,7) C(8) I(9,12,7) R(9,12,9,7) C(∞)",
        # The first row was never there, so nothing was.
        "I(1,5,7) I(3,6,7) R(1,5,1,7) R(3,6,3,7) C(∞)",
        # Final over and over: where the last zero began is still known.
        "I(1,5,7) C(6) I(9,12,7) C(13) C(15) I(20,21,7) C(∞)",
    ],
)
@pytest.mark.parametrize("key", [None, 1])
def test_zeros_outlive_their_rows(text: str, key: int | None) -> None:
    snapshots = stays().snapshot(empty="zero")
    bench = Bench(told_at_once((snapshots.group_by("k") if key else snapshots).agg(x="sum(v)")), lambda payload: 1)
    told = run(bench, [[event] for event in events(text)], key)
    assert coalesce(fold(told)) == coalesce(for_ever(fold(events(text)), "sum"))
