"""The aggregate kernel: any cut and any merge tree give what DuckDB says of the whole input at once."""

from __future__ import annotations

import itertools
import math
import pickle
import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import OverflowingError
from penstock.kernels.duck import query
from penstock.operators.aggregate.doomed import doomed_groups
from penstock.operators.aggregate.kernel import AggregateKernel
from penstock.operators.count_aggregate.kernel import CountGroups
from penstock.operators.landmark_aggregate.kernel import LandmarkGroups
from penstock.operators.window.kernel import bucket_sql
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import at_most, equal, greater
from penstock.pattern.schema import Schema
from penstock.plan.window import Window
from penstock.sql.aggregation import Aggregation

EVENTS = Schema.parse("ts timestamp, k string, n int, price decimal(10,2), x double, ok boolean", time="ts")
EPOCH = datetime(1970, 1, 1)
AGGREGATES = {
    "events": "count(*)",
    "present": "count(n)",
    "positive": "count_if(n > 0)",
    "kinds": "count(distinct n)",
    "total": "sum(n)",
    "money": "sum(price)",
    "mean_n": "avg(n)",
    "lowest": "min(n)",
    "highest": "max(x)",
    "whole": "sum(n) FILTER (WHERE ok)",
    "ratio": "sum(n) / count(*)",
    "every_ok": "bool_and(ok)",
    "some_ok": "bool_or(ok)",
    "bits": "bit_xor(n)",
    "key": "concat(k, '!', count(*))",
}
# The same in DuckDB, where it differs.
DUCKDB = {
    "key": "k || '!' || count(*)",
    "positive": "count(*) FILTER (WHERE n > 0)",
    "total": "sum(n)::BIGINT",
    "whole": "(sum(n) FILTER (WHERE ok))::BIGINT",
}
FLOATS = {"sum_x": "sum(x)", "avg_x": "avg(x)", "var": "var_samp(x)", "dev": "stddev_pop(n)", "cov": "covar_pop(n, x)"}

rows = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(-40, 40).map(lambda s: EPOCH + timedelta(seconds=s))),
        st.one_of(st.none(), st.sampled_from("ab")),
        st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1), st.integers(-3, 3)),
        st.one_of(st.none(), st.decimals(-999, 999, places=2)),
        st.one_of(st.none(), st.floats(-1e6, 1e6)),
        st.one_of(st.none(), st.booleans()),
    ),
    max_size=25,
)


def table(events: Sequence[tuple[Any, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(EVENTS.names, e)) for e in events], schema=EVENTS.arrow)


@cache
def _parsed(name: str, text: str, keys: tuple[str, ...]) -> Aggregation:
    return Aggregation.parse(name, text, EVENTS, "ts", keys=keys)


def kernel(aggregates: dict[str, str], window: Window | None = None, keys: Sequence[str] = ("k",)) -> AggregateKernel:
    parsed = [_parsed(n, t, tuple(keys)) for n, t in aggregates.items()]
    return AggregateKernel(EVENTS, keys, parsed, window.resolve(EVENTS) if window else None, "slow#3", "ts")


def in_parts(k: AggregateKernel, events: pa.Table, seed: int) -> pa.Table:
    """Partial rows by a random cut and a random tree of merges."""
    dice = random.Random(seed)
    order = dice.sample(range(events.num_rows), events.num_rows)
    parts = [k.partial(events.slice(0, 0))]
    while order:
        size = dice.randint(1, len(order))
        parts.append(k.partial(events.take(pa.array(order[:size], pa.int64()))))
        order = order[size:]
    while len(parts) > 1:
        chosen = dice.randint(2, len(parts))
        dice.shuffle(parts)
        parts = [k.merge(parts[:chosen]), *parts[chosen:]]
    return k.merge(parts)


def sorted_rows(t: pa.Table, names: Sequence[str]) -> list[tuple[Any, ...]]:
    listed = [tuple(r[n] for n in names) for r in t.to_pylist()]
    return sorted(listed, key=lambda r: [(v is None, str(type(v)), v if v is not None else 0) for v in r[:2]])


def naive(
    events: pa.Table, aggregates: dict[str, str], window: Window | None, keys: Sequence[str] = ("k",)
) -> pa.Table:
    """The whole input at once, windows exploded."""
    source, groups = "SELECT * FROM events", [f'"{k}"' for k in keys]
    if window is not None:
        source, groups = bucket_sql(source, window.resolve(EVENTS)), [window.label, *groups]
    answers = [f'{DUCKDB.get(n, t)} AS "{n}"' for n, t in aggregates.items()]
    return query(f"SELECT {', '.join([*groups, *answers])} FROM ({source}) GROUP BY {', '.join(groups)}", events=events)


def close(a: float | None, b: float | None, absolute: float) -> bool:
    return a is b if a is None or b is None else math.isclose(a, b, rel_tol=1e-12, abs_tol=absolute)


windows = st.sampled_from(
    [
        None,
        Window.tumbling("10 s"),
        Window.tumbling("7 s", origin=3_000_000),
        Window.sliding("20 s", "5 s"),
        Window.sliding("10 s", "4 s", origin=-1_000_000),
        Window.hopping("3 s", "8 s"),
    ]
)


@settings(max_examples=20, deadline=None)
@given(rows, windows, st.integers(0, 2**32))
def test_any_cut_is_the_batch_answer(events: list[tuple[Any, ...]], window: Window | None, seed: int) -> None:
    k, data = kernel(AGGREGATES, window), table(events)
    got = k.finalize(in_parts(k, data, seed))
    assert got.schema == k.output_schema.arrow
    expected = naive(data, AGGREGATES, window)
    assert sorted_rows(got, got.column_names) == sorted_rows(expected, got.column_names)


@settings(max_examples=20, deadline=None)
@given(rows, windows, st.integers(0, 2**32))
def test_floats_are_close_under_any_cut(events: list[tuple[Any, ...]], window: Window | None, seed: int) -> None:
    k, data = kernel(FLOATS, window), table(events)
    got = k.finalize(in_parts(k, data, seed))
    exact = {"sum_x": "list(x) FILTER (WHERE x IS NOT NULL)", "avg_x": "count(x)"}
    expected = naive(data, FLOATS | exact, window)
    spread = 1e12  # Squares of the numbers above: what rounding of variances is relative to.
    for mine, theirs in zip(
        sorted_rows(got, got.column_names), sorted_rows(expected, expected.column_names), strict=True
    ):
        a, b = dict(zip(got.column_names, mine)), dict(zip(expected.column_names, theirs))
        total = math.fsum(b["sum_x"]) if b["sum_x"] else None
        assert close(a["sum_x"], total, 0.0)
        assert close(a["avg_x"], None if total is None else total / b["avg_x"], 0.0)
        assert close(a["var"], b["var"], spread * 1e-12)
        assert close(a["dev"], b["dev"], 1e-3)
        assert close(a["cov"], b["cov"], 2.0**31 * 1e6 * 1e-12)


@settings(max_examples=20, deadline=None)
@given(rows, st.integers(0, 2**32))
def test_first_and_last_follow_time_not_arrival(events: list[tuple[Any, ...]], seed: int) -> None:
    k = kernel({"first": "first(n)", "last": "last(n)", "at_least": "min_by(n, x)", "any": "any_value(n)"})
    got = {r["k"]: r for r in k.finalize(in_parts(k, table(events), seed)).to_pylist()}
    for key in {e[1] for e in events}:
        timed = [(e[0], e[2]) for e in events if e[1] == key and e[0] is not None and e[2] is not None]
        assert got[key]["first"] == (min(timed)[1] if timed else None)
        assert got[key]["last"] == (max(timed)[1] if timed else None)
        assert got[key]["any"] == min((e[2] for e in events if e[1] == key and e[2] is not None), default=None)
    assert got.keys() == {e[1] for e in events}


@settings(max_examples=20, deadline=None)
@given(rows)
def test_without_keys_there_is_one_group_or_none(events: list[tuple[Any, ...]]) -> None:
    k = kernel({"n": "count(*)", "x": "sum(x)"}, keys=())
    assert k.finalize(k.merge([k.partial(table(events))])).num_rows == (1 if events else 0)


def test_empty_tables_keep_their_schema() -> None:
    for window in (None, Window.tumbling("1 s"), Window.sliding("3 s", "1 s"), Window.landmark("1 s")):
        k = kernel(AGGREGATES | FLOATS, window)
        assert k.partial(table([])).schema == k.partial_schema
        assert k.merge([]).schema == k.partial_schema
        assert k.finalize(k.merge([])).schema == k.output_schema.arrow


def test_overflow_names_the_aggregate_and_never_wraps() -> None:
    big = Schema.parse("k int, v bigint, x double")
    parsed = [Aggregation.parse("n", "count(*)", big), Aggregation.parse("total", "sum(v)", big)]
    k = AggregateKernel(big, ["k"], parsed, None, "sums#1")
    part = k.partial(pa.table({"k": [1], "v": [2**63 - 1], "x": [1.0]}, schema=big.arrow))
    assert k.finalize(part)["total"].to_pylist() == [2**63 - 1]
    with pytest.raises(OverflowingError, match=r"sums#1: sum\(v\) AS total is too large.*decimal\(38,0\)"):
        k.finalize(k.merge([part, part]))
    below = k.partial(pa.table({"k": [1], "v": [-(2**63)], "x": [1.0]}, schema=big.arrow))
    assert k.finalize(k.merge([part, part, below]))["total"].to_pylist() == [2**63 - 2]
    floats = AggregateKernel(big, ["k"], [Aggregation.parse("s", "sum(x)", big)], None, "sums#2")
    part = floats.partial(pa.table({"k": [1], "v": [0], "x": [1.7e308]}, schema=big.arrow))
    with pytest.raises(OverflowingError, match=r"sums#2: sum\(x\) AS s"):
        floats.finalize(floats.merge([part, part]))
    wide = AggregateKernel(big, [], [Aggregation.parse("s", "sum(cast(v as decimal(38,0)))", big)])
    part = wide.partial(pa.table({"k": [1], "v": [2**63 - 1], "x": [0.0]}, schema=big.arrow))
    assert wide.finalize(wide.merge([part, part]))["s"].to_pylist() == [Decimal(2**64 - 2)]


def test_infinite_and_missing_numbers_follow_ieee() -> None:
    s = Schema.parse("x double")
    k = AggregateKernel(s, [], [Aggregation.parse(n, f"{n}(x)", s) for n in ("sum", "avg", "var_pop")])
    (row,) = k.finalize(k.partial(pa.table({"x": [1.0, math.inf]}))).to_pylist()
    assert (row["sum"], row["avg"]) == (math.inf, math.inf)
    assert math.isnan(row["var_pop"])


DEVIATIONS = ("var_pop(x)", "stddev_samp(x)", "covar_pop(x, y)", "covar_samp(y, x)", "corr(x, y)")


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        ((1.0, 2.0, 6.0), (2.0, 4.0, 12.0), (14 / 3, math.sqrt(7), 28 / 3, 14.0, 1.0)),
        ((1e300, 1.0, 2.0), (1.0, 2.0, 4.0), (math.inf, math.inf, "raises", "raises", "raises")),
        ((1.7e308, -1.7e308, 0.0), (1.0, 2.0, 4.0), ("raises",) * 5),
        ((1.7e308, 1.7e308, 1.7e308), (1.0, 2.0, 4.0), ("raises",) * 5),
        # Many of them: their sum is too large, their mean is not.
        ((8e307, 8e307, 8e307), (1.0, 2.0, 4.0), (0.0, 0.0, 0.0, 0.0, None)),
        ((1.0, math.inf, 3.0), (1.0, 2.0, 5.0), (math.nan, math.nan, "raises", math.nan, math.nan)),
        ((1.0, math.nan, 1e308), (1.0, 2.0, 5.0), (math.nan,) * 5),
        # A null is no pair, whatever stands beside it.
        ((1.0, None, 3.0), (2.0, math.inf, 4.0), (1.0, math.sqrt(2), 1.0, 2.0, 1.0)),
        ((0.5, 0.5, 0.5), (2.0, math.inf, 1.0), (0.0, 0.0, math.nan, "raises", None)),
        ((0.0, 1e100, 0.0), (0.0, 1e100, 0.0), (2e200 / 9, math.sqrt(1 / 3) * 1e100, 2e200 / 9, 1e200 / 3, 0.0)),
        ((0.0, 1e-100, 0.0), (0.0, 1e-100, 0.0), (2e-200 / 9, math.sqrt(1 / 3) * 1e-100, 2e-200 / 9, 1e-200 / 3, "raises")),  # noqa: E501
    ],
)  # fmt: skip
def test_deviations_are_the_same_in_any_order_and_any_cut(
    x: tuple[float | None, ...], y: tuple[float | None, ...], expected: tuple[Any, ...]
) -> None:
    s = Schema.parse("x double, y double")
    for text, wanted in zip(DEVIATIONS, expected, strict=True):
        kernel = AggregateKernel(s, [], [Aggregation.parse("v", text, s)])
        pairs = list(zip(x, y, strict=True))
        for rows in (pairs, pairs[::-1], pairs[1:] + pairs[:1]):
            events = pa.table(dict(zip("xy", map(list, zip(*rows, strict=True)), strict=True)), schema=s.arrow)
            for cut in ((0, 3), (0, 1, 3), (0, 1, 2, 3)):
                parts = [kernel.partial(events.slice(a, b - a)) for a, b in itertools.pairwise(cut)]
                try:
                    (found,) = kernel.finalize(kernel.merge(parts))["v"].to_pylist()
                except OverflowingError:
                    found = "raises"
                if isinstance(wanted, float):
                    wanted = pytest.approx(wanted, rel=1e-12, abs=0.0, nan_ok=True)
                assert found == wanted, (text, rows, cut)


def test_close_takes_what_is_described_and_leaves_the_rest() -> None:
    k = kernel({"n": "count(*)"}, Window.tumbling("10 s"))
    times = [EPOCH + timedelta(seconds=s) for s in (-1, 1, 2, 11, 12)]
    part = k.partial(table([(t, key, 1, None, None, None) for t, key in zip(times, ["a", "a", None, "b", None])]))
    closed, rest = k.close(part, [Pattern.where(k.output_schema, window_start=at_most(EPOCH))])
    assert sorted_rows(closed, closed.column_names) == [
        (EPOCH - timedelta(seconds=10), "a", 1),
        (EPOCH, "a", 1),
        (EPOCH, None, 1),
    ]
    closed, rest = k.close(rest, [Pattern.where(k.output_schema, k=equal("b"))])
    assert (closed.num_rows, rest.num_rows) == (1, 1)
    closed, rest = k.close(rest, [Pattern.where(k.output_schema, n=greater(0))])
    assert (closed.num_rows, rest.num_rows) == (0, 1)
    closed, rest = k.close(rest, [Pattern.all(k.output_schema)])
    assert (closed["k"].to_pylist(), rest.num_rows) == ([None], 0)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-5, 30), st.sampled_from("ab"), st.integers(-9, 9)), max_size=20),
    st.lists(st.integers(1, 7), max_size=4),
)
def test_landmark_windows_grow(events: list[tuple[int, str, int]], steps: list[int]) -> None:
    s = Schema.parse("t int, k string, v int", time="t")
    window = Window.landmark(5).resolve(s)
    k = LandmarkGroups(s, ["k"], [Aggregation.parse("total", "sum(v)", s)], window)
    t, key, v = zip(*events) if events else ((), (), ())
    state = k.partial(pa.table({"t": t, "k": key, "v": v}, schema=s.arrow))
    since, got = None, []
    for end in [5 * sum(steps[: i + 1]) for i in range(len(steps))] + [200]:
        out, state = k.landmark(state, end, since)
        got += [tuple(r.values()) for r in out.to_pylist()]
        since = end
    expected = [
        (end, name, sum(e[2] for e in events if 0 <= e[0] < end and e[1] == name))
        for end in range(5, 201, 5)
        for name in "ab"
        if any(end - 5 <= e[0] < end and e[1] == name for e in events)
    ]
    assert sorted(got) == expected


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(-9, 9)), max_size=30),
    st.integers(1, 5),
    st.integers(1, 5),
    st.integers(1, 7),
)
def test_windows_by_count(events: list[tuple[str | None, int]], size: int, slide: int, epoch: int) -> None:
    s = Schema.parse("k string, v int")
    k = CountGroups(s, ["k"], [Aggregation.parse("total", "sum(v)", s)], Window.count(size, slide))
    positions, state, got = k.position_schema.empty_table(), k.partial_schema.empty_table(), []
    for i in range(0, len(events), epoch):
        key, v = zip(*events[i : i + epoch])
        delta, positions = k.count_windows(pa.table({"k": key, "v": v}, schema=s.arrow), positions)
        out, state = k.close_counted(k.merge([state, delta]), positions)
        got += [tuple(r.values()) for r in out.to_pylist()]
    expected, open_windows = [], 0
    for name in ("a", "b", None):
        values = [v for n, v in events if n == name]
        for start in range(0, len(values), slide):
            if start + size <= len(values):
                expected.append((start, name, sum(values[start : start + size])))
            else:
                open_windows += 1
    assert sorted(got, key=str) == sorted(expected, key=str)
    assert state.num_rows == open_windows


def test_a_kernel_can_be_sent_to_a_worker() -> None:
    k = kernel(AGGREGATES | FLOATS, Window.sliding("20 s", "5 s"))
    again = pickle.loads(pickle.dumps(k))
    assert again.partial_sql("SELECT 1") == k.partial_sql("SELECT 1")
    assert again.needed == ("ts", "k", "n", "price", "x", "ok")


def test_some_answers_do_without_those_that_are_too_large_for_now() -> None:
    """Looking for doomed groups must not fail where the query would not: the sum is to become less again."""
    s = Schema.parse("k int, x bigint")
    columns = [Aggregation.parse("n", "count(*)", s), Aggregation.parse("total", "sum(x)", s)]
    kernel = AggregateKernel(s, ["k"], columns)
    rows = kernel.partial(pa.table({"k": [1, 1, 2], "x": [2**62, 2**62, 5]}, schema=s.arrow))
    found = kernel.values(rows, ["n"]).sort_by("k")
    assert found.to_pydict() == {"k": [1, 2], "n": [2, 1]}
    assert found.schema == kernel.output_schema.arrow.remove(2)
    with pytest.raises(OverflowingError):
        kernel.values(rows, ["total"])
    sweep = [Pattern.parse("[*, >= 2, *]", kernel.output_schema)]
    assert [str(p) for p in doomed_groups(kernel, [rows], sweep)] == ["[1, *, *]"]


def test_landmark_windows_of_quiet_periods_cost_nothing() -> None:
    s = Schema.parse("ts timestamp, v int", "ts")
    window = Window.landmark("1 us", on="ts").resolve(s)
    k = LandmarkGroups(s, [], [Aggregation.parse("n", "count(*)", s)], window)
    events = pa.table({"ts": pa.array([0, 3_600_000_000], pa.timestamp("us")), "v": pa.array([1, 2], pa.int32())})
    answers, rest = k.landmark(k.partial(events), datetime(1970, 1, 1, 2))
    assert sorted(answers["n"].to_pylist()) == [1, 2] and rest.num_rows == 1
