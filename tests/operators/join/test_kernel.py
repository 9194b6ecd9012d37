"""The join kernel against nested loops: whatever the cut into epochs, the promises and the upkeep of the runs."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.builder.combine import join_operator
from penstock.kernels import index, release
from penstock.kernels.index import HASH
from penstock.kernels.stateful import DEAD, Answer, Held, Laziness, Orders, Stepped
from penstock.operators.join.kernel import JoinKernel
from penstock.operators.join.operator import KINDS, Join
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.restriction import at_least, at_most, between, equal, one_of
from penstock.pattern.schema import Schema

EPOCH = dt.datetime(2026, 1, 1)
#: Per kind of key the type left and right, and the values that stand for 0, 1, 2, 3.
KEYS: dict[str, tuple[str, str, list[Any]]] = {
    "int": ("int", "bigint", [-1, 0, 1, 2]),
    "string": ("string", "string", ["", "a", "a\0", "a long key, of more than one word"]),
    "double": ("double", "double", [0.0, -0.0, float("nan"), 1.5]),
    "decimal": ("decimal(9,2)", "decimal(9,2)", [Decimal(n).scaleb(-2) for n in range(-1, 3)]),
    "date": ("date", "date", [dt.date(1969, 12, 30) + dt.timedelta(days=n) for n in range(4)]),
    "timestamp": ("timestamp", "timestamp", [EPOCH + dt.timedelta(microseconds=n) for n in range(4)]),
    "boolean": ("boolean", "boolean", [False, True, True, False]),
    "binary": ("binary", "binary", [b"", b"\0", b"\0\0", b"12345678"]),
}
TIMES = {"int": lambda n: n, "smallint": lambda n: n, "date": lambda n: dt.date(1970, 1, 1) + dt.timedelta(days=n)}
Row = tuple[Any, ...]


class Shelf:
    """What an engine does with the steps of a kernel: it keeps runs, marks and outputs, and checks what it is given."""

    def __init__(self, kernel: Any, ports: int = 2) -> None:
        self.kernel, self.ports = kernel, ports
        self.held: list[dict[str, Held]] = [{} for _ in range(ports)]
        self.output: list[pa.Table] = []
        self.made = 0

    def step(self, fresh: Sequence[pa.Table | None], orders: Orders) -> Stepped:
        step: Stepped = self.kernel.step(fresh, [list(h.values()) for h in self.held], orders)
        assert step.output.schema == self.kernel.output_schema
        self.output.append(step.output)
        for name in step.dropped:
            del next(h for h in self.held if name in h)[name]
        for name, marks in step.marked:
            shelf = next(h for h in self.held if name in h)
            old = shelf[name]
            assert marks.num_rows == old.rows.num_rows
            shelf[name] = Held(name, old.rows, marks, old.group, old.low, old.high)
        for run in step.added:
            assert run.rows.num_rows and run.rows.schema.names == [HASH, *self.kernel._names(run.port)]
            hashes = np.asarray(run.rows.column(HASH))
            assert (hashes[1:] >= hashes[:-1]).all()
            assert run.marks is None or run.marks.num_rows == run.rows.num_rows
            self.made += 1
            name = f"run {self.made}"
            self.held[run.port][name] = Held(name, run.rows, run.marks, run.group, run.low, run.high)
        return step

    @property
    def results(self) -> list[Row]:
        return [tuple(r.values()) for table in self.output for r in table.to_pylist()]


def bag(rows: Sequence[Row]) -> Counter[str]:
    return Counter(map(repr, rows))


@dataclass(frozen=True)
class Event:
    epoch: int
    port: int
    keys: Row
    time: int | None
    value: int | None


@dataclass(frozen=True)
class Case:
    """A join and its input, with the answer by definition."""

    join: Join
    kinds: tuple[str, ...]
    time: str
    low: int | None
    high: int | None
    banded: bool
    events: tuple[Event, ...]
    epochs: int

    def meet(self, left: Event, right: Event, residual: bool = True) -> bool:
        for a, b in zip(left.keys, right.keys, strict=True):
            if a is None or b is None:
                if not (self.join.null_safe and a is None and b is None):
                    return False
            elif a != b and not (isinstance(a, float) and math.isnan(a) and math.isnan(b)):
                return False
        if self.banded:
            if left.time is None or right.time is None:
                return False
            apart = right.time - left.time
            if (self.low is not None and apart < self.low) or (self.high is not None and apart > self.high):
                return False
        if self.join.residual is not None and residual:
            return left.value is not None and right.value is not None and left.value < right.value
        return True

    def side(self, port: int) -> list[Event]:
        return [e for e in self.events if e.port == port]

    def moment(self, time: int | None) -> Any:
        return None if time is None else TIMES[self.time](time)

    def shown(self, left: Event | None, right: Event | None) -> Row:
        first, last = [left or right, right or left][0], right or left
        assert first is not None and last is not None
        keys = first.keys if self.join.how != "right" else last.keys
        mine = (self.moment(left.time), left.value) if left else (None, None)
        if self.join.how in ("semi", "anti"):
            assert left is not None
            return (*left.keys, *mine)
        return (*keys, *mine, *((self.moment(right.time), right.value) if right else (None, None)))

    def answer(self) -> list[Row]:
        how, rows, met = self.join.how, [], set()
        for left in self.side(0):
            for right in self.side(1):
                if self.meet(left, right):
                    met |= {id(left), id(right)}
                    if how not in ("semi", "anti"):
                        rows.append(self.shown(left, right))
        if how == "semi":
            rows += [self.shown(e, None) for e in self.side(0) if id(e) in met]
        if how in ("left", "full", "anti"):
            rows += [self.shown(e, None) for e in self.side(0) if id(e) not in met]
        if how in ("right", "full"):
            rows += [self.shown(None, e) for e in self.side(1) if id(e) not in met]
        return rows

    def table(self, epoch: int, port: int) -> pa.Table | None:
        rows = [e for e in self.side(port) if e.epoch == epoch]
        columns = [*zip(*(e.keys for e in rows), strict=True)] or [()] * len(self.kinds)
        columns += [tuple(self.moment(e.time) for e in rows), tuple(e.value for e in rows)]
        schema = self.join.inputs[port].schema
        made = pa.table([pa.array(c, a.type) for c, a in zip(columns, schema, strict=True)], schema=schema.arrow)
        return made if rows or epoch % 2 else None

    def named(self, event: Event) -> dict[str, Any]:
        names = self.join.inputs[event.port].schema.names
        return dict(zip(names, (*event.keys, self.moment(event.time), event.value), strict=True))

    def is_promised(self, pattern: Pattern, port: int, epoch: int) -> bool:
        """Whether no event after an epoch meets one of the other side that matches the pattern."""
        later = [e for e in self.side(1 - port) if e.epoch > epoch]
        named = [e for e in self.side(port) if pattern.matches_row(self.named(e))]
        return not any(
            self.meet(*((e, other) if port == 0 else (other, e)), residual=False) for e in named for other in later
        )


@st.composite
def cases(draw: st.DrawFn, how: str | None = None) -> Case:
    kinds = tuple(draw(st.lists(st.sampled_from(sorted(KEYS)), min_size=1, max_size=2)))
    time = draw(st.sampled_from(sorted(TIMES)))
    banded = draw(st.booleans())
    low = draw(st.none() | st.integers(-4, 3)) if banded else None
    high = draw(st.none() | st.integers(-3 if low is None else low, 5)) if banded else None
    banded = banded and not (low is None and high is None)
    schemas = []
    for port in (0, 1):
        keys = [f"k{i} {KEYS[kind][port]}" for i, kind in enumerate(kinds)]
        schemas.append(Schema.parse(", ".join([*keys, f"t {time}", f"{'ab'[port]} int"]), time="t"))

    def extent(ticks: int | None) -> Any:
        return ticks if ticks is None or time != "date" else dt.timedelta(days=ticks)

    join = join_operator(
        Source((), schemas[0]),
        Source((), schemas[1]),
        [f"k{i}" for i in range(len(kinds))],
        how or draw(st.sampled_from(KINDS)),
        between=(extent(low), extent(high)) if banded else None,
        where=draw(st.sampled_from([None, "a < b"])),
        null_safe=draw(st.booleans()),
    )
    epochs = draw(st.integers(1, 5))
    some = st.integers(0, 3)
    events = draw(
        st.lists(
            st.builds(
                Event,
                st.integers(0, epochs - 1),
                st.integers(0, 1),
                st.tuples(*(st.none() | some.map(KEYS[kind][2].__getitem__) for kind in kinds)),
                st.none() | st.integers(-3, 9),
                st.none() | st.integers(0, 3),
            ),
            max_size=24,
        )
    )
    return Case(join, kinds, time, low, high, banded, tuple(events), epochs)


def restrictions(values: list[Any]) -> st.SearchStrategy[Any]:
    some = st.sampled_from([v for v in values if v == v])
    return st.one_of(
        some.map(equal),
        st.lists(some, min_size=1, max_size=3).map(one_of),
        some.map(at_most),
        some.map(at_least),
        st.tuples(some, some).map(lambda p: between(*p)),
    )


@st.composite
def patterns(draw: st.DrawFn, case: Case, port: int) -> Pattern:
    schema = case.join.inputs[port].schema
    chosen: dict[str, Any] = {}
    for i, kind in enumerate(case.kinds):
        if draw(st.booleans()):
            chosen[f"k{i}"] = draw(restrictions(KEYS[kind][2]))
    if case.banded and draw(st.booleans()):
        chosen["t"] = draw(restrictions([case.moment(n) for n in range(-3, 10)]))
    return Pattern.by_name(schema, chosen)


def everything(case: Case) -> list[tuple[Pattern, ...]]:
    return [(Pattern.all(i.schema),) for i in case.join.inputs]


LAZINESS = [Laziness(), Laziness(0.0, 1), Laziness(0.9, 2), Laziness(1.0, 100)]


def run_through(case: Case, data: st.DataObject, laziness: Laziness) -> Shelf:
    """All epochs with promises that hold, then the end of both streams; answers are checked on the way."""
    shelf = Shelf(JoinKernel(case.join, "join", laziness))
    settled = [PunctuationSet(i.schema) for i in case.join.inputs]
    kept: list[list[Event]] = [[], []]
    for epoch in range(case.epochs + 1):
        last = epoch == case.epochs
        if last:
            fresh = everything(case)
        else:
            drawn = [data.draw(st.lists(patterns(case, port), max_size=3)) for port in (0, 1)]
            fresh = [tuple(p for p in drawn[port] if case.is_promised(p, port, epoch)) for port in (0, 1)]
        settled = [s.add(*f) for s, f in zip(settled, fresh, strict=True)]
        asked = tuple(tuple(data.draw(st.lists(patterns(case, port), max_size=2))) for port in (0, 1))
        tables = [None, None] if last else [case.table(epoch, port) for port in (0, 1)]
        step = shelf.step(tables, Orders(tuple(fresh), tuple(settled), asked))
        for port in (0, 1):
            kept[port] += [e for e in case.side(port) if e.epoch == epoch and storable(case, e)]
            kept[port] = [e for e in kept[port] if not settled[port].matches_row(case.named(e))]
        so_far = [[e for e in case.side(port) if e.epoch <= epoch] for port in (0, 1)]
        stored = list(kept)
        if case.join.how in ("semi", "anti"):
            stored[0] = [e for e in kept[0] if not any(case.meet(e, other) for other in so_far[1])]
        for port in (0, 1):
            for pattern, got in zip(asked[port], step.answers[port], strict=True):
                match = [e for e in stored[port] if pattern.matches_row(case.named(e))]
                times = [e.time for e in match if e.time is not None]
                if port == 1 and case.join.how in ("semi", "anti"):
                    assert bool(got.rows) == bool(match)
                else:
                    assert got.rows == len(match)
                assert got.latest == (max(times) if times and case.banded else None)
    return shelf


def storable(case: Case, event: Event) -> bool:
    return (case.join.null_safe or None not in event.keys) and not (case.banded and event.time is None)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_results_are_those_of_nested_loops(data: st.DataObject) -> None:
    case = data.draw(cases())
    shelf = run_through(case, data, data.draw(st.sampled_from(LAZINESS)))
    assert bag(shelf.results) == bag(case.answer())
    assert shelf.held == [{}, {}]


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_keys_with_one_hash_are_told_apart(data: st.DataObject) -> None:
    case = data.draw(cases())
    if case.kinds in [("int",), ("date",), ("timestamp",), ("boolean",)]:
        return  # Their hash is the key.

    def poor(table: pa.Table, names: Sequence[str]) -> Any:
        return np.full(table.num_rows, 7, dtype=np.uint64)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(index, "hash_keys", poor)
        patched.setattr(release, "hash_keys", poor)
        shelf = run_through(case, data, Laziness())
    assert bag(shelf.results) == bag(case.answer())


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_upkeep_never_changes_what_a_step_says(data: st.DataObject) -> None:
    """Output, counts and answers of every epoch, not only of all together, are the same however lazy it is."""
    case = data.draw(cases())
    shelves = [Shelf(JoinKernel(case.join, "join", laziness)) for laziness in LAZINESS]
    settled = [PunctuationSet(i.schema) for i in case.join.inputs]
    for epoch in range(case.epochs):
        drawn = [data.draw(st.lists(patterns(case, port), max_size=2)) for port in (0, 1)]
        fresh = [tuple(p for p in drawn[port] if case.is_promised(p, port, epoch)) for port in (0, 1)]
        settled = [s.add(*f) for s, f in zip(settled, fresh, strict=True)]
        orders = Orders(tuple(fresh), tuple(settled), tuple(everything(case)))
        steps = [shelf.step([case.table(epoch, port) for port in (0, 1)], orders) for shelf in shelves]
        for step in steps[1:]:
            assert bag(step.output.to_pylist()) == bag(steps[0].output.to_pylist())
            assert (step.answers, step.counts["released"]) == (steps[0].answers, steps[0].counts["released"])


LEFT, RIGHT = Schema.parse("k int, t int, a string", time="t"), Schema.parse("k int, t int, b string", time="t")


def simple(how: str = "inner", **more: Any) -> tuple[Shelf, Any]:
    join = join_operator(Source((), LEFT), Source((), RIGHT), "k", how, **more)
    shelf = Shelf(JoinKernel(join, "join"))
    settled = [PunctuationSet(LEFT), PunctuationSet(RIGHT)]

    def step(left: list[Row], right: list[Row], release: tuple[str, str] = ("", ""), **asked: Any) -> Stepped:
        schemas = (LEFT, RIGHT)
        new = [tuple(Pattern.parse(p, s) for p in text.split("; ") if p) for text, s in zip(release, schemas)]
        for port in (0, 1):
            settled[port] = settled[port].add(*new[port])
        tables = [
            pa.table([pa.array(c, a.type) for c, a in zip(zip(*rows, strict=True), s)], schema=s.arrow)
            if rows
            else None
            for rows, s in zip((left, right), schemas)
        ]
        return shelf.step(tables, Orders(tuple(new), tuple(settled), **asked))

    return shelf, step


def test_a_padded_row_waits_for_its_promise_and_a_null_key_does_not() -> None:
    shelf, step = simple("left")
    assert step([(1, 0, "x"), (None, 0, "y")], []).output.to_pylist() == [
        {"k": None, "t": 0, "a": "y", "t_right": None, "b": None}
    ]
    out = step([], [(1, 5, "r")]).output
    assert out.to_pylist() == [{"k": 1, "t": 0, "a": "x", "t_right": 5, "b": "r"}]
    # Matched before, so nothing is owed; what arrives later under a settled key is answered and leaves.
    late = step([(1, 7, "z"), (2, 7, "w")], [], ("[*, *, *]", ""))
    assert [r["a"] for r in late.output.to_pylist()] == ["z", "w"]
    assert late.counts == {"matched": 1, "stored": 0, "released": 1, "passed": 2, "dropped": 1}
    assert shelf.held[0] == {} and len(shelf.held[1]) == 1


def test_a_semi_join_answers_once_and_forgets() -> None:
    shelf, step = simple("semi")
    assert step([(1, 0, "x"), (1, 1, "y"), (2, 0, "z")], [(1, 0, "r"), (1, 0, "s")]).output.num_rows == 2
    assert step([], [(1, 3, "again")]).output.num_rows == 0
    assert step([], [(2, 3, "first")]).output.column("a").to_pylist() == ["z"]
    assert shelf.held[0] == {}
    # Of equal keys on the right one is enough.
    assert next(h.rows.num_rows for h in shelf.held[1].values()) == 1


def test_old_slices_leave_as_whole_runs() -> None:
    shelf, step = simple("inner", within=10)
    for start in (0, 10, 20):
        step([(k, start + k, "x") for k in range(10)], [])
    assert sorted((h.low, h.high) for h in shelf.held[0].values()) == [(0, 9), (10, 19), (20, 29)]
    got = step([], [], ("[*, < 15, *]", ""))
    assert len(got.dropped) == 1 and len(got.marked) == 1 and not got.added
    assert got.counts["released"] == 15
    got = step([], [], ("[*, < 17, *]", ""))  # Now most of the second run is dead.
    assert len(got.dropped) == 1 and [(f.low, f.high, f.rows.num_rows) for f in got.added] == [(17, 19, 3)]


def test_rows_of_many_slices_make_few_runs() -> None:
    _, step = simple("inner", within=2)
    got = step([(t, t, "x") for t in range(1000)], [])
    spans = sorted((f.low, f.high) for f in got.added)
    assert len(spans) == 8 and all(a[1] < b[0] for a, b in itertools.pairwise(spans))
    assert sum(f.rows.num_rows for f in got.added) == 1000


def test_runs_are_merged_by_size_and_keep_their_marks() -> None:
    shelf, step = simple("left")
    step([(k, 0, "big") for k in range(1000)], [])
    step([], [(k, 1, "r") for k in range(500)])
    for k in range(2000, 2100):
        step([(k, 0, "small")], [])
        assert len(shelf.held[0]) <= 8
    assert max(h.rows.num_rows for h in shelf.held[0].values()) == 1000  # The big one was left alone.
    assert sum(h.rows.num_rows for h in shelf.held[0].values()) == 1100
    assert step([], [], ("[*, *, *]", "")).output.num_rows == 600


def test_a_run_that_is_rewritten_remembers_who_has_met() -> None:
    shelf, step = simple("left")
    step([(k, 0, "x") for k in range(10)], [])
    step([], [(k, 1, "r") for k in range(8)])
    got = step([], [], ("[<= 5, *, *]", ""))
    assert len(got.dropped) == 1 and [f.rows.num_rows for f in got.added] == [4] and got.output.num_rows == 0
    assert sorted(step([], [], ("[*, *, *]", "")).output.column("k").to_pylist()) == [8, 9]
    assert shelf.held[0] == {}


def test_a_self_join_pairs_each_with_each() -> None:
    both = Schema.parse("k int, v int")
    join = join_operator(Source((), both), Source((), both), "k")
    shelf = Shelf(JoinKernel(join, "join"))
    quiet = Orders(((), ()), (PunctuationSet(both), PunctuationSet(both)))
    for epoch in range(3):
        table = pa.table({"k": pa.array([1, 1, 2], pa.int32()), "v": pa.array([epoch] * 3, pa.int32())})
        shelf.step([table, table], quiet)
    assert len(shelf.results) == 6 * 6 + 3 * 3


def test_times_at_the_ends_of_their_domain() -> None:
    wide = Schema.parse("k int, t bigint", time="t")
    join = join_operator(Source((), wide), Source((), wide), "k", between=(-1, 1))
    ends = [-(2**63), -(2**63) + 1, 0, 2**63 - 2, 2**63 - 1]
    table = pa.table({"k": pa.array([1] * 5, pa.int32()), "t": pa.array(ends, pa.int64())})
    kernel = JoinKernel(join, "join")
    quiet = Orders(((), ()), (PunctuationSet(wide), PunctuationSet(wide)))
    got = kernel.step([table, table], ((), ()), quiet).output
    assert bag([(r["t"], r["t_right"]) for r in got.to_pylist()]) == bag(
        [(a, b) for a in ends for b in ends if abs(a - b) <= 1]
    )


def test_a_hot_key_costs_its_band_alone() -> None:
    """A million rows of one key: without the order by time in a run, this would be 2.5e11 candidates."""
    one = Schema.parse("k int, t bigint", time="t")
    join = join_operator(Source((), one), Source((), one), "k", between=(0, 1))
    times = np.arange(500_000)
    table = pa.table({"k": pa.array(np.zeros(len(times), np.int32)), "t": pa.array(times)})
    quiet = Orders(((), ()), (PunctuationSet(one), PunctuationSet(one)))
    assert JoinKernel(join, "join").step([table, table], ((), ()), quiet).output.num_rows == 2 * len(times) - 1


def test_asking_for_attributes_that_are_not_stored_counts_rather_too_many() -> None:
    _, step = simple("semi")
    asked = ((), (Pattern.parse("[1, *, 'r']", RIGHT),))
    assert step([], [(1, 0, "other"), (2, 0, "r")], ask=asked).answers == ((), (Answer(1, None),))


def test_marks_say_who_is_dead_and_who_has_met() -> None:
    shelf, step = simple("full")
    step([(k, 0, "x") for k in range(10)], [])
    step([], [(0, 0, "r"), (1, 0, "r")], ("[{0, 2, 4}, *, *]", ""))
    (held,) = shelf.held[0].values()
    assert held.marks is not None
    known = {r["k"]: (m[DEAD], m["matched"]) for r, m in zip(held.rows.to_pylist(), held.marks.to_pylist())}
    assert {k for k, (dead, _) in known.items() if dead} == {0, 2, 4}
    assert {k for k, (_, matched) in known.items() if matched} == {0, 1}
