"""Schemas and the types of their attributes."""

from __future__ import annotations

import json
import math
import pickle
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import SchemaError, UserError
from penstock.pattern.schema import Attribute, Schema
from penstock.pattern.types import (
    TIMESTAMP,
    coerce_value,
    duckdb_type,
    parse_type,
    sql_literal,
    type_text,
    value_from_json,
    value_to_json,
)

TYPES = [
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal(12,2)",
    "decimal(38,38)",
    "string",
]
TYPES += ["binary", "date", "timestamp"]

VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.decimal128(38, 5): st.decimals(-(10**33) + 1, 10**33 - 1, places=5),
    pa.string(): st.text(),
    pa.binary(): st.binary(),
    pa.date32(): st.dates(),
    TIMESTAMP: st.datetimes(),
}


@pytest.mark.parametrize("text", TYPES)
def test_types_round_trip_through_text_and_duckdb(text: str) -> None:
    t = parse_type(text)
    assert type_text(t) == text
    made = duckdb.sql(f"SELECT CAST(NULL AS {duckdb_type(t)}) AS v").to_arrow_table().schema.field(0).type
    assert made == t


@pytest.mark.parametrize(
    ("alias", "meant"),
    [
        ("INTEGER", "int"),
        ("real", "float"),
        ("varchar(20)", "string"),
        ("Decimal", "decimal(10,0)"),
        ("long", "bigint"),
    ],
)
def test_type_aliases(alias: str, meant: str) -> None:
    assert type_text(parse_type(alias)) == meant


@pytest.mark.parametrize("text", ["bigit", "int(3)", "decimal(39,0)", "decimal(3,4)", "", "array<int>", "decimal(a)"])
def test_bad_types_are_user_errors(text: str) -> None:
    with pytest.raises(UserError):
        parse_type(text)


@given(st.data())
def test_values_round_trip_through_json_and_sql(data: st.DataObject) -> None:
    t = data.draw(st.sampled_from(list(VALUES)))
    value = coerce_value(data.draw(VALUES[t]), t)
    back = value_from_json(json.loads(json.dumps(value_to_json(value))), t)
    assert type(back) is type(value)
    assert back == value or (math.isnan(back) and math.isnan(value))
    assert str(back) == str(value)  # Also the sign of zero and the digits of a decimal.
    in_sql = duckdb.sql(f"SELECT {sql_literal(value, t)} AS v").to_arrow_table().cast(pa.schema([("v", t)]))
    assert pa.array([value], t).equals(in_sql.column(0).chunk(0)) or math.isnan(value)


@pytest.mark.parametrize(
    ("value", "t", "expected"),
    [
        ("2010-04-01 9:00:00", "timestamp", datetime(2010, 4, 1, 9)),
        ("2026-01-01", "timestamp", datetime(2026, 1, 1)),
        (datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=2))), "timestamp", datetime(2026, 1, 1, 10)),
        (datetime(2026, 1, 1, tzinfo=UTC), "timestamp", datetime(2026, 1, 1)),
        (date(2026, 1, 1), "timestamp", datetime(2026, 1, 1)),
        ("2026-01-01", "date", date(2026, 1, 1)),
        (3.0, "int", 3),
        (3, "double", 3.0),
        (0.1, "float", 0.10000000149011612),
        (1.5, "decimal(5,2)", Decimal("1.50")),
        (pa.scalar(7), "int", 7),
    ],
)
def test_coercion(value: object, t: str, expected: object) -> None:
    assert repr(coerce_value(value, parse_type(t))) == repr(expected)


@pytest.mark.parametrize(
    ("value", "t"),
    [
        (None, "int"), (128, "tinyint"), (1.5, "int"), (math.inf, "int"), (math.nan, "int"), (True, "int"),
        ("3", "int"),
        ("hot", "double"), (Decimal("1.005"), "decimal(5,2)"), (10**9, "decimal(5,2)"), (math.inf, "decimal(5,2)"),
        ("2026-13-01", "timestamp"), ("10:00", "timestamp"), ("2026-01-01 10:00:00.1234567", "timestamp"),
        (datetime(2026, 1, 1), "date"), ("2026-01-01 10:00:00", "date"), ("\ud800", "string"), (1, "boolean"),
        (10**400, "double"), ("a", "binary"), (1e39, "float"),
    ],
)  # fmt: skip
def test_values_outside_a_type_are_user_errors(value: object, t: str) -> None:
    with pytest.raises(UserError, match="is not of type"):
        coerce_value(value, parse_type(t))


def test_schema_reads_and_prints_its_declaration() -> None:
    s = Schema.parse("ts timestamp, `wind speed` decimal(5, 1), n: int", time="ts")
    assert s.names == ("ts", "wind speed", "n")
    assert str(s) == "ts timestamp, `wind speed` decimal(5,1), n int"
    assert Schema.parse(str(s), time=s.times) == s
    assert Schema.from_json(json.loads(json.dumps(s.to_json()))) == s
    assert pickle.loads(pickle.dumps(s)) == s
    assert hash(s) == hash(Schema.parse(str(s), time="ts"))
    assert Schema.of(s.arrow, times=("ts",)) == s
    assert s.index("n") == 2
    assert "n" in s
    assert "m" not in s
    assert s.type_of("n") == pa.int32()


def test_schemas_derive() -> None:
    s = Schema.parse("a int, b bigint, c string", time=("a", "b"))
    assert s.select(["c", "b"]) == Schema.parse("c string, b bigint", time="b")
    assert s.extend([Attribute("d", pa.date32())]).names == ("a", "b", "c", "d")
    assert s.rename({"a": "t"}) == Schema.parse("t int, b bigint, c string", time=("t", "b"))


@pytest.mark.parametrize(
    ("text", "time", "message"),
    [
        ("", None, "at least one"),
        ("a int, a int", None, "duplicate attribute 'a'"),
        ("a int, A int", None, "duplicate attribute 'a' and 'A'"),
        ("__a int", None, "reserved"),
        ("a", None, "cannot read 'a'"),
        ("a int b int", None, "unknown type 'int b int'"),
        ("a int,", None, "cannot read ''"),
        ("a double", "a", "time attribute 'a' is a double"),
        ("a int", "b", "no attribute 'b'"),
        ("a int", ("a", "a"), "named twice"),
    ],
)
def test_bad_schemas_are_user_errors(text: str, time: str | tuple[str, ...] | None, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Schema.parse(text, time=time)


def test_arrow_types_that_no_attribute_has_are_named() -> None:
    with pytest.raises(UserError, match="attribute 'xs'"):
        Schema.of(pa.schema([("xs", pa.list_(pa.int8()))]))


def test_events_have_the_schema_s_arity_and_domains() -> None:
    sensor = Schema.parse("time timestamp, id int, temperature double", time="time")
    assert sensor.event(("2010-04-01 10:00:00", 4, 76.5))["id"] == 4
    with pytest.raises(SchemaError, match="2 values for 3 attributes"):
        sensor.event((4, 76.5))
    with pytest.raises(SchemaError, match="attribute 'temperature': 'hot' is not of type double"):
        sensor.event(("2010-04-01 10:00:00", 7, "hot"))
    with pytest.raises(SchemaError, match="no attribute 'tmp'"):
        sensor.event({"tmp": 3})
