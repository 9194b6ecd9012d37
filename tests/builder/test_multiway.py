"""Joins of many streams: both strategies mean the same, and mistakes are reported where they are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.builder.join_statistics import JoinStatistics
from penstock.builder.multiway import join
from penstock.builder.stream import StreamBuilder
from penstock.errors import UserError
from penstock.operators.join.operator import Join
from penstock.operators.multijoin.operator import MultiJoin
from penstock.operators.source.operator import Source
from penstock.plan.operator import Operator
from penstock.plan.plan import Plan
from penstock.portal.testing import local_session
from penstock.sql.expression import evaluate

Row = tuple[Any, ...]
STRATEGIES = ("tree", "mjoin")


def timed(name: str, schema: str = "ts timestamp, k int, v int") -> ps.Stream:
    return ps.stream(name, schema, time="ts")


A, B, C, D = (timed(n) for n in "abcd")


def joins(stream: StreamBuilder) -> list[Join]:
    return [n.operator for n in Plan.of(stream.operator) if isinstance(n.operator, Join)]


# --- names, order and times of the output ----------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_keys_come_first_and_once_and_used_names_get_a_number(strategy: Any) -> None:
    made = join(A, B, C, on="k", within="10 s", strategy=strategy)
    assert str(made.schema) == "k int, ts timestamp, v int, ts_2 timestamp, v_2 int, ts_3 timestamp, v_3 int"
    assert made.schema.times == ("ts", "ts_2", "ts_3")
    assert isinstance(made, ps.Stream)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_key_with_other_names_is_called_as_in_the_first_stream(strategy: Any) -> None:
    orders = timed("orders", "ts timestamp, order int, amount double")
    paid = timed("paid", "order_id int, ts timestamp, ORDER_2 string")
    sent = timed("sent", "ts timestamp, ref bigint, `order` string")
    made = join(orders, paid, sent, on=[("ORDER", "order_id", "ref")], within="1 h", strategy=strategy)
    assert made.schema.names == ("order", "ts", "amount", "ts_2", "ORDER_2", "ts_3", "order_3")
    assert made.schema.type_of("order") == pa.int32()


STATISTICS = JoinStatistics([1000, 1, 10, 5], keys=[10, 1000, 5, 7])


@pytest.mark.parametrize("on", ["k", ["k", "ts"], [("v", "k", "v", "k"), "ts"]])
@pytest.mark.parametrize("windows", [None, ["1 s", None, "2 s", "1 min"]])
@pytest.mark.parametrize("statistics", [None, STATISTICS])
def test_the_schema_does_not_depend_on_the_strategy(on: Any, windows: Any, statistics: JoinStatistics | None) -> None:
    tree, one = (join(A, B, C, D, on=on, windows=windows, strategy=s, statistics=statistics) for s in STRATEGIES)  # type: ignore[arg-type]
    assert (tree.schema, tree.schema.times) == (one.schema, one.schema.times)
    assert len(joins(tree)) == 3 and isinstance(one.operator, MultiJoin)


# --- the same results ------------------------------------------------------------------------------------------------


def meaning(operator: Operator, given: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """What joins mean, tried on every combination of events."""
    if isinstance(operator, Source):
        return [dict(e) for e in given[operator.name]]
    inputs = [meaning(i, given) for i in operator.inputs]
    if isinstance(operator, MultiJoin):
        found = [c for c in product(*inputs) if _together(operator, c)]
    else:
        assert isinstance(operator, Join)
        found = [c for c in product(*inputs) if _meet(operator, c)]
        if operator.residual is not None and found:
            schemas = [i.schema for i in operator.inputs]
            table = pa.table(
                {n: pa.array([c[s][a] for c in found], schemas[s].type_of(a)) for s, a, n in operator.pair}
            )
            found = [c for c, kept in zip(found, evaluate(operator.residual, table).to_pylist()) if kept]
    return [{t.name: c[t.origins[0][0]][t.origins[0][1]] for t in operator.columns} for c in found]


def tick(value: Any) -> int | None:
    if isinstance(value, datetime):
        return (value - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    return value.toordinal() if isinstance(value, date) else value


def _together(operator: MultiJoin, events: Sequence[Mapping[str, Any]]) -> bool:
    keys = [tuple(e[k] for k in names) for e, names in zip(events, operator.keys)]
    if None in keys[0] or any(k != keys[0] for k in keys):
        return False
    if all(w is None for w in operator.windows):
        return True
    times = [tick(e[t]) for e, t in zip(events, operator.times) if t is not None]
    if None in times:
        return False
    return all(
        operator.windows[i] is None or times[j] - times[i] <= operator.windows[i]  # type: ignore[operator]
        for i, j in product(range(len(times)), repeat=2)
        if times[i] <= times[j]  # type: ignore[operator]
    )


def _meet(operator: Join, events: Sequence[Mapping[str, Any]]) -> bool:
    left, right = events
    if any(left[a] is None or left[a] != right[b] for a, b in operator.keys):
        return False
    if operator.band is None:
        return True
    early, late = tick(left[operator.band.left]), tick(right[operator.band.right])
    if early is None or late is None:
        return False
    low, high = operator.band.low, operator.band.high
    return (low is None or late - early >= low) and (high is None or late - early <= high)


CLOCKS: dict[str, tuple[Callable[[int], Any], Callable[[int], Any]]] = {
    "timestamp": (lambda n: datetime(2026, 1, 1) + timedelta(seconds=n), lambda n: f"{n} s"),
    "date": (lambda n: date(2026, 1, 1) + timedelta(days=n), lambda n: f"{n} d"),
    "bigint": (lambda n: (n - 3) * 2**62 // 2 if n in (0, 6) else n, lambda n: n),
}


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[ps.Stream], dict[str, list[dict[str, Any]]], dict[str, Any], JoinStatistics]:
    count = draw(st.integers(2, 4))
    clock = draw(st.sampled_from(sorted(CLOCKS)))
    moment, extent = CLOCKS[clock]
    streams = [ps.stream(f"s{i}", f"k int, t {clock}, v int, `a b` int", time="t") for i in range(count)]
    # Few keys and moments, so that most combinations match or nearly do.
    event = st.tuples(st.sampled_from([1, 1, 1, 2, None]), st.sampled_from([*range(7), None]), st.integers(0, 1))
    events = {
        f"s{i}": [
            {"k": k, "t": None if t is None else moment(t), "v": v, "a b": n}
            for n, (k, t, v) in enumerate(draw(st.lists(event, max_size=5)))
        ]
        for i in range(count)
    }
    windows = draw(st.lists(st.one_of(st.none(), st.integers(0, 4)), min_size=count, max_size=count))
    on: Any = draw(st.sampled_from(["k", ["k", "v"], ["v", "t"], [("k", "v", "k", "v")[:count]]]))
    told = JoinStatistics(
        draw(st.lists(st.floats(1, 100), min_size=count, max_size=count)),
        keys=draw(st.lists(st.integers(1, 100), min_size=count, max_size=count)),
    )
    return streams, events, {"on": on, "windows": [None if w is None else extent(w) for w in windows]}, told


@settings(max_examples=150)
@given(cases())
def test_a_tree_means_what_one_join_means(case: Any) -> None:
    streams, events, how, statistics = case
    one = join(*streams, **how, strategy="mjoin")
    expected = sorted(map(repr, meaning(one.operator, events)))
    for told in (None, statistics):
        tree = join(*streams, **how, strategy="tree", statistics=told)
        assert sorted(map(repr, meaning(tree.operator, events))) == expected


@pytest.mark.parametrize(
    ("windows", "component", "rest"),
    [(["1 h", "10 s", None], "ts_2", "ts_3 <= ts + 1 h"), (["10 s", None, None], "ts", "")],
)
def test_state_of_a_tree_is_released_along_the_shortest_window(windows: Any, component: str, rest: str) -> None:
    upper = joins(join(A, B, C, on="k", windows=windows, strategy="tree"))[-1]
    assert upper.band is not None
    assert (upper.band.left, upper.band.right, upper.band.low, upper.band.high) == (component, "ts", None, 10_000_000)
    assert ("" if upper.residual is None else upper.residual.text) == rest


@pytest.mark.parametrize("max_rows", [20, 1000])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_both_run_to_the_same_results(strategy: Any, max_rows: int) -> None:
    columns = {"k": ("key", 5), "v": "serial"}
    streams = [
        ps.generate(n, rate=10, rows=30, seed=i, disorder="300 ms", columns=columns).ends() for i, n in enumerate("abc")
    ]
    events = {n: s.collect(spark=local_session()).to_pylist() for n, s in zip("abc", streams)}
    how: dict[str, Any] = {"on": "k", "windows": ["1 s", "500 ms", None]}
    expected = meaning(join(*streams, **how, strategy="mjoin").operator, events)
    found = join(*streams, **how, strategy=strategy).collect(spark=local_session(), max_rows=max_rows).to_pylist()
    assert len(expected) > 50
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("time", ["ts", "ts_2", "ts_3"])
def test_time_passes_through_to_windows_behind_the_join(strategy: Any, time: str) -> None:
    """Nothing says that the streams end: windows close because the join passes on how far each time has got."""
    streams = [
        ps.generate(n, rate=10, rows=60, seed=i, columns={"k": ("key", 5)}) for i, n in enumerate(("a", "b", "c"))
    ]
    joined = join(*streams, on="k", within="1 s", strategy=strategy)
    counted = joined.window("1 s", on=time).agg(n="count(*)").collect(spark=local_session(), max_rows=20)
    assert counted.num_rows >= 2


# --- the choice ------------------------------------------------------------------------------------------------------


def test_without_statistics_three_and_more_are_joined_at_once() -> None:
    assert isinstance(join(A, B, C, on="k").operator, MultiJoin)
    assert isinstance(join(A, B, on="k").operator, Join)
    assert isinstance(join(A, B, on="k", strategy="mjoin").operator, MultiJoin)
    assert [type(i) for i in join(A, B, C, on="k", strategy="tree").operator.inputs] == [Join, Source]


def test_statistics_decide_and_the_estimate_is_shown() -> None:
    rare = JoinStatistics([100, 100, 100], keys=[1e6, 1e6, 1e6], store=1, match=5, invalidate=1)
    dear_to_keep = JoinStatistics([100, 100, 100], keys=[10, 10, 10], store=50, match=1, invalidate=50)
    one = join(A, B, C, on="k", within="10 s", statistics=dear_to_keep)
    assert isinstance(one.operator, MultiJoin)
    assert "mjoin: cost" in one.explain() and "binary ((a ⋈ b) ⋈ c): cost" in one.explain()
    assert len(joins(join(A, B, C, on="k", within="10 s", statistics=rare))) == 2


def test_the_tree_of_least_cost_is_built() -> None:
    """b is by far the largest, so a and c are joined first."""
    known = JoinStatistics([1, 1000, 1], keys=[100, 100, 100])
    lower, upper = joins(join(A, B, C, on="k", within="10 s", strategy="tree", statistics=known))
    assert [i.name for i in lower.inputs if isinstance(i, Source)] == ["a", "c"]
    assert upper.inputs == (lower, B.operator)


def test_windows_become_events_by_rate() -> None:
    known = JoinStatistics([10, 20, 5], selectivities={(0, 1): 0.01, (1, 2): 0.05}, held=[None, 7, None], horizon=100)
    assert [i.window for i in known.over([10.0, 10.0, None]).inputs] == [100, 7, 500]


def test_a_stream_may_be_joined_with_itself() -> None:
    for strategy in STRATEGIES:
        made = join(A, A.where("v > 0"), A, on="k", within="1 s", strategy=strategy)  # type: ignore[arg-type]
        assert made.schema.names == ("k", "ts", "v", "ts_2", "v_2", "ts_3", "v_3")
        assert len(made.plan.sources) == 1


# --- mistakes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: join(A, on="k"), ["two streams or more", "ps.join(a, b"]),
        (lambda: join(A, B, on="kk"), ["a has no column 'kk'", "did you mean 'k'"]),
        (lambda: join(A, B.rename(k="key"), on="k"), ["b has no column 'k'", "did you mean 'key'"]),
        (lambda: join(A, B.rename(k="key"), on=["k", "key"]), ["one tuple"]),
        (lambda: join(A, B, C, on=[("k", "k")]), ["2 names for 3 inputs"]),
        (lambda: join(A, B, on=[]), ["no key"]),
        (lambda: join(A, B, on=["k", "K"]), ["'k'", "twice"]),
        (lambda: join(A, B.with_columns(k="cast(k AS string)"), on="k"), ["k int of a", "k string of b", "cast"]),
        (lambda: join(A, B, C, on="k", windows=["1 s", "1 s"]), ["2 windows for 3 inputs"]),
        (lambda: join(A, B, C, on="k", windows="1 s"), ["1 windows for 3 inputs"]),
        (lambda: join(A, B, on="k", within="1 s", windows=["1 s", "1 s"]), ["exclude"]),
        (lambda: join(A, B, on="k", within="-1 s"), ["negative"]),
        (lambda: join(A, B, on="k", within="1 parsec"), ["parsec"]),
        (lambda: join(A, B.select("k"), on="k", within="1 s"), ["which time attribute of b"]),
        (lambda: join(A, B, on="k", within="1 s", times=["ts", "tss"]), ["b has no column 'tss'", "did you mean 'ts'"]),
        (lambda: join(A, B, on="k", within="1 s", times=["ts", "v"]), ["times of different types"]),
        (lambda: join(A, B, on="k", strategy="fast"), ["fast", "mjoin"]),  # type: ignore[arg-type]
        (lambda: join(A, B, C, on="k", statistics=JoinStatistics([1, 2], keys=[1, 2])), ["2 inputs for 3"]),
        (lambda: join(A, B.window(rows=3), on="k"), ["must be followed by group_by"]),
        (lambda: JoinStatistics([1, 2]), ["how often", "keys"]),
        (lambda: JoinStatistics([1, 2], keys=[1]), ["1 keys for 2 rates"]),
        (lambda: JoinStatistics([1, 2], keys=[1, 0]), ["at least 1"]),
        (lambda: JoinStatistics([1, 2], selectivities={(0, 2): 0.5}), ["(0, 2)"]),
        (lambda: JoinStatistics([1, 2], selectivities={(0, 1): 1.5}), ["1.5"]),
    ],
)
def test_mistakes_name_what_is_wrong(build: Callable[[], object], words: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        build()
    for word in words:
        assert word in str(caught.value)
