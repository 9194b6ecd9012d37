"""Groups by sorting: the same partial rows as by hashing, to the last bit, and sorted by the window."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from penstock.kernels.fold import sort_by
from penstock.kernels.order import code_order, codes_of
from penstock.kernels.step import Rows
from penstock.operators.aggregate import exact_sum
from penstock.operators.aggregate.bins import Bins
from penstock.operators.aggregate.cells import Cells
from penstock.operators.aggregate.kernel import AggregateKernel
from penstock.operators.aggregate.sorting import Sorting
from penstock.pattern.schema import Schema
from penstock.plan.window import Window
from penstock.sql.aggregation import Aggregation

SCHEMA = Schema.parse("t timestamp, k int, name string, ok boolean, i bigint, x double", time="t")
TEXTS = ("count(*)", "count(x)", "sum(i)", "sum(x)", "avg(i + 1)", "min(i)", "max(t)", "sum(x) filter (where i > 0)")
WINDOWS = (
    None,
    Window.tumbling("10 s").resolve(SCHEMA),
    Window.sliding("10 s", "4 s").resolve(SCHEMA),
    Window.sliding("3 s", "5 s").resolve(SCHEMA),
)


def kernel(window: Any, keys: tuple[str, ...], *texts: str) -> AggregateKernel:
    return AggregateKernel(
        SCHEMA, keys, [Aggregation.parse(f"a{i}", t, SCHEMA, "t") for i, t in enumerate(texts)], window
    )


def hashed(kernel: AggregateKernel, events: pa.Table) -> pa.Table:
    rows = Rows(events)
    return kernel.partial_table(rows.under(kernel.partial_sql(rows.sql)).table())


@contextmanager
def no_cells() -> Iterator[None]:
    """Groups are sorted, however few are possible."""
    module = "penstock.operators.aggregate.sorting."
    with mock.patch(f"{module}_CELLS", -1), mock.patch(f"{module}_CELLS_FOR_EACH", 0):
        yield


def answers(kernel: AggregateKernel, partials: pa.Table) -> list[str]:
    """Texts, in which NaN equals NaN and no two different doubles are equal."""
    return sorted(repr(row) for row in kernel.finalize(partials).to_pylist())


_doubles = st.one_of(
    st.none(), st.floats(-1e3, 1e3), st.floats(width=64), st.sampled_from([-0.0, 1e300, -1e300, 5e-324, 2.0**51])
)
_events = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(-30_000_000, 30_000_000)),
        st.one_of(st.none(), st.integers(0, 3), st.integers(-(2**31), 2**31 - 1)),
        st.sampled_from([None, "", "a", "b"]),
        st.sampled_from([None, True, False]),
        st.one_of(st.none(), st.integers(-5, 5), st.integers(-(2**63), 2**63 - 1)),
        _doubles,
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(
    _events,
    st.sampled_from(WINDOWS),
    st.sampled_from([("k",), ("name",), ("k", "name", "ok"), ("i", "k"), ("t", "i", "k", "name")]),
    st.lists(st.sampled_from(TEXTS), min_size=1, max_size=4, unique=True),
)
def test_the_same_as_by_hashing(
    events: list[tuple[Any, ...]], window: Any, keys: tuple[str, ...], texts: list[str]
) -> None:
    table = pa.Table.from_pylist([dict(zip(SCHEMA.names, e, strict=True)) for e in events], SCHEMA.arrow)
    groups = kernel(window, keys, *texts).noting()
    in_cells, by_hashing = groups.partial(table), hashed(groups, table)
    with no_cells():
        by_sorting = groups.partial(table)
    assert in_cells.schema == by_sorting.schema == by_hashing.schema == groups.partial_schema
    assert answers(groups, in_cells) == answers(groups, by_sorting) == answers(groups, by_hashing)
    if window is not None and window.size <= window.slide and groups.sorting is not None:
        assert in_cells["window_start"].to_pylist() == by_sorting["window_start"].to_pylist()
    cut = len(events) // 3
    parts = [groups.partial(table.slice(0, cut)), hashed(groups, table.slice(cut))]
    merged = groups.merge(parts)
    assert answers(groups, merged) == answers(groups, by_hashing)
    groups.merge_sorting = None
    assert answers(groups, groups.merge(parts)) == answers(groups, merged)
    if window is not None and window.size <= window.slide and groups.sorting is not None:
        assert by_sorting["window_start"].to_pylist() == sort_by(by_sorting, "window_start")["window_start"].to_pylist()


def test_what_cannot_be_sorted_is_hashed() -> None:
    assert kernel(WINDOWS[1], ("x",), "count(*)").sorting is None
    assert kernel(WINDOWS[1], ("k",), "first(i)").sorting is None
    assert kernel(WINDOWS[1], ("k",), "count(*) filter (where i > 0)").sorting is None
    assert kernel(None, (), "count(*)").sorting is None
    assert kernel(WINDOWS[1], (), *TEXTS[:-1]).sorting is not None


def test_sums_too_large_to_be_sorted_are_hashed() -> None:
    groups = kernel(None, ("k",), "sum(i)", "sum(x)")
    assert groups.sorting is not None
    for values in ({"i": [2**62, 2**62], "x": [0.0, 0.0]}, {"i": [0, 0], "x": [2.0**50 + 1, 2.0**50 + 1]}):
        table = pa.table({"k": [1, 1], "__p0": values["i"], "__p1": values["x"]})
        with no_cells():
            assert groups.sorting.of(table) is None
    assert groups.sorting.of(pa.table({"k": [1, 1], "__p0": [2**62, 2**62], "__p1": [0.0, 0.0]})) is None
    events = pa.Table.from_pylist([{"k": 1, "i": 7, "x": 2.0**50 + 1}] * 2, SCHEMA.arrow)
    assert groups.finalize(groups.partial(events)).to_pylist() == [{"k": 1, "a0": 14, "a1": 2.0**51 + 2}]


def test_sorting_needs_room(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise AssertionError("sorted")

    groups = kernel(WINDOWS[1], ("k",), "count(*)")
    events = pa.Table.from_pylist([{"k": 1, "t": 0}] * 100_000, SCHEMA.arrow)
    groups.reduction = 1.0
    monkeypatch.setattr(Sorting, "of", fails)
    monkeypatch.setattr("penstock.operators.aggregate.kernel.memory_limit", lambda: 1 << 20)
    assert groups.finalize(groups.partial(events))["a0"].to_pylist() == [100_000]


def test_few_groups_far_apart_are_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, bool]] = []
    of = Sorting.of

    def noted(sorting: Sorting, rows: pa.Table, *, sort: bool = True) -> pa.Table | None:
        asked.append((rows.num_rows, sort))
        return of(sorting, rows, sort=sort)

    monkeypatch.setattr(Sorting, "of", noted)
    groups = kernel(None, ("k",), "count(*)")

    def group(keys: int, apart: int) -> list[tuple[int, bool]]:
        asked.clear()
        events = pa.table({"k": np.arange(100_000) % keys * apart}, pa.schema([("k", pa.int32())]))
        assert groups.partial(events).num_rows == keys
        return [*asked]

    in_cells, sorted_, sampled = (100_000, False), (100_000, True), (16_384, True)
    assert group(50_000, 3) == group(10, 1) == [in_cells]
    assert group(10, 1_000_000) == [in_cells], "a table would be too large, and few groups were not expected"
    assert group(10, 1_000_000) == [], "few groups, so they are hashed"
    groups.reduction = None
    assert group(10, 1_000_000) == [sampled], "it is found out again"
    groups.reduction = 0.5
    assert group(50_000, 30_000) == [sorted_]
    assert group(10, 1_000_000) == [sorted_], "many were expected"
    assert group(10, 1_000_000) == []


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.floats(-(2.0**50), 2.0**50)), min_size=1, max_size=60),
    st.sampled_from([1.0, 2.0**-30, 2.0**-400]),
)
def test_bins_are_exact(numbers: list[tuple[int, float]], unit: float) -> None:
    codes, values = (np.array(column) for column in zip(*numbers, strict=True))
    values = values * unit
    assume(np.abs(values).max() == 0 or np.abs(values).max() > 2.0**-890)
    cells = Cells(codes.astype(np.uint64), 4)
    (p,) = kernel(None, ("k",), "sum(x)").parts.partials
    found = cells.aggregated(p, pa.array(values))
    assert found is not None
    for group, nearest, low, rest in zip(cells.taken.tolist(), *(column.to_pylist() for column in found)):
        exact = sum(Fraction(v) for v in values[codes == group].tolist())
        assert sum(map(Fraction, [nearest, low, *(rest or ())])) == exact
        assert nearest == float(exact)
        assert rest is None or all(rest)


def test_bins_refuse_what_they_cannot_hold() -> None:
    for largest in (math.inf, -math.inf, math.nan, 2.0**52, 2.0**-950):
        assert Bins.for_numbers(np.array([0.5 * 2.0**-960, largest]), 2) is None
    bins = Bins.for_numbers(np.array([2.0**38]), 2**22)
    assert bins is None, "more numbers leave less room for each"
    bins = Bins.for_numbers(np.array([1.0]), 4)
    assert bins is not None
    many = np.zeros(5_000, np.int64)
    assert bins.packed(many, many, [(np.arange(4_000), np.full(4_000, 2.0**-200))]) is None


@given(st.integers(-(2**62), 2**62 - 1), st.integers(-(2**59), 2**59 - 1))
def test_bins_as_doubles(high: int, low: int) -> None:
    parts = [float(p[0]) for p in exact_sum.as_doubles(np.array([high], np.int64), np.array([low], np.int64))]
    scaled = [p * 2.0**72 for p in parts]
    assert sum(map(int, scaled)) == (high << 60) + low
    assert parts[2] or parts[0] == math.ldexp(((high << 60) + low) / 2**72, 0)


@given(st.lists(st.integers(0, 2**64 - 1)))
def test_order_is_stable(numbers: list[int]) -> None:
    codes = np.array(numbers, np.uint64)
    assert code_order(codes).tolist() == sorted(range(len(numbers)), key=numbers.__getitem__)


def test_codes_of_wide_columns_are_ranks() -> None:
    dice = random.Random(3)
    rows = [tuple(dice.choice([-(2**63), 2**63 - 1, 0, None]) for _ in range(3)) for _ in range(200)]
    codes = codes_of([pa.array(column, pa.int64()) for column in zip(*rows, strict=True)])
    ordered = sorted({(tuple((v is not None, v or 0) for v in row)) for row in rows})
    expected = [ordered.index(tuple((v is not None, v or 0) for v in row)) for row in rows]
    assert np.unique(codes, return_inverse=True)[1].tolist() == expected
