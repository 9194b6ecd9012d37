"""Aggregates as text: what is understood, what is shared, what is refused and with which words."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.errors import UserError
from penstock.pattern.schema import Schema
from penstock.sql.aggregation import Aggregation, decompose

EVENTS = Schema.parse(
    "ts timestamp, k string, n int, big bigint, price decimal(10,2), x double, f float, ok boolean, `od d` int",
    time="ts",
)


def parsed(text: str, time: str | None = "ts", keys: tuple[str, ...] = ("k",)) -> Aggregation:
    return Aggregation.parse("a", text, EVENTS, time, keys=keys)


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("count(*)", pa.int64()),
        ("count(distinct k)", pa.int64()),
        ("count(distinct k, n)", pa.int64()),
        ("count_if(x > 0)", pa.int64()),
        ("sum(n)", pa.int64()),
        ("sum(big)", pa.int64()),
        ("sum(price)", pa.decimal128(20, 2)),
        ("sum(cast(big as decimal(38,0)))", pa.decimal128(38, 0)),
        ("sum(x)", pa.float64()),
        ("sum(f)", pa.float64()),
        ("avg(n)", pa.float64()),
        ("mean(x)", pa.float64()),
        ("min(k)", pa.string()),
        ("max(ts)", pa.timestamp("us")),
        ("max(distinct n)", pa.int32()),
        ("first(k)", pa.string()),
        ("last_value(n, true)", pa.int32()),
        ("max_by(k, x)", pa.string()),
        ("every(ok)", pa.bool_()),
        ("any(ok)", pa.bool_()),
        ("bit_xor(n)", pa.int32()),
        ("std(n)", pa.float64()),
        ("corr(n, x)", pa.float64()),
        ("sum(n) / count(*)", pa.float64()),
        ("round(avg(x), 2) + count(*)", pa.float64()),
        ("concat(k, ':', count(*))", pa.string()),
        ("sum(`od d`)", pa.int64()),
        ("SUM(X) FILTER (WHERE N > 0)", pa.float64()),
    ],
)
def test_type_of_the_answer(text: str, type_: pa.DataType) -> None:
    assert parsed(text).type == type_


def test_partials_are_shared() -> None:
    parts = decompose([parsed(t) for t in ("avg(x)", "sum(x)", "count(x)", "sum(x) / count(*)", "sum(n)")])
    assert [p.column for p in parts.partials] == ["__p0", "__p1", "__p2", "__p3"]
    assert parts.finals[1][1] == '("__p0")'
    assert parts.finals[4][1] == '(CAST("__p3" AS BIGINT))'


def test_columns_that_are_looked_at() -> None:
    assert parsed("sum(x) FILTER (WHERE n > 0) + first(f)").columns == {"x", "n", "f", "ts"}
    assert parsed("count(*)").columns == frozenset()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("median(x)", "'median' in 'median\\(x\\)' cannot be put together from parts. Hint: use avg\\(x\\)"),
        ("percentile(x, 0.5)", "cannot be put together"),
        ("mode(x)", "cannot be put together"),
        ("array_agg(x)", "cannot be put together"),
        ("string_agg(k, ',')", "cannot be put together"),
        ("product(x)", "exp\\(sum\\(ln\\(x\\)\\)\\)"),
        ("approx_count_distinct(x)", "is not exact. Hint: use count\\(distinct x\\)"),
        ("averge(x)", "unknown aggregate 'averge'.*did you mean 'avg'"),
        ("sum(nn)", "unknown column 'nn'.*did you mean 'n'"),
        ("sum(sqroot(x))", "'sqroot'.*not available.*sqrt"),
        ("sum(sum(x))", "an aggregate inside an aggregate"),
        ("x + sum(x)", "'x' in .* is neither aggregated nor a group key"),
        ("zz + sum(x)", "unknown column 'zz'"),
        ("x", "aggregates nothing"),
        ("sum(k)", "of a string"),
        ("bool_and(n)", "it needs a condition"),
        ("bit_and(x)", "it needs whole numbers"),
        ("sum(distinct x)", "sum\\(distinct"),
        ("min_by(x)", "lacks an argument"),
        ("sum(x", "syntax error"),
        ("sum(x) over (partition by k)", "window function"),
        ("sum(rand())", "another value each time"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parsed(text)


def test_first_needs_a_time() -> None:
    with pytest.raises(UserError, match="needs a time attribute"):
        parsed("first(x)", time=None)
