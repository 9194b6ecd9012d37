"""Aggregates as SQL defines them, each against a value worked out by hand or by DuckDB's batch answer."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import OverflowingError
from penstock.pattern.schema import Schema
from penstock.reference.grouping import value_of
from penstock.sql.aggregation import Aggregation

SCHEMA = Schema.parse("ts int, x int, y double, d decimal(10,2), s string, b boolean", time="ts")


def value(text: str, *rows: dict[str, Any]) -> Any:
    full = [SCHEMA.event(row) for row in rows]
    return value_of(Aggregation.parse("v", text, SCHEMA, "ts"), full, SCHEMA, "ts")


def column(name: str, *values: Any) -> list[dict[str, Any]]:
    return [{"ts": i, name: v} for i, v in enumerate(values)]


@pytest.mark.parametrize(
    ("text", "rows", "expected"),
    [
        ("count(*)", column("x", 1, None), 2),
        ("count(x)", column("x", 1, None), 1),
        ("count(distinct x)", column("x", 1, 1, 2, None), 2),
        ("count(distinct y)", column("y", math.nan, math.nan, 0.0, -0.0), 2),
        ("sum(x)", column("x", None, None), None),
        ("avg(x)", [], None),
        ("avg(x)", column("x", 1, 2, None), 1.5),
        ("sum(y)", column("y", *[0.1] * 10), 1.0),
        ("sum(y)", column("y", 1e308, 1e308, -1e308), 1e308),
        ("sum(d)", column("d", Decimal("0.10"), Decimal("0.20")), Decimal("0.30")),
        ("var_samp(x)", column("x", 5), None),
        ("var_samp(x)", column("x", 1, 2, 3, 4), 5 / 3),
        ("var_pop(x)", column("x", 5), 0.0),
        ("stddev(x)", column("x", 1, 3), math.sqrt(2)),
        ("min(s)", column("s", "b", "a", None), "a"),
        ("max(s)", column("s", "b", "ä"), "ä"),
        ("max(y)", column("y", 1.0, math.inf), math.inf),
        ("bool_and(b)", column("b", True, None), True),
        ("bool_or(b)", [], None),
        ("bit_xor(x)", column("x", 5, 3), 6),
        ("first(x)", [{"ts": 2, "x": 1}, {"ts": 1, "x": 9}, {"ts": 1, "x": 7}, {"ts": 0}], 7),
        ("last(x)", [{"ts": 2, "x": 1}, {"ts": 2, "x": 9}, {"ts": 3}], 9),
        ("max_by(s, x)", [{"x": 2, "s": "a"}, {"x": 2, "s": "c"}, {"x": 1, "s": "z"}], "c"),
        ("sum(x) filter (where s = 'a')", [{"x": 2, "s": "a"}, {"x": 5, "s": "b"}, {"x": 1}], 2),
        ("sum(x) / count(*)", column("x", 3, None), 1.5),
        ("sum(x) / count(*)", [], None),
        ("coalesce(sum(x), 0) + 1", [], 1),
        ("sum(x * 2 + 1)", column("x", 1, 2, None), 8),
        ("corr(x, y)", [{"x": 1, "y": 2.0}, {"x": 2, "y": 4.0}, {"x": None, "y": 1.0}], 1.0),
        ("corr(x, y)", [{"x": 1, "y": 2.0}, {"x": 1, "y": math.inf}], None),
        ("corr(y, y)", column("y", 0.0, 1e100), 0.0),
        ("stddev_pop(y)", column("y", 1e300, 1.0), math.inf),
        ("covar_pop(x, y)", [{"x": 1, "y": 2.0}, {"x": 2, "y": 5.0}, {"x": None, "y": math.inf}], 0.75),
    ],
)
def test_by_definition(text: str, rows: list[dict[str, Any]], expected: Any) -> None:
    found = value(text, *rows)
    assert found == (pytest.approx(expected, rel=1e-12) if isinstance(expected, float) else expected)
    assert type(found) is type(expected)


def test_a_sum_that_does_not_fit_is_an_error() -> None:
    schema = Schema.parse("x bigint")
    rows = [{"x": 2**62}, {"x": 2**62}]
    with pytest.raises(OverflowingError, match="too large"):
        value_of(Aggregation.parse("v", "sum(x)", schema), rows, schema)
    # One that fits in the end does, whatever it passed on the way.
    assert value_of(Aggregation.parse("v", "sum(x)", schema), [*rows, {"x": -1}], schema) == 2**63 - 1


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("var_pop(y)", (1e308, 1.0)),
        ("covar_pop(y, ts)", (1.0, math.inf)),
        ("covar_samp(ts, y)", (1e300, 1.0)),
        ("corr(ts, y)", (1e300, 1.0)),
        ("corr(y, y)", (0.0, 1e-100)),
    ],
)
def test_deviations_that_depend_on_the_order_are_an_error(text: str, values: tuple[float, ...]) -> None:
    with pytest.raises(OverflowingError):
        value(text, *column("y", *values))


FUNCTIONS = ["count(x)", "count(distinct x)", "sum(x)", "avg(x)", "min(x)", "max(x)", "var_samp(x)", "var_pop(x)"]


@given(values=st.lists(st.none() | st.integers(-1000, 1000), max_size=12), text=st.sampled_from(FUNCTIONS))
@settings(max_examples=60, deadline=None)
def test_agrees_with_the_batch_answer(values: list[int | None], text: str) -> None:
    table = pa.table({"x": pa.array(values, pa.int32())})
    connection = duckdb.connect(":memory:")
    connection.register("t", table)
    (expected,) = connection.execute(f"SELECT {text} FROM t").fetchall()[0]
    found = value(text, *({"x": v} for v in values))
    assert found == (None if expected is None else pytest.approx(expected, rel=1e-12, abs=1e-12))
