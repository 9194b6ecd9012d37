"""The multi-way join against nested loops over all its inputs."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.kernels import index, release
from penstock.kernels.index import HASH
from penstock.kernels.stateful import Held, Laziness, Orders, Stepped
from penstock.operators.join.operator import Taken
from penstock.operators.multijoin.kernel import MultiJoinKernel
from penstock.operators.multijoin.operator import MultiJoin
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.restriction import at_most, equal, one_of
from penstock.pattern.schema import Schema

KEYS: dict[str, list[Any]] = {"int": [0, 1, 2], "string": ["", "a", "a key of several words"]}


def multijoin(key: str, windows: Sequence[int | None], timed: bool = True) -> MultiJoin:
    count = len(windows)
    schemas = [Schema.parse(f"k {key}, t bigint, v{i} int", time="t") for i in range(count)]
    columns = [Taken("k", ((0, "k"),))]
    for i in range(count):
        columns += [Taken(f"t{i}", ((i, "t"),)), Taken(f"v{i}", ((i, f"v{i}"),))]
    output = Schema.parse(f"k {key}, " + ", ".join(f"t{i} bigint, v{i} int" for i in range(count)))
    return MultiJoin(
        tuple(Source((), s) for s in schemas),
        output,
        keys=(("k",),) * count,
        columns=tuple(columns),
        times=("t",) * count if timed else (None,) * count,
        windows=tuple(windows),
    )


@dataclass(frozen=True)
class Event:
    epoch: int
    port: int
    key: Any
    time: int | None
    value: int


def belong(a: Event, b: Event, windows: Sequence[int | None]) -> bool:
    """By definition: equal keys, and the later within the window of the earlier."""
    if a.key is None or a.key != b.key:
        return False
    if windows[a.port] is None and windows[b.port] is None:
        return True
    if a.time is None or b.time is None:
        return False
    first, last = sorted((a, b), key=lambda e: e.time or 0)
    assert first.time is not None and last.time is not None
    if a.time == b.time:
        return True
    window = windows[first.port]
    return window is None or last.time - first.time <= window


def answer(events: Sequence[Event], windows: Sequence[int | None]) -> list[tuple[Any, ...]]:
    sides = [[e for e in events if e.port == port] for port in range(len(windows))]
    return [
        (chosen[0].key, *(x for e in chosen for x in (e.time, e.value)))
        for chosen in itertools.product(*sides)
        if all(belong(a, b, windows) for a, b in itertools.combinations(chosen, 2))
    ]


class Shelf:
    def __init__(self, kernel: MultiJoinKernel) -> None:
        self.kernel = kernel
        self.held: list[dict[str, Held]] = [{} for _ in kernel.ports]
        self.results: list[tuple[Any, ...]] = []
        self.made = 0

    def step(self, fresh: Sequence[pa.Table | None], orders: Orders, **more: Any) -> Stepped:
        step = self.kernel.step(fresh, [list(h.values()) for h in self.held], orders, **more)
        assert step.output.schema == self.kernel.output_schema
        self.results += [tuple(r.values()) for r in step.output.to_pylist()]
        for name in step.dropped:
            del next(h for h in self.held if name in h)[name]
        for name, marks in step.marked:
            shelf = next(h for h in self.held if name in h)
            old = shelf[name]
            shelf[name] = Held(name, old.rows, marks, old.group, old.low, old.high)
        for run in step.added:
            assert run.rows.schema.names == [HASH, *self.kernel._names(run.port)]
            self.made += 1
            name = f"run {self.made}"
            self.held[run.port][name] = Held(name, run.rows, run.marks, run.group, run.low, run.high)
        return step


def table(events: Sequence[Event], schema: Schema) -> pa.Table:
    columns = [[e.key for e in events], [e.time for e in events], [e.value for e in events]]
    return pa.table([pa.array(c, a.type) for c, a in zip(columns, schema)], schema=schema.arrow)


@st.composite
def patterns(draw: st.DrawFn, schema: Schema, key: str, timed: bool) -> Pattern:
    chosen: dict[str, Any] = {}
    some = st.sampled_from(KEYS[key])
    if draw(st.booleans()):
        chosen["k"] = draw(st.one_of(some.map(equal), st.lists(some, min_size=1).map(one_of), some.map(at_most)))
    if timed and draw(st.booleans()):
        chosen["t"] = at_most(draw(st.integers(-1, 9)))
    return Pattern.by_name(schema, chosen)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_results_are_those_of_nested_loops(data: st.DataObject) -> None:
    windows = data.draw(st.lists(st.none() | st.integers(0, 5), min_size=2, max_size=4))
    key = data.draw(st.sampled_from(sorted(KEYS)))
    timed = any(w is not None for w in windows)
    join = multijoin(key, windows, timed or data.draw(st.booleans()))
    ports, epochs = range(len(windows)), data.draw(st.integers(1, 4))
    events = data.draw(
        st.lists(
            st.builds(
                Event,
                st.integers(0, epochs - 1),
                st.sampled_from(ports),
                st.none() | st.sampled_from(KEYS[key]),
                st.none() | st.integers(0, 9),
                st.integers(0, 5),
            ),
            max_size=22,
        )
    )
    laziness = data.draw(st.sampled_from([Laziness(), Laziness(0.0, 1), Laziness(1.0, 100)]))
    shelf = Shelf(MultiJoinKernel(join, "join", laziness))
    schemas = [i.schema for i in join.inputs]
    settled = [PunctuationSet(s) for s in schemas]
    order = [data.draw(st.permutations([j for j in ports if j != i])) for i in ports]

    def is_promised(pattern: Pattern, port: int, epoch: int) -> bool:
        named = [e for e in events if e.port == port and pattern.matches_row({"k": e.key, "t": e.time})]
        later = [e for e in events if e.port != port and e.epoch > epoch]
        return not any(belong(a, b, windows) for a in named for b in later)

    kept: list[list[Event]] = [[] for _ in ports]
    for epoch in range(epochs + 1):
        if epoch == epochs:
            new = [(Pattern.all(s),) for s in schemas]
        else:
            drawn = [data.draw(st.lists(patterns(s, key, timed), max_size=2)) for s in schemas]
            new = [tuple(p for p in drawn[i] if is_promised(p, i, epoch)) for i in ports]
        settled = [s.add(*n) for s, n in zip(settled, new)]
        arrived = [[e for e in events if e.port == i and e.epoch == epoch] for i in ports]
        asked = [data.draw(patterns(s, key, timed)) for s in schemas]
        step = shelf.step(
            [table(a, s) if a else None for a, s in zip(arrived, schemas)],
            Orders(tuple(new), tuple(settled), tuple((a,) for a in asked)),
            **({"order": order} if data.draw(st.booleans()) else {}),
        )
        for i in ports:
            kept[i] += [e for e in arrived[i] if e.key is not None and not (timed and e.time is None)]
            kept[i] = [e for e in kept[i] if not settled[i].matches_row({"k": e.key, "t": e.time})]
            match = [e for e in kept[i] if asked[i].matches_row({"k": e.key, "t": e.time})]
            latest = max((e.time for e in match if e.time is not None), default=None) if timed else None
            (said,) = step.answers[i]
            assert (said.rows, said.latest) == (len(match), latest)
    assert Counter(shelf.results) == Counter(answer(events, windows))
    assert not any(shelf.held)


def test_keys_with_one_hash_are_told_apart() -> None:
    join = multijoin("string", (None, None, None))
    rng = np.random.default_rng(7)
    events = [Event(0, i % 3, f"k{rng.integers(3)}", 0, i) for i in range(30)]
    quiet = Orders(((),) * 3, tuple(PunctuationSet(i.schema) for i in join.inputs))

    def poor(rows: pa.Table, names: Sequence[str]) -> Any:
        return np.full(rows.num_rows, 7, dtype=np.uint64)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(index, "hash_keys", poor)
        patched.setattr(release, "hash_keys", poor)
        shelf = Shelf(MultiJoinKernel(join, "join"))
        for start in (0, 10, 20):
            part = events[start : start + 10]
            shelf.step([table([e for e in part if e.port == i], s.schema) for i, s in enumerate(join.inputs)], quiet)
    assert Counter(shelf.results) == Counter(answer(events, (None,) * 3))


def test_the_most_selective_input_is_asked_first_and_ends_it() -> None:
    """Nothing of the large inputs is combined when a small one has no partner."""
    join = multijoin("int", (None,) * 4)
    schemas = [i.schema for i in join.inputs]
    quiet = Orders(((),) * 4, tuple(map(PunctuationSet, schemas)))
    shelf = Shelf(MultiJoinKernel(join, "join"))
    many = [Event(0, 0, 1, 0, n) for n in range(100)]
    shelf.step([None, table(many, schemas[1]), table(many, schemas[2]), table(many[:3], schemas[3])], quiet)
    step = shelf.step([table([Event(1, 0, 2, 0, 0)], schemas[0]), None, None, None], quiet)
    assert step.counts["probes:0:1"] == 1 and step.counts["matches:0:1"] == 0
    assert "probes:0:2" not in step.counts and "probes:0:3" not in step.counts
    step = shelf.step(
        [table([Event(1, 0, 1, 0, 0)], schemas[0]), None, None, None], quiet, order=[(3, 2, 1), (), (), ()]
    )
    assert [k for k in step.counts if k.startswith("matches")] == ["matches:0:3", "matches:0:2", "matches:0:1"]
    assert step.output.num_rows == 3 * 100 * 100
    sampled = MultiJoinKernel(join, "join").step(
        [table([Event(1, 0, 1, 0, 0)], schemas[0]), None, None, None],
        [list(h.values()) for h in (shelf.held[0], shelf.held[1], shelf.held[2], shelf.held[3])],
        quiet,
    )
    assert next(k for k in sampled.counts if k.startswith("matches:0")) == "matches:0:3"


def test_what_passes_by_is_counted() -> None:
    join = multijoin("int", (None, None))
    schemas = [i.schema for i in join.inputs]
    everything = Pattern.all(schemas[0])
    orders = Orders(((everything,), ()), (PunctuationSet(schemas[0]).add(everything), PunctuationSet(schemas[1])))
    left = [Event(0, 0, 1, 0, 0), Event(0, 0, 2, 0, 0)]
    step = MultiJoinKernel(join, "join").step(
        [table(left, schemas[0]), table([Event(0, 1, 1, 0, 0)], schemas[1])], [(), ()], orders
    )
    known = {name: step.counts[name] for name in ("matched", "stored", "released", "passed", "dropped")}
    assert known == {"matched": 1, "stored": 1, "released": 0, "passed": 2, "dropped": 1}
    assert [f.port for f in step.added] == [1]
