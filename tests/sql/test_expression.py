"""Expressions: Spark SQL in, checked DuckDB SQL out."""

from __future__ import annotations

import math
import pickle
import threading
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import UserError
from penstock.pattern.schema import Schema
from penstock.pattern.types import type_text
from penstock.sql.connection import connection
from penstock.sql.expression import Expression, evaluate, evaluate_row

SCHEMA = Schema.parse(
    "ts timestamp, d date, a int, b int, big bigint, x double, s string, m decimal(10,2), ok boolean, "
    "`wind speed` double"
)
ROW = {
    "ts": datetime(2026, 1, 31, 10, 20, 30, 500000), "d": date(2026, 1, 31), "a": 7, "b": 2, "big": 2**40, "x": 2.75,
    "s": "a,b", "m": Decimal("12.50"), "ok": True, "wind speed": 3.0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "t", "value"),
    [
        ("a / b", "double", 3.5),
        ("try_divide(a, 0)", "double", None),
        ("try_divide(x, b - 2)", "double", None),
        ("try_mod(a, 0)", "int", None),
        ("a % b + 1", "int", 2),
        ("a div b", "bigint", 3),
        ("pmod(-a, 4)", "int", 1),
        ("mod(a, 4)", "int", 3),
        ("cast(x as int)", "int", 2),
        ("int(-2.75)", "int", -2),
        ("cast(m as bigint)", "bigint", 12),
        ("cast('12' as int)", "int", 12),
        ("try_cast(s as int)", "int", None),
        ("cast(ts as bigint)", "bigint", 1769854830),
        ("cast(ts as double)", "double", 1769854830.5),
        ("cast(1769854830 as timestamp)", "timestamp", datetime(2026, 1, 31, 10, 20, 30)),
        ("unix_timestamp(ts)", "bigint", 1769854830),
        ("floor(x)", "bigint", 2),
        ("ceil(x) + 1", "bigint", 4),
        ("ln(a - 7)", "double", None),
        ("log(2, 8)", "double", 3.0),
        ("log10(100)", "double", 2.0),
        ("sqrt(a + 2)", "double", 3.0),
        ("date_add(d, 1)", "date", date(2026, 2, 1)),
        ("add_months(d, 1)", "date", date(2026, 2, 28)),
        ("datediff(d, date '2026-01-01')", "int", 30),
        ("dayofweek(d)", "int", 7),
        ("date_trunc('hour', ts)", "timestamp", datetime(2026, 1, 31, 10)),
        ("ts + interval 1 hour", "timestamp", datetime(2026, 1, 31, 11, 20, 30, 500000)),
        ("ts >= timestamp '2026-01-31 10:20:30'", "boolean", True),
        ("ts < '2026-01-31 10:20:30'", "boolean", False),
        ("ts > '2026-01-31 12:20:30+02:00'", "boolean", True),
        ("ts between '2026-01-31 12:20:30+02:00' and '2026-01-31 12:20:31+02:00'", "boolean", True),
        ("date_format(ts, 'yyyy-MM-dd HH:mm')", "string", "2026-01-31 10:20"),
        ("hour(ts)", "int", 10),
        ("if(a > 1, 'x', 'y')", "string", "x"),
        ("nvl(nullif(a, 7), b)", "int", 2),
        ("a <=> null", "boolean", False),
        ("s || 'x'", "string", "a,bx"),
        ("split(s, ',')[0]", "string", "a"),
        ("size(split(s, ','))", "int", 2),
        ("s rlike '^a'", "boolean", True),
        ("`wind speed` * 2", "double", 6.0),
        ("A + B", "int", 9),
        ("m * 2", None, Decimal("25.00")),
        ("a = 7 and not ok or b in (1, 2)", "boolean", True),
        ("case when a > 5 then 'hi' else 'lo' end", "string", "hi"),
        ("a /* why */ + 1 -- end", "int", 8),
        ('s = "a,b"', "boolean", True),
        ("cast('2026-01-01 00:00:00+02:00' as timestamp)", "timestamp", datetime(2025, 12, 31, 22)),
        ("cast('2026-01-01 00:00:00Z' as timestamp)", "timestamp", datetime(2026, 1, 1)),
        ("cast('2026-01-01' as timestamp)", "timestamp", datetime(2026, 1, 1)),
        ("cast(concat('2026-01-01 00:00:00', '+02:00') as timestamp)", "timestamp", datetime(2025, 12, 31, 22)),
        ("cast(1.5D as timestamp)", "timestamp", datetime(1970, 1, 1, 0, 0, 1, 500000)),
        ("timestamp_millis(1500)", "timestamp", datetime(1970, 1, 1, 0, 0, 1, 500000)),
        ("unix_seconds(ts + interval 400 milliseconds)", "bigint", 1769854830),
        ("weekday(d)", "int", 5),
        ("extract(dow from d)", "int", 7),
        ("date_part('dow', ts)", "int", 7),
        ("date_part('hour', ts)", "int", 10),
        ("dateadd(day, 1, d)", "timestamp", datetime(2026, 2, 1)),
        ("d + interval 1 day", "date", date(2026, 2, 1)),
        ("d - interval 1 hour", "timestamp", datetime(2026, 1, 30, 23)),
        ("substring(s, 0, 2)", "string", "a,"),
        ("bigint(x)", "bigint", 2),
        ("isnotnull(a) and not isnull(b)", "boolean", True),
        ("nanvl(cast('nan' as double), 1.5D)", "double", 1.5),
        ("rint(x)", "double", 3.0),
        ("s = 'O''Brien' or s != 'O''Brien'", "boolean", True),
        ("'O''Brien'", "string", "O'Brien"),
        ("1.0 / 3", "decimal(7,6)", Decimal("0.333333")),
        ("md5('a')", "string", "0cc175b9c0f1b6a831c399e269772661"),
    ],
)
def test_spark_sql(text: str, t: str | None, value: Any) -> None:
    e = Expression.parse(text, SCHEMA)
    assert evaluate_row(e, ROW) == value
    if t:
        assert type_text(e.type) == t


def test_columns_are_normalised_and_quoted() -> None:
    e = Expression.parse("  A + `Wind Speed`", SCHEMA)
    assert e.columns == {"a", "wind speed"}
    assert e.sql == '"a" + "wind speed"'
    assert e.text == "A + `Wind Speed`"
    assert pickle.loads(pickle.dumps(e)) == e
    assert hash(e) == hash(Expression.parse(e.text, SCHEMA))


def test_odd_names() -> None:
    schema = Schema.parse('`say "hi"` int, `select` int, `Größe` int')
    e = Expression.parse('`say "hi"` + `select` + `Größe`', schema)
    assert evaluate_row(e, {'say "hi"': 1, "select": 2, "Größe": 3}) == 6


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("sped > 3", "unknown column 'sped'", "There are: ts"),
        ("t.a > 3", "'t.a'", "write 'a' without a prefix"),
        ("uper(s)", "function 'uper' in .* is not available", "did you mean 'upper'"),
        ("xxhash46(s)", "function 'xxhash46' in .* is not available", ""),
        ("soundex(s)", "function 'soundex' in .* is not available", ""),
        ("nanvl(s)", "nanvl", ""),
        ("hash(a)", "function 'hash'", "md5"),
        ("datediff(d)", "datediff", "datediff(date, date)"),
        ("map(b)", "function 'map'", ""),
        ("(" * 1600 + "a" + ")" * 1600, "nested too deeply", "in steps"),
        ("not " * 1600 + "ok", "nested too deeply", "in steps"),
        ("-" * 1600 + "a", "nested too deeply|syntax|not closed|empty|comment|is not an expression", ""),
        ("s = '\ud800'", "lone surrogate", ""),
        ("s like a", "not a literal", ""),
        ("s + 1", "cast the string", ""),
        ("i" * 60_000, "60,000 characters", ""),
        ("a & b | a", "mixed", "parentheses"),
        ("s rlike '(?=a)'", "not available", ""),
        ("date_format(ts, 'w')", "'w' in the pattern", ""),
        ("cast(d as int)", "cannot be cast", "unix_date"),
        ("collect_list(a)", "aggregate function 'collect_list'", "agg"),
        ("explode(array(a))", "several rows", "map"),
        ("unnest(array(a))", "several rows|not a function of one event|not available|unknown", ""),
        ("window(ts, '1 minute')", "window", "use .window"),
        ("sum(a)", "aggregate function 'sum'", "agg"),
        ("count(*)", "aggregate function 'count'", "agg"),
        ("arg_max(a, b)", "aggregate function", "agg"),
        ("histogram(a)", "histogram", ""),
        ("sum(a) over ()", "window function", "window"),
        ("row_number() over (order by a)", "window function", ""),
        ("(select 1)", "subquery", "one event"),
        ("a in (select 1)", "subquery", "one event"),
        ("exists (select 1)", "subquery", "one event"),
        ("select a", "subquery", ""),
        ("*", "'\\*'", "one by one"),
        ("upper(*)", "'\\*'", ""),
        ("a as b", "names its result", "leave out 'AS b'"),
        ("a; b", "not an expression", ""),
        ("drop table x", "not an expression", ""),
        ("a +", "syntax error in 'a \\+' at line 1", ""),
        ("a + + * )", "syntax error", ""),
        ("'abc", "not closed", "close it"),
        ("(a", "syntax error", ""),
        ("", "empty", ""),
        ("s + interval", "interval", ""),
        ("a > ?", "parameter", "value itself"),
        ("ts - ts", "is an interval", "timestampdiff"),
        ("split(s, ',')", "has type array", "cast it"),
        ("null", "has type null", "cast it"),
        ("upper(a, b, s)", "upper", ""),
        ("a > d + ok", "date and a boolean", ""),
    ],
)
def test_mistakes_are_one_line_user_errors(text: str, message: str, hint: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        Expression.parse(text, SCHEMA, where="select 'slow'")
    assert str(caught.value).startswith("select 'slow': ")
    assert "\n" not in str(caught.value)
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    "text",
    [
        "rand()", "rand(42)", "random()", "randn()", "uuid()", "now()", "current_timestamp", "current_timestamp()",
        "current_date", "current_date()", "curdate()", "localtimestamp()", "unix_timestamp()", "today()",
        "gen_random_uuid()", "monotonically_increasing_id()", "age(ts)", "nextval('s')", "a + cast(rand() as int)",
        "current_setting('threads')", "get_current_timestamp()", "transaction_timestamp()", "uuidv7()",
        "current_user", "current_schema()", "txid_current()", "getvariable('v')",
    ],
)  # fmt: skip
def test_whatever_a_replay_cannot_repeat_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="another value each time"):
        Expression.parse(text, SCHEMA)


def test_predicates_are_boolean() -> None:
    assert Expression.predicate("a > 3", SCHEMA).type == pa.bool_()
    with pytest.raises(UserError, match="has type int and is not a condition"):
        Expression.predicate("a + 3", SCHEMA)


def test_long_texts_are_not_made_by_mistake() -> None:
    with pytest.raises(UserError, match="has no value"):
        Expression.parse("repeat('x', 1000000000)", SCHEMA)
    e = Expression.parse("repeat(s, 1000000000)", SCHEMA)
    with pytest.raises(duckdb.Error, match="not made"):
        evaluate_row(e, ROW)


def test_many_terms_are_no_nesting() -> None:
    many = " or ".join(f"a = {n}" for n in range(900))
    assert evaluate_row(Expression.predicate(many, SCHEMA), ROW) is True


def test_plain_expressions_stay_plain() -> None:
    for text, sql in {
        "x >= 0": '"x" >= 0',
        "a + 1": 'add("a", 1)',
        "x * 2": '"x" * 2',
        "x > 1.5": '"x" > 1.5e0',
        "a % 3": '"a" % 3',
        "a between 1 and 5": '"a" BETWEEN 1 AND 5',
        "a in (1, 2)": '"a" IN (1, 2)',
        "x / 2": '"x" / 2e0',
    }.items():
        assert Expression.parse(text, SCHEMA).sql == sql


def test_expressions_reach_no_files() -> None:
    with pytest.raises(duckdb.Error, match="disabled"):
        connection().execute("SELECT * FROM read_csv('/etc/passwd')")
    with pytest.raises(duckdb.Error, match="locked"):
        connection().execute("SET enable_external_access = true")


def test_evaluation_keeps_the_order_and_takes_chunks() -> None:
    table = pa.concat_tables([pa.table({"a": pa.array([i], pa.int32()), "xs": [[1]]}) for i in range(100)])
    result = evaluate(Expression.parse("a * 2", SCHEMA), table)
    assert result.to_pylist() == [2 * i for i in range(100)]
    assert result.type == pa.int32()
    assert evaluate(Expression.parse("1", SCHEMA), table).to_pylist() == [1] * 100
    assert evaluate(Expression.parse("a", SCHEMA), table.slice(0, 0)).to_pylist() == []


def test_expressions_can_be_read_in_many_threads() -> None:
    results: list[Any] = []
    threads = [
        threading.Thread(target=lambda: results.append(evaluate_row(Expression.parse("a + b", SCHEMA), ROW)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [9] * 8


numbers = st.integers(-5, 5)


@given(numbers, numbers, st.sampled_from(["/", "%", "div"]))
def test_only_division_by_zero_fails(a: int, b: int, operator: str) -> None:
    e = Expression.parse(f"a {operator} b", SCHEMA)
    if b == 0:
        with pytest.raises(duckdb.Error, match="by zero"):
            evaluate_row(e, {"a": a, "b": b})
    else:
        value = evaluate_row(e, {"a": a, "b": b})
        assert value == {"/": a / b, "%": math.fmod(a, b), "div": math.trunc(a / b)}[operator]
