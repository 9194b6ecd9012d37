"""The stream–table join by its SQL, against the definition: one event and one row at a time."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.builder.lookup import lookup
from penstock.errors import UserError
from penstock.kernels.duck import query
from penstock.operators.lookup.kernel import DEEP, FROM, TO, LookupKernel, deepest, prepare
from penstock.operators.lookup.operator import TableJoin
from penstock.operators.lookup.reference import TableJoinReference as ByDefinition
from penstock.operators.source.operator import Source
from penstock.pattern.schema import Schema
from penstock.plan.table import Table, table
from penstock.reference.item import Event, events

EVENTS = Schema.parse("k string, t int, n int", time="t")
PLAIN = table("plain", "k string, x int", key="k").read_parquet("in")
VERSIONED = table("versioned", "k string, f int, x int", key="k", version="f").read_parquet("in")
ENDING = table("ending", "k string, f int, u int, x int", key="k", version="f", until="u").read_parquet("in")

keys = st.sampled_from(["a", "b", None])
times = st.integers(0, 12)
stream = st.lists(
    st.fixed_dictionaries({"k": keys, "t": st.none() | times, "n": st.integers(0, 3)}), min_size=1, max_size=20
)


def rows_of(declared: Table) -> st.SearchStrategy[list[dict[str, Any]]]:
    columns = {"k": keys, "f": times, "u": st.none() | times, "x": st.none() | st.integers(0, 3)}
    row = st.fixed_dictionaries({n: columns[n] for n in declared.schema.names})
    if declared.version is None:
        return st.lists(row, max_size=12)
    return st.lists(row, max_size=12, unique_by=lambda r: (r["k"], r["f"]))


def joined(operator: TableJoin, rows: list[dict[str, Any]], arrived: list[dict[str, Any]], deep: int) -> pa.Table:
    prepared = prepare(operator.table, pa.Table.from_pylist(rows, operator.table.schema.arrow))
    sql = LookupKernel(operator).sql("SELECT * FROM events", "the-table", deep)
    found = query(sql, **{"events": pa.Table.from_pylist(arrived, EVENTS.arrow), "the-table": prepared})
    assert found.schema.equals(operator.schema.arrow)
    return found


def bag(rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(r.values()) for r in rows)


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("declared", [PLAIN, VERSIONED, ENDING], ids=lambda t: t.name)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_the_join_is_what_it_is_defined_to_be(declared: Table, how: str, data: st.DataObject) -> None:
    operator = lookup(Source((), EVENTS, name="s"), declared, how=how, columns=["x", "k"])
    rows, arrived = data.draw(rows_of(declared)), data.draw(stream)
    by_definition = ByDefinition(operator, rows)
    wanted = [row for e in arrived for row in events(by_definition.on_event(Event(e)))]
    for deep in (1, DEEP + 1):  # Versions are found by hash, or by sorting: the answer is the same.
        assert bag(joined(operator, rows, arrived, deep).to_pylist()) == bag(wanted)


@settings(max_examples=40, deadline=None)
@given(rows=rows_of(ENDING))
def test_stretches_of_a_key_do_not_overlap(rows: list[dict[str, Any]]) -> None:
    prepared = prepare(ENDING, pa.Table.from_pylist(rows, ENDING.schema.arrow)).to_pylist()
    for before, after in pairwise(prepared):
        assert before["k"] < after["k"] or (before[TO] is not None and before[FROM] < before[TO] <= after[FROM])


def test_a_price_comes_back_when_the_offer_is_over() -> None:
    operator = lookup(Source((), EVENTS, name="s"), ENDING, columns=["x"])
    rows = [{"k": "a", "f": 0, "u": None, "x": 100}, {"k": "a", "f": 5, "u": 8, "x": 80}]
    arrived = [{"k": "a", "t": t, "n": 0} for t in (-1, 0, 4, 5, 7, 8, 99)]
    for deep in (1, DEEP + 1):
        found = joined(operator, rows, arrived, deep).to_pylist()
        assert {r["t"]: r["x"] for r in found} == {0: 100, 4: 100, 5: 80, 7: 80, 8: 100, 99: 100}


def test_deepest_counts_the_versions_of_the_key_with_the_most() -> None:
    rows = [{"k": "a", "f": i, "x": i} for i in range(5)] + [{"k": "b", "f": 0, "x": 0}]
    assert deepest(prepare(VERSIONED, pa.Table.from_pylist(rows, VERSIONED.schema.arrow))) == 5
    assert deepest(prepare(VERSIONED, VERSIONED.schema.arrow.empty_table())) == 0
    assert deepest(prepare(PLAIN, PLAIN.schema.arrow.empty_table())) == 1


def test_two_rows_of_one_version_are_named() -> None:
    rows = [
        {"k": "a", "f": 3, "x": 1},
        {"k": "a", "f": 3, "x": 2},
        {"k": None, "f": 3, "x": 1},
        {"k": None, "f": 3, "x": 1},
    ]
    with pytest.raises(UserError, match=r"table 'versioned': several rows of one version: k a, f 3\. "):
        prepare(VERSIONED, pa.Table.from_pylist(rows, VERSIONED.schema.arrow))
    with pytest.raises(UserError, match="several rows"):
        ByDefinition(lookup(Source((), EVENTS, name="s"), VERSIONED), rows)


def test_a_version_that_is_null_is_no_version() -> None:
    rows = [{"k": "a", "f": None, "x": 1}]
    with pytest.raises(UserError, match="'f' is null in the row with k a"):
        prepare(VERSIONED, pa.Table.from_pylist(rows, VERSIONED.schema.arrow))


@pytest.mark.parametrize("t", ["timestamp", "date", "bigint", "tinyint"])
def test_times_of_every_type(t: str) -> None:
    declared = table("v", f"k int, f {t}, u {t}, x double", key="k", version="f", until="u").read_csv("in")
    events = Schema.parse(f"id bigint, t {'int' if t == 'tinyint' else t}", time="t")
    operator = lookup(Source((), events, name="s"), declared, {"id": "k"}, "left", columns=["x"])
    of = (lambda n: n) if t.endswith("int") else (lambda n: f"2026-01-{n:02}")
    rows = [(7, of(2), of(5), 0.5), (7, of(5), None, float("nan"))]
    stored = pa.Table.from_pylist([declared.schema.event(r) for r in rows], declared.schema.arrow)
    arrived = pa.Table.from_pylist([events.event((7, of(n))) for n in (1, 2, 4, 5)], events.arrow)
    for deep in (1, DEEP + 1):
        sql = LookupKernel(operator).sql("SELECT * FROM e", "r", deep)
        found = query(f"SELECT * FROM ({sql}) ORDER BY t", e=arrived, r=prepare(declared, stored))
        assert [str(x) for x in found["x"].to_pylist()] == ["None", "0.5", "0.5", "nan"]


def test_keys_of_several_columns_with_odd_names() -> None:
    declared = table("t", '`a b` int, `c"d` string, `select` int', key=["a b", 'c"d']).read_csv("in")
    operator = lookup(Source((), Schema.parse('`a b` int, `c"d` string, `select` int')), declared)
    rows = pa.table([[1, 1, None], ["x", "y", "x"], [10, 20, 30]], schema=declared.schema.arrow)
    arrived = pa.table([[1, 1, None], ["y", None, "x"], [0, 0, 0]], schema=operator.inputs[0].schema.arrow)
    found = query(LookupKernel(operator).sql("SELECT * FROM e", "r"), e=arrived, r=prepare(declared, rows))
    assert found.to_pylist() == [{"a b": 1, 'c"d': "y", "select": 0, "select_t": 20}]
