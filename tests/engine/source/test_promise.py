"""The verdict on an event depends on the events before it, never on how the stream is cut."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.source import Batch, Checker, Known, PromiseState, Split, assign, plan_known, plan_tasks
from penstock.engine.source.promises.running import (
    LOWEST,
    above_running_max,
    below_running_max,
    below_running_max_by_key,
)
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Schema
from penstock.plan.promise import Ahead, Bounds, Disorder, EndOfSource, InBand, Promise, WhenAll

SCHEMA = Schema.parse("ts bigint, key int, v int", time="ts")
Item = tuple[int, int, int] | str


def oracle(items: Sequence[Item], promises: Sequence[Promise]) -> list[bool]:
    """One event at a time: True for each event that breaks a promise."""
    given: list[Pattern] = []
    high: int | None = None
    highs: dict[int, int] = {}
    verdicts = []
    for item in items:
        if isinstance(item, str):
            given.append(Pattern.parse(item, SCHEMA))
            continue
        event = dict(zip(SCHEMA.names, item))
        out = any(p.matches_row(event) for p in given)
        for p in promises:
            if isinstance(p, Bounds):
                value = event[p.attribute]
                out |= (p.low is not None and value < p.low) or (p.high is not None and value > p.high)
            if isinstance(p, WhenAll):
                out |= event[p.key] not in p.keys
        for p in promises:
            if isinstance(p, Ahead):
                out |= high is not None and event["ts"] > high + p.most
        late = False
        if not out:
            for p in promises:
                if isinstance(p, Disorder):
                    late |= high is not None and event["ts"] < high - p.slack
                if isinstance(p, WhenAll):
                    before = highs.get(event[p.key])
                    late |= before is not None and event["ts"] < before - p.slack
            high = event["ts"] if high is None else max(high, event["ts"])
            highs[event["key"]] = max(event["ts"], highs.get(event["key"], event["ts"]))
        verdicts.append(out or late)
    return verdicts


def batch_of(items: Sequence[Item]) -> Batch:
    rows: list[tuple[int, int, int]] = []
    points = []
    for item in items:
        if isinstance(item, str):
            points.append((len(rows), Pattern.parse(item, SCHEMA)))
        else:
            rows.append(item)
    columns = list(zip(*rows)) if rows else [[], [], []]
    return Batch(
        pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA.arrow)], schema=SCHEMA.arrow),
        patterns=tuple(points),
    )


def split_of(items: Sequence[Item], ordinal: int, statistics: bool, partition: str = "") -> Split:
    ticks = [i[0] for i in items if not isinstance(i, str)]
    high = max(ticks) if ticks and statistics else None
    return Split(
        "t", partition, ordinal, "f", "parquet", 0, len(items), len(items), len(items) + 1, 0, 0, (), None, high
    )


def source_of(promises: Sequence[Promise]) -> Source:
    return Source((), SCHEMA, name="t", promises=tuple(promises))


def rejected(
    items: Sequence[Item], promises: Sequence[Promise], cuts: Sequence[int], epochs: int, tasks: int, statistics: bool
) -> tuple[list[bool], PromiseState, list[Pattern]]:
    """Run the items through splits, tasks and epochs as the engine does, through JSON each time."""
    edges = [0, *sorted(cuts), len(items)]
    pieces = [list(items[a:b]) for a, b in itertools.pairwise(edges)]
    splits = [split_of(p, n, statistics) for n, p in enumerate(pieces)]
    source = source_of(promises)
    state = PromiseState(source)
    asserted = list(state.initial())
    verdicts: dict[int, list[bool]] = {}
    for epoch in np.array_split(np.arange(len(splits)), epochs):
        state = PromiseState.from_json(source, json.loads(json.dumps(state.to_json())))
        chosen = [splits[i] for i in epoch]
        reports = []
        for task in plan_tasks(state, chosen, tasks):
            checker = Checker(source.promises, SCHEMA)
            for split, known in task:
                sent = None if known is None else Known.from_json(json.loads(json.dumps(known.to_json())), SCHEMA)
                batch = batch_of(pieces[split.ordinal])
                checked = checker.check(batch, split, sent)
                out = set(checked.rejected.column("row").to_pylist())
                verdicts[split.ordinal] = [i in out for i in range(batch.table.num_rows)]
                assert checked.events.num_rows + checked.rejected.num_rows == batch.table.num_rows
                for pattern in asserted:  # grammatical: nothing gets in after a punctuation that it matches
                    assert not any(pattern.matches(checked.events).to_pylist())
                reports.append(json.loads(json.dumps(checked.report)))
        asserted += state.absorb(reports)
    return [v for n in sorted(verdicts) for v in verdicts[n]], state, asserted


events = st.tuples(st.integers(-30, 30), st.integers(0, 3), st.integers(-3, 3))
in_band = st.sampled_from(["[< -10, *, *]", "[< 5, *, *]", "[*, 2, *]", "[<= 9, 1, *]", "[[3, 7), *, *]"])
disorders = st.builds(Disorder, st.just("ts"), st.integers(0, 15))
ahead = st.builds(Ahead, st.just("ts"), st.integers(0, 20))
bounds = st.sampled_from([Bounds("v", -2, 2), Bounds("ts", -20, None), Bounds("v", None, 1)])
when_all = st.builds(WhenAll, st.just("key"), st.just((0, 1, 2)), st.just("ts"), st.integers(0, 8))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_rejection_does_not_depend_on_the_cut(data: Any) -> None:
    promises = data.draw(
        st.one_of(
            st.tuples(disorders),
            st.tuples(when_all),
            st.tuples(st.just(InBand())),
            st.tuples(disorders, st.just(InBand())),
            st.tuples(disorders, when_all, bounds),
            st.tuples(bounds),
            st.tuples(ahead),
            st.tuples(disorders, ahead),
            st.tuples(ahead, disorders, st.just(InBand()), bounds),
            st.tuples(when_all, ahead),
        )
    )
    banded = any(isinstance(p, InBand) for p in promises)
    items = data.draw(st.lists(st.one_of(events, in_band) if banded else events, max_size=40))
    cuts = data.draw(st.lists(st.integers(0, len(items)), max_size=6))
    epochs, tasks = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3))
    # Statistics speak of all rows; they are given only where no row is rejected for another reason.
    statistics = data.draw(st.booleans()) and all(isinstance(p, Disorder | Ahead) for p in promises)
    verdicts, _, _ = rejected(items, promises, cuts, epochs, tasks, statistics)
    assert verdicts == oracle(items, promises)


@given(
    st.lists(st.integers(-(2**63) + 1, 2**63 - 1), min_size=1, max_size=20), st.integers(0, 2**64), st.integers(1, 9)
)
def test_too_far_ahead_of_the_running_maximum(values: list[int], most: int, repeat: int) -> None:
    many = values * (repeat * 2_000 if repeat == 9 else repeat)  # more than one block, now and then
    found, limits, high = above_running_max(np.array(many, np.int64), LOWEST, most)
    greatest, expected = many[0], []
    for i, value in enumerate(many):
        if value > greatest + most:
            expected.append((i, min(greatest + most, 2**63 - 1)))
        greatest = value if greatest < value <= greatest + most else greatest
    assert list(zip(found.tolist(), limits.tolist())) == expected and high == greatest
    half = len(many) // 2
    first, _, between = above_running_max(np.array(many[:half], np.int64), LOWEST, most)
    second, _, last = above_running_max(np.array(many[half:], np.int64), between, most)
    assert [*first.tolist(), *(second + half).tolist()] == found.tolist() and last == high


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20), st.integers(0, 2**63), st.data())
def test_running_maximum_does_not_wrap(values: list[int], slack: int, data: Any) -> None:
    prefix = data.draw(st.sampled_from([LOWEST, *values]))
    found, _, high = below_running_max(np.array(values, np.int64), prefix, slack)
    expected, top = [], prefix
    for i, v in enumerate(values):
        if v < max(top - min(slack, 2**63 - 1), LOWEST):
            expected.append(i)
        top = max(top, v)
    assert found.tolist() == expected
    assert high == top


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 3)), max_size=30), st.integers(0, 5))
def test_running_maximum_by_key(rows: list[tuple[int, int]], slack: int) -> None:
    if not rows:
        return
    before = np.array([LOWEST, 0, 3, LOWEST], np.int64)
    ticks, codes = (np.array(c, np.int64) for c in zip(*rows))
    found, _, highs = below_running_max_by_key(ticks, codes, before, slack)
    tops, expected = before.tolist(), []
    for i, (v, k) in enumerate(rows):
        if v < max(tops[k] - slack, LOWEST):
            expected.append(i)
        tops[k] = max(tops[k], v)
    assert found.tolist() == expected
    assert highs.tolist() == tops


def run(state: PromiseState, items: Sequence[Item], ordinal: int, partition: str = "") -> tuple[list[str], int]:
    split = split_of(items, ordinal, False, partition)
    ((_, known),) = plan_tasks(state, [split], 1)[0]
    checked = Checker(state.promises, SCHEMA).check(batch_of(items), split, known)
    return [str(p) for p in state.absorb([checked.report])], checked.rejected.num_rows


def test_the_frontier_is_that_of_the_slowest_partition() -> None:
    state = PromiseState(source_of([Disorder("ts", 5)]))
    state.register(["a", "b"])
    assert run(state, [(100, 0, 0)], 0, "a") == ([], 0)
    assert run(state, [(50, 0, 0)], 0, "b") == (["[< 45, *, *]"], 0)
    assert run(state, [(200, 0, 0)], 1, "a") == ([], 0)
    assert run(state, [(300, 0, 0)], 1, "b") == (["[< 195, *, *]"], 0)
    assert state.frontier == {"ts": 195}


def test_a_new_partition_keeps_to_what_was_asserted() -> None:
    state = PromiseState(source_of([Disorder("ts", 5)]))
    run(state, [(100, 0, 0)], 0, "a")
    assert run(state, [(90, 0, 0), (96, 0, 0)], 0, "b") == ([], 1)
    assert run(state, [(200, 0, 0)], 1, "a") == ([], 0)
    assert run(state, [(150, 0, 0)], 1, "b") == (["[< 145, *, *]"], 0)


def test_a_punctuation_in_band_holds_once_every_partition_gave_it() -> None:
    state = PromiseState(source_of([InBand()]))
    state.register(["a", "b"])
    assert run(state, ["[< 10, *, *]"], 0, "a") == ([], 0)
    assert run(state, ["[< 7, *, *]"], 0, "b") == (["[< 7, *, *]"], 0)
    assert run(state, [(8, 0, 0), "[< 20, *, *]"], 1, "b") == (["[< 10, *, *]"], 0)
    assert run(state, [(9, 0, 0), (10, 0, 0)], 1, "a") == ([], 1)
    assert run(state, [(9, 0, 0), (10, 0, 0)], 0, "c") == ([], 1)


def test_when_all_keys_have_passed() -> None:
    state = PromiseState(source_of([WhenAll("key", (1, 2), "ts", 3)]))
    assert run(state, [(10, 1, 0), (20, 1, 0)], 0) == ([], 0)
    assert run(state, [(15, 2, 0), (18, 1, 0), (16, 1, 0), (9, 9, 0)], 1) == (["[< 12, *, *]"], 2)


def test_bounds_and_end_of_source() -> None:
    state = PromiseState(source_of([Bounds("v", 0, 9), EndOfSource()]))
    assert [str(p) for p in state.initial()] == ["[*, *, < 0]", "[*, *, > 9]"]
    assert str(state.end()) == "[*, *, *]"
    assert run(state, [(1, 1, 1)], 0) == ([], 1)
    assert PromiseState(source_of([])).end() is None


def test_a_dead_letter_says_what_it_broke() -> None:
    promises = [Disorder("ts", 5)]
    checked = Checker(promises, SCHEMA).check(batch_of([(9, 1, 1), (3, 1, 2)]), split_of([(9, 1, 1)], 0, True), Known())
    (letter,) = checked.rejected.to_pylist()
    assert letter["reason"] == "late"
    assert letter["detail"] == "[< 4, *, *]"
    assert json.loads(letter["event"]) == {"ts": 3, "key": 1, "v": 2}
    assert letter["row"] == 1
    assert checked.report["example"]["detail"] == "[< 4, *, *]"


def test_tasks_get_contiguous_ranges_and_chains_stay_together() -> None:
    exact = [split_of([(i, 0, 0)], i, True) for i in range(6)]
    assert [[s.ordinal for s in t] for t in assign(exact, 3, [Disorder("ts", 1)])] == [[0, 1], [2, 3], [4, 5]]
    unknown = [split_of([(i, 0, 0)], i, False) for i in range(6)]
    assert [[s.ordinal for s in t] for t in assign(unknown, 3, [Disorder("ts", 1)])] == [[0, 1, 2, 3, 4, 5]]
    assert len(assign(unknown, 3, [])) == 3
    mixed = [*exact[:3], *unknown[3:]]
    assert [[s.ordinal for s in t] for t in assign(mixed, 2, [Disorder("ts", 1)])] == [[0, 1, 2], [3, 4, 5]]
    assert len(assign(exact, 3, [WhenAll("key", (1,), "ts")])) == 1
    state = PromiseState(source_of([Disorder("ts", 1)]))
    known = plan_known(state, mixed)
    assert [k.highs.get("ts") if k else k for k in known] == [None, 0, 1, 2, None, None]
    assert known[4] is None


@pytest.mark.parametrize("count", [1, 2, 7])
def test_nothing_is_lost_in_assignment(count: int) -> None:
    splits = [split_of([(i, 0, 0)] * (1 + i % 5), i // 3, i % 2 == 0, str(i % 3)) for i in range(30)]
    tasks = assign(splits, count, [Disorder("ts", 1)])
    assert len(tasks) <= count
    assert sorted((s.partition, s.ordinal) for t in tasks for s in t) == sorted(
        (s.partition, s.ordinal) for s in splits
    )
    for task in tasks:
        for partition in "012":
            ordinals = [s.ordinal for s in task if s.partition == partition]
            assert ordinals == sorted(ordinals)
