"""The generator: a function of seed and position, whatever the cut."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.source import Checker, PromiseState, open_reader, plan_tasks, read, reader_options
from penstock.engine.source.formats.generate import generate_rows
from penstock.errors import UserError
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.schema import Schema
from penstock.plan.promise import Disorder, Generated, InBand

SCHEMA = Schema.parse("ts timestamp, key int, v double, u double, c string, n bigint, b boolean", time="ts")
COLUMNS = (("ts", "time", ()), ("key", "key", (10, 1.2)), ("v", "normal", (5.0, 2.0)), ("u", "uniform", ()),
           ("c", "category", ("x", "y")), ("n", "serial", ()), ("b", "chance", (0.3,)))  # fmt: skip


def source(rows: int | None, partitions: int = 1, disorder: int = 5_000_000, rate: float | None = 3.0) -> Source:
    reader = Generated(rows, rate, 7, 1_000_000, partitions, disorder, COLUMNS)
    return Source((), SCHEMA, name="g", reader=reader, promises=(Disorder("ts", disorder),))


@given(st.integers(1, 60), st.integers(1, 3), st.one_of(st.none(), st.integers(1, 20)), st.integers(1, 4))
def test_any_cut_gives_the_same_rows(rows: int, partitions: int, step: int | None, parallelism: int) -> None:
    src = source(rows, partitions)
    reader = open_reader(src)
    state = PromiseState(src)
    parts: dict[str, list[pa.Table]] = {}
    while splits := reader.plan(step, None, parallelism):
        state.register(reader.partitions)
        reports = []
        for task in plan_tasks(state, splits, parallelism):
            checker = Checker(src.promises, SCHEMA)
            for split, known in task:
                batch = read(split, SCHEMA, None, src.promises, reader_options(src))
                assert split.high == batch.table.column("ts").cast("int64").to_numpy().max()
                checked = checker.check(batch, split, known)
                assert checked.rejected.num_rows == 0  # delays never exceed the declared disorder
                reports.append(checked.report)
                parts.setdefault(split.partition, []).append(batch.table)
        state.absorb(reports)
        position = json.loads(json.dumps(reader.position()))
        reader = open_reader(src)
        reader.restore(None, [position])
    assert reader.exhausted
    found = pa.concat_tables([t for p in sorted(parts) for t in parts[p]]).sort_by("n")
    assert isinstance(src.reader, Generated)
    assert found.equals(generate_rows(src.reader, SCHEMA, np.arange(rows)))


def test_values_look_as_declared() -> None:
    src = source(None, rate=1000.0)
    assert isinstance(src.reader, Generated)
    table = generate_rows(src.reader, SCHEMA, np.arange(100_000))
    v = table.column("v").to_numpy()
    assert abs(v.mean() - 5) < 0.05
    assert abs(v.std() - 2) < 0.05
    keys = np.bincount(table.column("key").to_numpy(), minlength=10)
    assert keys[0] > 2 * keys[1] > 0
    assert len(keys) == 10
    assert set(table.column("c").to_pylist()) == {"x", "y"}
    assert abs(table.column("b").cast("int8").to_numpy().mean() - 0.3) < 0.01
    other = generate_rows(Generated(None, 1000.0, 8, 0, columns=COLUMNS), SCHEMA, np.arange(1000))
    assert abs(np.corrcoef(other.column("u").to_numpy(), table.column("u").to_numpy()[:1000])[0, 1]) < 0.1


def test_without_an_end_rows_come_as_time_passes() -> None:
    reader = open_reader(source(None, rate=1e-6))
    assert reader.plan(None, None, 1) == ()
    assert not reader.exhausted
    endless = open_reader(source(None, rate=None))
    assert sum(s.rows or 0 for s in endless.plan(1000, None, 2)) == 1000


def test_a_wrong_declaration_is_named() -> None:
    with pytest.raises(UserError, match="nothing makes attribute 'x'"):
        open_reader(Source((), Schema.parse("x int"), name="g", reader=Generated(1, 1.0, 0, 0)))
    wrong = Generated(1, 1.0, 0, 0, columns=(("x", "ky", ()),))
    with pytest.raises(UserError, match="did you mean 'key'"):
        open_reader(Source((), Schema.parse("x int"), name="g", reader=wrong))


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("step", [None, 7])
def test_what_is_punctuated_does_not_come_again(partitions: int, step: int | None) -> None:
    schema = Schema.parse("ts timestamp, trip bigint, id bigint", time="ts")
    columns = (("ts", "time", ()), ("trip", "trip", (4, 3)), ("id", "serial", ()))
    made = Generated(100, 10.0, 3, 0, partitions, 700_000, columns, (("trip", 0), ("ts", 20), ("id", 9)))
    source = Source((), schema, name="g", reader=made, promises=(InBand(),))
    reader, state = open_reader(source), PromiseState(source)
    state.register(reader.partitions)
    asserted: list[Pattern] = []
    rows = 0
    while splits := reader.plan(step, None, 2):
        for split in splits:
            batch = read(split, schema, None, source.promises, {"generated": made})
            checked = Checker(source.promises, schema).check(batch, split, state.known(split.partition))
            assert checked.rejected.num_rows == 0
            rows += checked.events.num_rows
            # One report at a time: a later split of the partition has to know of the earlier.
            asserted += state.absorb([checked.report])
    promised = PunctuationSet(schema).add(*asserted)
    assert rows == 100
    # 8 rounds of 4 trips are over after 96 rows, and the first 99 rows have their number below 99.
    assert promised.covers(Pattern.parse("[*, [0, 31], *]", schema))
    assert not promised.covers(Pattern.parse("[*, 32, *]", schema))
    assert promised.covers(Pattern.parse("[*, *, <= 98]", schema))
    assert promised.covers(Pattern.parse("[< '1970-01-01 00:00:09.3', *, *]", schema))


def test_what_cannot_be_punctuated() -> None:
    made = Generated(10, None, 0, 0, columns=(("v", "uniform", ()),), punctuate=(("v", 0),))
    with pytest.raises(UserError, match="'v' cannot be punctuated"):
        open_reader(Source((), Schema.parse("v double"), name="g", reader=made))
