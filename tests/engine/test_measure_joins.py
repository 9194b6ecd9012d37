"""Statistics of joins measured from the first events: compared with counting every pair."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.builder.multiway import join
from penstock.engine.measure_joins import _codes, _share, measure_joins, sample
from penstock.errors import UserError
from penstock.operators.join.operator import Join
from penstock.operators.multijoin.operator import MultiJoin

START = datetime(2026, 1, 1)


def written(folder: Path, name: str, rows: list[tuple[Any, ...]], schema: str = "ts timestamp, k int") -> ps.Stream:
    """A stream of a Parquet file with the given rows, times in seconds."""
    stream = ps.stream(name, schema, time="ts")
    moved = [(None if t is None else START + timedelta(seconds=t), *rest) for t, *rest in rows]
    columns = {n: pa.array([r[i] for r in moved], stream.schema.type_of(n)) for i, n in enumerate(stream.schema.names)}
    (folder / name).mkdir()
    pq.write_table(pa.table(columns), folder / name / "part.parquet")
    return stream.read_parquet(str(folder / name))


def test_rates_are_events_a_second_of_event_time(tmp_path: Path) -> None:
    fast = written(tmp_path, "fast", [(i / 50, i % 7) for i in range(501)])
    slow = written(tmp_path, "slow", [(i * 2, i % 7) for i in range(101)])
    assert measure_joins([fast, slow], "k").rates == pytest.approx([50, 0.5])


def test_what_operators_drop_does_not_count(tmp_path: Path) -> None:
    events = written(tmp_path, "events", [(i, i % 4) for i in range(401)])
    rare = events.where("k = 0").select("ts", key="k")
    found = measure_joins([events, rare], [("k", "key")])
    assert found.rates == pytest.approx([1, 0.25])
    assert found.shares()[0, 1] == pytest.approx(0.25, abs=0.01)


def test_keys_that_come_and_go_match_more_often_within_a_window(tmp_path: Path) -> None:
    """Trip n lasts half a second from n on: one pair in a hundred matches, but every second one in a window of 1 s."""
    starts = written(tmp_path, "starts", [(n, n) for n in range(100)])
    stops = written(tmp_path, "stops", [(n + 0.5, n) for n in range(100)])
    assert measure_joins([starts, stops], "k").shares()[0, 1] == pytest.approx(1 / 100)
    assert measure_joins([starts, stops], "k", within="1 s").shares()[0, 1] == pytest.approx(1 / 2, rel=0.02)


def test_samples_from_different_times_are_compared_all_the_same(tmp_path: Path) -> None:
    early = written(tmp_path, "early", [(n, n % 5) for n in range(50)])
    late = written(tmp_path, "late", [(n + 10_000, n % 5) for n in range(50)])
    assert measure_joins([early, late], "k", within="1 s").shares()[0, 1] == pytest.approx(0.2)


def test_no_match_in_the_sample_is_less_than_one_in_all_pairs_but_not_none(tmp_path: Path) -> None:
    odd = written(tmp_path, "odd", [(n, 2 * n + 1) for n in range(10)])
    even = written(tmp_path, "even", [(n, 2 * n) for n in range(20)])
    assert measure_joins([odd, even], "k").shares()[0, 1] == 1 / 200


def test_empty_inputs_are_measured_too(tmp_path: Path) -> None:
    empty = written(tmp_path, "empty", [])
    other = written(tmp_path, "other", [(1, 1), (None, 2)])
    found = measure_joins([empty, other], "k", within="1 s")
    assert found.rates == [0, 1]
    assert isinstance(
        join(empty, other, empty, on="k", statistics=measure_joins([empty, other, empty], "k")), ps.Stream
    )


def test_only_the_first_rows_are_read(tmp_path: Path) -> None:
    events = written(tmp_path, "events", [(i, i) for i in range(1000)])
    assert sample(events, 10)["k"].to_pylist() == list(range(10))
    both = events.union(written(tmp_path, "more", [(i, -1) for i in range(1000)]))
    assert sample(both, 10).num_rows == 20


def test_measuring_leaves_the_streams_as_they_were(tmp_path: Path) -> None:
    events = written(tmp_path, "events", [(i, i) for i in range(100)])
    assert sample(events, 100) == sample(events, 100)


def test_what_was_measured_decides(tmp_path: Path) -> None:
    """Two inputs that hardly match come first, whatever their place."""
    a = written(tmp_path, "a", [(i / 10, i % 1000) for i in range(3000)])
    b = written(tmp_path, "b", [(i / 10, i % 2) for i in range(3000)])
    c = written(tmp_path, "c", [(i / 10, 999 - i % 1000) for i in range(3000)])
    found = measure_joins([a, b, c], "k", within="60 s")
    tree = join(a, b, c, on="k", within="60 s", strategy="tree", statistics=found).operator
    assert isinstance(tree, Join) and tree.inputs[1] is b.operator
    one = join(a, b, c, on="k", within="60 s", strategy="mjoin", statistics=found).operator
    assert isinstance(one, MultiJoin) and "((a ⋈ c) ⋈ b)" in one.estimate


def test_what_needs_state_or_spark_is_not_measured() -> None:
    numbers = ps.generate("numbers", rate=10, rows=100)
    counted = numbers.group_by("key").agg(n="count(*)")
    with pytest.raises(UserError, match=r"aggregate-1 can only be measured by running it.*JoinStatistics"):
        measure_joins([numbers, counted], "key")
    with pytest.raises(UserError, match="sample_rows=0"):
        measure_joins([numbers, numbers], "key", sample_rows=0)
    with pytest.raises(UserError, match="did you mean 'key'"):
        measure_joins([numbers, numbers], "kye")
    anything: Any = measure_joins
    for wrong, part in (
        (numbers, "Stream is not a list"),
        ([numbers], "two streams or more"),
        ([numbers, "b"], "str is not a stream"),
    ):
        with pytest.raises(UserError, match=rf"{part}.*ps\.measure_joins\(\[a, b\], on='key'\)"):
            anything(wrong, on="key")


keys = st.one_of(st.none(), st.integers(0, 3))
events = st.lists(st.tuples(keys, st.sampled_from(["x", "y", None]), st.integers(-20, 20)), max_size=15)


@given(events, events, st.one_of(st.none(), st.integers(0, 9)), st.one_of(st.none(), st.integers(0, 9)))
def test_the_share_is_that_of_counting_every_pair(left: Any, right: Any, before: int | None, after: int | None) -> None:
    tables = [
        pa.table({"k": pa.array([e[0] for e in side], t), "s": pa.array([e[1] for e in side], pa.string())})
        for side, t in ((left, pa.int32()), (right, pa.int64()))
    ]
    codes = _codes(tables, [("k", "s"), ("k", "s")])
    times = [np.array([e[2] for e in side], np.int64) for side in (left, right)]
    near = [
        (a, b)
        for a, b in product(left, right)
        if (before is None or b[2] - a[2] >= -before) and (after is None or b[2] - a[2] <= after)
    ]
    near = near or list(product(left, right))
    equal = [1 for a, b in near if None not in a[:2] and a[:2] == b[:2]]
    expected = max(len(equal), 1) / len(near) if near else 1.0
    assert _share((codes[0], times[0]), (codes[1], times[1]), (before, after)) == pytest.approx(expected)


def test_times_far_apart_and_many_keys_do_not_overflow() -> None:
    codes = np.arange(200_000)
    times = np.linspace(-(2**61), 2**61, 200_000).astype(np.int64)
    share = _share((codes, times), (codes, times), (1000, None))
    assert share == pytest.approx(2 / 200_000, rel=0.01)
