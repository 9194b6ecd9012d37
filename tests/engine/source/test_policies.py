"""Policies of punctuation: the same events are rejected and the same is promised, however the stream is cut."""

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

from penstock.engine.source import Batch, Checker, Known, PromiseState, Split, plan_tasks
from penstock.engine.source.promises.points import sort_points
from penstock.engine.source.promises.running import below_kth_greatest
from penstock.errors import UserError
from penstock.operators.source.operator import Source
from penstock.operators.source.reference import SourceReference
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.schema import Schema
from penstock.plan.promise import (
    Adaptive,
    After,
    Disorder,
    Domain,
    Every,
    InBand,
    Monitored,
    Once,
    Promise,
    WhenAll,
    WithinRows,
)
from penstock.reference.item import Event

SCHEMA = Schema.parse("ts bigint, key int, zone string", time="ts")
Row = tuple[int, int | None, str]
Item = Row | str
Piece = tuple[str, list[Item]]


class Oracle:
    """One event at a time, over several partitions."""

    def __init__(self, promises: Sequence[Promise], partitions: Sequence[str]) -> None:
        self.promises = promises
        self.high: dict[str, int | None] = dict.fromkeys(partitions)
        self.before: dict[str, list[int]] = {p: [] for p in partitions}
        self.given: dict[str, list[Pattern]] = {p: [] for p in partitions}
        self.newest: dict[Any, int] = {}
        self.came: set[Any] = set()

    def frontier(self, slack: int) -> int | None:
        highs = [h for h in self.high.values() if h is not None]
        return min(highs) - slack if len(highs) == len(self.high) else None

    def rejects(self, row: Row, partition: str) -> bool:
        ts, key, zone = row
        event = dict(zip(SCHEMA.names, row))
        for p in self.promises:
            if isinstance(p, Domain) and zone not in p.values:
                return True
        if any(p.matches_row(event) for p in self.given[partition]):
            return True
        late = False
        slack = next((p.slack for p in self.promises if isinstance(p, Disorder)), 0)
        frontier, high = self.frontier(slack), self.high[partition]
        for p in self.promises:
            if isinstance(p, Disorder):
                late |= high is not None and ts < high - p.slack
            if isinstance(p, WithinRows):
                late |= sum(b > ts for b in self.before[partition]) > p.rows
        over = False
        for p in self.promises if not late else ():
            if isinstance(p, After) and key is not None:
                newest = self.newest.get(key)
                if newest is not None and frontier is not None and frontier > newest + p.gap:
                    over = True
                    break
                self.newest[key] = ts if newest is None else max(newest, ts)
            if isinstance(p, Once) and zone is not None:
                if zone in self.came:
                    over = True
                    break
                self.came.add(zone)
        if not over:  # An event of a key that is over tells no time.
            self.high[partition] = ts if high is None else max(ts, high)
            self.before[partition].append(ts)
        return late or over


def batch_of(items: Sequence[Item]) -> Batch:
    rows = [i for i in items if not isinstance(i, str)]
    points, at = [], 0
    for item in items:
        if isinstance(item, str):
            points.append((at, Pattern.parse(item, SCHEMA)))
        else:
            at += 1
    rest, named = sort_points(points, SCHEMA)
    columns = list(zip(*rows)) if rows else [[], [], []]
    table = pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA.arrow)], schema=SCHEMA.arrow)
    return Batch(table, patterns=rest, values=named)


def run(
    pieces: Sequence[Piece], promises: Sequence[Promise], epochs: int, partitions: Sequence[str] = ("a",)
) -> tuple[list[bool], PromiseState, list[Pattern], list[str]]:
    """The pieces as splits, in epochs, as the engine does it; through JSON each time."""
    source = Source((), SCHEMA, name="t", promises=tuple(promises))
    state = PromiseState(source)
    state.register(partitions)
    ordinals = dict.fromkeys(partitions, 0)
    splits: list[tuple[Split, list[Item]]] = []
    for partition, items in pieces:
        n = len(items)
        splits.append((Split("t", partition, ordinals[partition], "f", "csv", 0, n, n, n + 1, 0, 0), items))
        ordinals[partition] += 1
    contents = {(s.partition, s.ordinal): items for s, items in splits}
    verdicts: dict[tuple[str, int], list[bool]] = {}
    asserted: list[Pattern] = []
    details: list[str] = []
    for epoch in np.array_split(np.arange(len(splits)), epochs):
        state = PromiseState.from_json(source, json.loads(json.dumps(state.to_json())))
        reports = []
        for task in plan_tasks(state, [splits[i][0] for i in epoch], 2):
            checker = Checker(source.promises, SCHEMA)
            for split, known in task:
                sent = None if known is None else Known.from_json(json.loads(json.dumps(known.to_json())), SCHEMA)
                batch = batch_of(contents[split.partition, split.ordinal])
                checked = checker.check(batch, split, sent)
                out = set(checked.rejected.column("row").to_pylist())
                details += checked.rejected.column("detail").to_pylist()
                verdicts[split.partition, split.ordinal] = [i in out for i in range(batch.table.num_rows)]
                # Grammatical: nothing gets in after a punctuation that it matches, unless that is forgotten.
                for pattern in [] if state.forgotten else asserted:
                    assert not any(pattern.matches(checked.events).to_pylist()), str(pattern)
                reports.append(json.loads(json.dumps(checked.report)))
        asserted += state.absorb(reports)
    return [v for s, _ in splits for v in verdicts[s.partition, s.ordinal]], state, asserted, details


def expected(pieces: Sequence[Piece], promises: Sequence[Promise], partitions: Sequence[str]) -> list[bool]:
    oracle = Oracle(promises, partitions)
    found = []
    for partition, items in pieces:
        for item in items:
            if isinstance(item, str):
                oracle.given[partition].append(Pattern.parse(item, SCHEMA))
            else:
                found.append(oracle.rejects(item, partition))
    return found


def same(one: Sequence[Pattern], other: Sequence[Pattern]) -> bool:
    """Whether two lists of punctuations together say the same."""
    a, b = (PunctuationSet(SCHEMA).add(*p) for p in (one, other))
    return all(a.covers(p) for p in b) and all(b.covers(p) for p in a)


rows = st.tuples(st.integers(0, 40), st.one_of(st.none(), st.integers(0, 4)), st.sampled_from("uvwxyz"))
marks = st.sampled_from(["[*, 2, *]", "[*, 3, *]", "[*, 1, 'u']", "[*, 1, 'v']", "[< 9, *, *]", "[*, {0, 4}, *]"])
policies = st.one_of(
    st.tuples(
        st.builds(Disorder, st.just("ts"), st.integers(0, 9)),
        st.builds(After, st.just("key"), st.just("ts"), st.integers(0, 9)),
    ),
    st.tuples(st.just(Once("zone"))),
    st.tuples(st.just(Disorder("ts", 6)), st.just(After("key", "ts", 4)), st.just(Once("zone"))),
    st.tuples(st.builds(WithinRows, st.just("ts"), st.integers(0, 6))),
    st.tuples(st.just(WithinRows("ts", 2)), st.just(Every("ts", 7)), st.just(Domain("zone", ("u", "v", "w", "x")))),
    st.tuples(st.just(InBand())),
    st.tuples(st.just(InBand()), st.just(Disorder("ts", 8)), st.just(After("key", "ts", 2)), st.just(Monitored("ts"))),
)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_nothing_depends_on_the_cut(data: Any) -> None:
    promises = data.draw(policies)
    partitions = data.draw(st.sampled_from([("a",), ("a", "b")]))
    items = st.one_of(rows, marks) if any(isinstance(p, InBand) for p in promises) else rows
    coarse: list[Piece] = data.draw(
        st.lists(st.tuples(st.sampled_from(partitions), st.lists(items, max_size=12)), max_size=5)
    )
    fine: list[Piece] = []
    for partition, content in coarse:
        cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=3)))
        edges = [0, *cuts, len(content)]
        fine += [(partition, content[a:b]) for a, b in itertools.pairwise(edges)]
    verdicts, whole, asserted, _ = run(coarse, promises, 1, partitions)
    assert verdicts == expected(coarse, promises, partitions)
    again, cut, bit_by_bit, details = run(fine, promises, data.draw(st.integers(1, 6)), partitions)
    assert again == verdicts
    assert same(asserted, bit_by_bit)
    assert whole.disorder_seen == cut.disorder_seen
    assert all(Pattern.parse(d, SCHEMA) for d in details)  # what was broken is a punctuation


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_the_reference_agrees(data: Any) -> None:
    promises = data.draw(policies)
    partitions = data.draw(st.sampled_from([("a",), ("a", "b")]))
    items = st.one_of(rows, marks) if any(isinstance(p, InBand) for p in promises) else rows
    pieces: list[Piece] = data.draw(
        st.lists(st.tuples(st.sampled_from(partitions), st.lists(items, max_size=12)), max_size=5)
    )
    reference = SourceReference(Source((), SCHEMA, name="t", promises=promises), partitions)
    verdicts = []
    for partition, content in pieces:
        for item in content:
            if isinstance(item, str):
                reference.on_punctuation(Pattern.parse(item, SCHEMA), partition)
            else:
                verdicts.append(not list(reference.on_event(Event(dict(zip(SCHEMA.names, item))), partition)))
    found, _, asserted, details = run(pieces, promises, data.draw(st.integers(1, 3)), partitions)
    assert found == verdicts
    reference.punctuate()
    assert same(reference.asserted, asserted)
    # When several promises are broken, either may be named; each is one that the event matches.
    assert len(details) == len(reference.dead_letters)


def texts(patterns: Sequence[Pattern]) -> list[str]:
    return [str(p) for p in patterns]


@pytest.mark.parametrize("epochs", [1, 5])
def test_an_event_of_a_key_that_is_over_tells_no_time(epochs: int) -> None:
    promises = [Disorder("ts", 0), After("key", "ts", 10)]
    rows: list[Item] = [(0, 1, "x"), (20, 2, "x"), (90, 1, "x"), (25, 2, "x"), (26, 3, "x")]
    found, state, _, _ = run([("a", [row]) for row in rows], promises, epochs)
    assert found == [False, False, True, False, False]
    assert state.frontier == {"ts": 26}
    whole, *_ = run([("a", rows)], promises, 1)
    assert whole == found


def test_a_key_is_over_after_the_gap() -> None:
    promises = [Disorder("ts", 5), After("key", "ts", 10)]
    stream: list[Item] = [(0, 1, "u"), (2, 2, "u"), (16, 2, "u"), (10, 1, "u"), (27, 3, "u"), (22, 1, "u")]
    # Time is complete up to 11 before the event (10, 1): not beyond 0 + 10 before it, so trip 1 goes on until 20.
    verdicts, state, asserted, details = run([("a", [*stream, (30, 3, "u"), (26, 2, "u")])], promises, 1)
    assert verdicts == [False, False, False, True, False, True, False, False]
    assert texts(asserted) == ["[< 25, *, *]", "[*, 1, *]"]
    assert details == ["[< 11, *, *]", "[*, 1, *]"]
    assert state.open_keys == 2


def test_a_key_that_comes_once_is_its_own_punctuation() -> None:
    pieces: list[Piece] = [("a", [(1, i, z) for i, z in enumerate("uvwu")]), ("a", [(9, 9, "x"), (9, 9, "v")])]
    verdicts, _, asserted, details = run(pieces, [Once("zone")], 2)
    assert verdicts == [False, False, False, True, False, True]
    assert texts(asserted) == ["[*, *, {'u', 'v', 'w'}]", "[*, *, 'x']"]
    assert details == ["[*, *, 'u']", "[*, *, 'v']"]


def test_numbers_in_a_row_are_remembered_as_one() -> None:
    pieces: list[Piece] = [("a", [(0, n, "u") for n in range(e * 50, e * 50 + 50)]) for e in range(40)]
    verdicts, state, asserted, _ = run(pieces, [Once("key", 10)], 40)
    assert not any(verdicts)
    assert state.forgotten == 0
    assert len(json.dumps(state.to_json())) < 2_000
    assert texts(asserted[:2]) == ["[*, [0, 49], *]", "[*, [50, 99], *]"]


def test_what_is_too_much_is_forgotten_oldest_first() -> None:
    pieces: list[Piece] = [("a", [(0, 0, f"{e}-{n}") for n in range(10)]) for e in range(20)]
    _, state, _, _ = run(pieces, [Once("zone", 15)], 20)
    assert state.forgotten == 185
    late: list[Piece] = [("a", [(0, 0, "19-9"), (0, 0, "18-9"), (0, 0, "18-4"), (0, 0, "0-1")])]
    verdicts, _, _, _ = run([*pieces, *late], [Once("zone", 15)], 21)
    assert verdicts[-4:] == [True, True, False, False]
    gaps: list[Piece] = [("a", [(0, 10 * (10 * e + n), "u") for n in range(10)]) for e in range(20)]
    verdicts, state, _, _ = run([*gaps, ("a", [(0, 1990, "u"), (0, 1500, "u")])], [Once("key", 15)], 21)
    assert verdicts[-2:] == [True, False]
    assert state.forgotten == 186


def test_the_frontier_moves_by_the_period() -> None:
    pieces: list[Piece] = [("a", [(t, 0, "u")]) for t in (8, 14, 19, 23, 34)]
    _, state, asserted, _ = run(pieces, [Disorder("ts", 3), Every("ts", 10)], 5)
    assert texts(asserted) == ["[< 0, *, *]", "[< 10, *, *]", "[< 20, *, *]", "[< 30, *, *]"]
    assert state.frontier == {"ts": 30}


def test_order_within_rows() -> None:
    values = [1, 2, 3, 5, 4, 6, 7, 9, 10, 8]
    pieces: list[Piece] = [("a", [(v, 0, "u") for v in values])]
    for k, late in ((0, 2), (1, 1), (2, 0)):
        verdicts, _, asserted, _ = run(pieces, [WithinRows("ts", k)], 1)
        assert sum(verdicts) == late
        assert texts(asserted) == [f"[< {10 - k}, *, *]"]


def test_an_unlisted_value_is_forbidden() -> None:
    verdicts, _, asserted, details = run([("a", [(1, 1, "u"), (2, 1, "q")])], [Domain("zone", ("u", "v"))], 1)
    assert (verdicts, asserted) == ([False, True], [])
    assert details == ["[*, *, 'q']"]
    verdicts, _, _, details = run([("a", [(1, 1, "u"), (2, None, "q")])], [Domain("key", (1, 2))], 1)
    assert (verdicts, details) == ([False, True], ["null is not among the values of 'key'"])


def test_a_new_partition_keeps_to_values_that_all_others_gave() -> None:
    source = Source((), SCHEMA, name="t", promises=(InBand(),))
    state = PromiseState(source)
    state.register(["a", "b"])

    def step(partition: str, ordinal: int, items: list[Item]) -> tuple[list[str], int]:
        split = Split("t", partition, ordinal, "f", "csv", 0, 1, 1, 1, 0, 0)
        checked = Checker(source.promises, SCHEMA).check(batch_of(items), split, state.known(partition))
        return texts(state.absorb([checked.report])), checked.rejected.num_rows

    assert step("a", 0, ["[*, 1, *]", "[*, 2, *]", "[*, 3, *]"]) == ([], 0)
    assert step("b", 0, ["[*, 2, *]", (1, 1, "u"), (1, 2, "u")]) == (["[*, 2, *]"], 1)
    assert step("c", 0, [(1, 1, "u"), (1, 2, "u")]) == ([], 1)
    assert step("b", 1, ["[*, <= 9, *]"]) == ([], 0)
    assert step("c", 1, ["[*, *, *]"]) == (["[*, {1, 2, 3}, *]"], 0)


@pytest.mark.parametrize("promise", [After("key", "ts", 3), Every("ts", 5)])
def test_time_must_be_known_to_be_complete(promise: Promise) -> None:
    with pytest.raises(UserError, match="nothing says how far 'ts' is complete"):
        PromiseState(Source((), SCHEMA, name="t", promises=(promise,)))
    PromiseState(Source((), SCHEMA, name="t", promises=(promise, Disorder("ts", 0))))


def test_a_measured_slack_follows_what_was_seen() -> None:
    adaptive = Adaptive("ts", 0.99, at_least=2, at_most=100, warm_up=50)
    pieces: list[Piece] = [("a", [(10 * e + v, 0, "u") for v in (0, 2, 5, 1, 9)]) for e in range(40)]
    verdicts, state, asserted, _ = run([*pieces, ("a", [(380, 0, "u")])], [adaptive], 41)
    assert texts(asserted)[:2] == ["[< -91, *, *]", "[< -81, *, *]"]  # until it is warm the bound is the widest
    assert texts(asserted)[-1] == "[< 395, *, *]"  # then what was seen: 4, and 1 for the largest of the epoch
    assert verdicts[-1]
    assert sum(verdicts) == 1
    seen = state.disorder_seen["ts"]
    assert (seen.events, seen.epsilon, seen.k) == (201, 19, 9)


def test_a_wider_slack_takes_nothing_back() -> None:
    adaptive = Adaptive("ts", 1.0, at_least=0, at_most=100, warm_up=1)
    pieces: list[Piece] = [("a", [(50, 0, "u")]), ("a", [(60, 0, "u")]), ("a", [(52, 0, "u"), (61, 0, "u")])]
    pieces += [("a", [(61, 0, "u"), (58, 0, "u")]), ("a", [(75, 0, "u"), (62, 0, "u"), (66, 0, "u")])]
    verdicts, state, asserted, _ = run(pieces, [adaptive], 5)
    assert texts(asserted) == ["[< -50, *, *]", "[< 60, *, *]", "[< 61, *, *]", "[< 67, *, *]"]
    assert verdicts == [False, False, True, False, False, True, False, True, True]
    assert state.frontier == {"ts": 67}


def test_a_key_that_goes_back_breaks_its_own_promise() -> None:
    pieces: list[Piece] = [("a", [(8, 1, "u"), (27, 2, "u"), (20, 1, "u"), (19, 2, "u")])]
    _, _, _, details = run(pieces, [WhenAll("key", (1, 2), "ts", 5)], 1)
    assert details == ["[< 22, 2, *]"]


def test_when_all_and_every_together() -> None:
    pieces: list[Piece] = [("a", [(8, 1, "u"), (27, 2, "u")]), ("a", [(29, 1, "u")])]
    _, _, asserted, _ = run(pieces, [WhenAll("key", (1, 2), "ts"), Every("ts", 10)], 2)
    assert texts(asserted) == ["[< 0, *, *]", "[< 20, *, *]"]


@given(st.integers(0, 200), st.integers(0, 40), st.integers(1, 30), st.data())
def test_the_kth_greatest_so_far(size: int, k: int, spread: int, data: Any) -> None:
    seed, before = data.draw(st.integers(0, 99)), data.draw(st.integers(0, size))
    values = np.arange(size) + np.random.default_rng(seed).integers(-spread, spread, size)
    late = [i for i in range(size) if np.sum(values[:i] > values[i]) > k]
    _, _, top = below_kth_greatest(values[:before], np.empty(0, np.int64), k)
    found, limits, _ = below_kth_greatest(values[before:], top, k)
    assert (found + before).tolist() == [i for i in late if i >= before]
    assert limits.tolist() == [int(np.sort(values[: i + before])[-k - 1]) for i in found.tolist()]


def test_keys_stay_few_on_a_stream_without_end() -> None:
    promises = (Disorder("ts", 3), After("key", "ts", 20), InBand(remember=50))
    source = Source((), SCHEMA, name="t", promises=promises)
    state = PromiseState(source)
    sizes = []
    for epoch in range(300):
        items: list[Item] = [(10 * epoch + d, 3 * epoch + d % 4, f"z{epoch}") for d in range(10)]
        items += [f"[*, *, 'y{epoch}']", f"[*, {7 * epoch}, 'x']", f"[< {10 * epoch}, *, 'w{epoch}']"]
        split = Split("t", "a", epoch, "f", "csv", 0, 10, 10, 10, 0, 0)
        checked = Checker(promises, SCHEMA).check(batch_of(items), split, state.known("a"))
        assert checked.rejected.num_rows == 0
        state.absorb([checked.report])
        sizes.append(len(json.dumps(state.to_json())))
    assert state.open_keys < 12
    assert sizes[-1] < 1.5 * sizes[100]


def test_a_partition_that_appears_later_starts_where_time_is_complete() -> None:
    promises = (Disorder("ts", 0), After("key", "ts", 5))
    source = Source((), SCHEMA, name="t", promises=promises)
    state = PromiseState(source)

    def step(partition: str, items: list[Item]) -> tuple[list[str], int]:
        split = Split("t", partition, 0, "f", "csv", 0, 1, 1, 1, 0, 0)
        checked = Checker(promises, SCHEMA).check(batch_of(items), split, state.known(partition))
        return texts(state.absorb([checked.report])), checked.rejected.num_rows

    assert step("a", [(0, 1, "u"), (10, 2, "u")]) == (["[< 10, *, *]", "[*, 1, *]"], 0)
    assert step("b", [(12, 1, "u"), (9, 2, "u"), (16, 2, "u")]) == ([], 2)


def test_nan_comes_as_often_as_it_likes_where_values_come_once() -> None:
    schema = Schema.parse("d double")
    source = Source((), schema, name="s", promises=(Once("d"),))
    state = PromiseState(source)
    values = [float("nan"), 1.0, None, float("nan"), 1.0, None]
    split = Split("s", "", 0, "f", "csv", 0, 6, 6, 7, 0, 0)
    checked = Checker(source.promises, schema).check(Batch(pa.table({"d": values})), split, state.known(""))
    assert checked.rejected.num_rows == 1
    assert [str(p) for p in state.absorb([checked.report])] == ["[1.0]"]
    reference = SourceReference(source)
    for value in values:
        reference.on_event(Event({"d": value}))
    assert [letter.row["d"] for letter in reference.dead_letters] == [1.0]
    assert [str(item) for item in reference.punctuate()] == ["punctuation [1.0]"]
