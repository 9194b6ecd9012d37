"""Restrictions and patterns: matching, containment, intersection, text and JSON."""

from __future__ import annotations

import json
import math
import pickle
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import UserError
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import (
    ANY,
    NOTHING,
    Equal,
    OneOf,
    Range,
    Restriction,
    at_least,
    at_most,
    between,
    equal,
    greater,
    less,
    one_of,
    restriction_from_json,
)
from penstock.pattern.restriction_set import union
from penstock.pattern.schema import Schema
from penstock.pattern.types import TIMESTAMP, coerce_value, integer_range, parse_type

SENSOR = Schema.parse("time timestamp, id int, temperature double", time="time")

# A few values per type, chosen to collide: equality, neighbours and extremes are what restrictions get wrong.
SAMPLES: dict[str, list[Any]] = {
    "boolean": [False, True],
    "tinyint": [-128, -127, -1, 0, 1, 2, 3, 126, 127],
    "bigint": [-(2**63), -1, 0, 1, 2, 2**53, 2**53 + 1, 2**63 - 1],
    "float": [-math.inf, -0.0, 0.0, 0.1, 1.0, 3.4e38, math.inf],
    "double": [-math.inf, -1.5, -0.0, 0.0, 5e-324, 0.1, 1.0, 1e308, math.inf],
    "decimal(3,1)": [Decimal(v) for v in ("-99.9", "-0.1", "0.0", "0.1", "0.2", "99.9")],
    "decimal(38,10)": [Decimal(v) for v in ("-1", "0", "0.0000000001", "9999999999999999999999999999.9999999999")],
    "string": ["", "\0", "a", "a\0", "a'b", "ab", "b", "ä", "\U0001f600", "it''s, [x)"],
    "binary": [b"", b"\0", b"a", b"a\0", b"\xff"],
    "date": [date.min, date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 3), date.max],
    "timestamp": [
        datetime.min, datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2026, 1, 1, 10),
        datetime(2026, 1, 1, 10, 0, 0, 1), datetime(2026, 1, 1, 10, 0, 0, 2), datetime.max,
    ],
}  # fmt: skip


@st.composite
def restrictions(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> Restriction:
    kind = draw(st.sampled_from(["any", "equal", "list", "range"]))
    if kind == "any":
        return ANY
    if kind == "equal":
        return equal(draw(values))
    if kind == "list":
        return one_of(draw(st.lists(values, max_size=4)))
    ends = st.none() | values
    return between(draw(ends), draw(ends), draw(st.booleans()), draw(st.booleans()))


@st.composite
def typed(draw: st.DrawFn) -> tuple[pa.DataType, list[Any], Restriction, Restriction]:
    name = draw(st.sampled_from(list(SAMPLES)))
    t = parse_type(name)
    values = [coerce_value(v, t) for v in SAMPLES[name]]
    drawn = st.sampled_from(values)
    return t, values, draw(restrictions(drawn)).coerced(t), draw(restrictions(drawn)).coerced(t)


@settings(max_examples=300, deadline=None)
@given(typed(), st.booleans())
def test_python_arrow_and_sql_agree_on_every_type(
    case: tuple[pa.DataType, list[Any], Restriction, Restriction], chunked: bool
) -> None:
    t, values, restriction, _ = case
    column = [*values, None, *([math.nan] if pa.types.is_floating(t) else [])]
    array = pa.array(column, t)
    expected = [restriction.matches(v) for v in column]
    mask = restriction.mask(pa.chunked_array([array[:2], array[2:]]) if chunked else array)
    assert isinstance(mask, pa.BooleanArray)
    assert mask.to_pylist() == expected
    rows = pa.table({"v": array})  # noqa: F841 (DuckDB finds it by name)
    assert duckdb.sql(f"SELECT {restriction.to_sql('v', t)} FROM rows").fetchall() == [(e,) for e in expected]


@given(typed())
def test_containment_and_intersection_are_right_on_the_values_there_are(
    case: tuple[pa.DataType, list[Any], Restriction, Restriction],
) -> None:
    t, values, a, b = case
    for value in [*values, None]:
        if a.contains(b, t):
            assert a.matches(value) or not b.matches(value)
        assert a.intersect(b).matches(value) == (a.matches(value) and b.matches(value))
        assert any(r.matches(value) for r in union([a, b], t)) == (a.matches(value) or b.matches(value))
        assert not (a.is_empty(t) and a.matches(value))


TINY = pa.int8()
DOMAIN = range(-128, 128)
near_the_ends = st.sampled_from([-128, -127, -126, -1, 0, 1, 2, 3, 4, 126, 127])


@settings(max_examples=400)
@given(restrictions(near_the_ends), restrictions(near_the_ends))
def test_containment_emptiness_and_union_are_exact_for_integers(a: Restriction, b: Restriction) -> None:
    in_a, in_b = ({v for v in [*DOMAIN, None] if r.matches(v)} for r in (a, b))
    assert a.contains(b, TINY) == (in_b <= in_a)
    assert a.is_empty(TINY) == (not in_a)
    assert {v for v in [*DOMAIN, None] if a.intersect(b).matches(v)} == in_a & in_b
    together = union([a, b], TINY)
    assert {v for v in [*DOMAIN, None] if any(r.matches(v) for r in together)} == in_a | in_b
    for one in together:
        assert not any(one.contains(other, TINY) for other in together if other is not one)


@given(typed())
def test_restrictions_round_trip(case: tuple[pa.DataType, list[Any], Restriction, Restriction]) -> None:
    t, _, a, b = case
    assert restriction_from_json(json.loads(json.dumps(a.to_json())), t) == a
    assert pickle.loads(pickle.dumps(a)) == a
    schema = Schema.of(pa.schema([("a", t), ("b", t)]))
    p = Pattern(schema, (a, b))
    assert Pattern.parse(str(p), schema) == p
    assert Pattern.from_json(json.loads(json.dumps(p.to_json())), schema) == p
    assert pickle.loads(pickle.dumps(p)) == p


def test_normal_forms() -> None:
    assert one_of([3]) == Equal(3)
    assert one_of([]) == NOTHING
    assert one_of([2, 1, 2]) == OneOf((1, 2))
    assert between(3, 3, True, True) == Equal(3)
    assert between(3, 3, True, False) == NOTHING == between(4, 3, True, True)
    schema = Schema.parse("a int")
    assert Pattern(schema, (Range(3, 3, True, True),)).restrictions == (Equal(3),)
    assert pickle.loads(pickle.dumps(ANY)) is ANY


def test_discrete_types_know_their_neighbours() -> None:
    def t(second: int) -> datetime:
        return datetime(2026, 1, 1, 10, 0, 0, second)

    assert greater(3).contains(at_least(4))
    assert not at_least(4).contains(greater(3))
    assert at_least(4).contains(greater(3), pa.int32())
    assert between(3, 4, False, False).is_empty(pa.int32())
    assert not between(3, 4, False, False).is_empty(pa.float64())
    assert at_most(t(1)).contains(less(t(2)), TIMESTAMP)
    assert between(t(1), t(2), False, False).is_empty(TIMESTAMP)
    assert greater(127).is_empty(pa.int8())
    assert at_least(-128).contains(Range(None, None), pa.int8())
    assert greater(datetime.max).is_empty(TIMESTAMP)
    assert one_of([False, True]).contains(Range(None, None), pa.bool_())
    assert not one_of([False, True]).contains(ANY, pa.bool_())


@pytest.mark.parametrize("value", [None, math.nan])
def test_null_and_nan_cannot_be_named(value: Any) -> None:
    for make in (equal, less, at_most, greater, at_least, lambda v: one_of([v])):
        if value is None and make is not equal:
            continue
        with pytest.raises(UserError, match="cannot name"):
            make(value)


def test_nan_is_greater_than_every_number() -> None:
    schema = Schema.parse("v double")
    rows = pa.table({"v": [1.0, math.inf, math.nan, None]})
    cases = {"> 1": "0110", ">= inf": "0110", "> inf": "0010", "(,)": "1110", "<= inf": "1100", "[1, 5]": "1000"}
    for text, flags in cases.items():
        expected = [flag == "1" for flag in flags]
        pattern = Pattern.parse(f"[{text}]", schema)
        assert pattern.matches(rows).to_pylist() == expected, text
        assert [pattern.matches_row(r) for r in rows.to_pylist()] == expected, text
        assert duckdb.sql(f"SELECT {pattern.to_sql()} FROM rows").fetchall() == [(e,) for e in expected], text


@pytest.mark.parametrize("kind", ["tinyint", "smallint", "int", "bigint", "date", "timestamp"])
def test_an_end_at_the_edge_of_a_type_is_no_end(kind: str) -> None:
    schema = Schema.parse(f"v {kind}")
    t = schema.type_of("v")
    least, most = {"date": (date.min, date.max), "timestamp": (datetime.min, datetime.max)}.get(kind) or integer_range(
        t
    )
    assert (
        Pattern.where(schema, v=at_most(most))
        == Pattern.where(schema, v=at_least(least))
        == Pattern.parse("[(,)]", schema)
    )
    assert str(Pattern.where(schema, v=less(most))).startswith("[< ")


# "record ⊑ punctuation": for every attribute the record's restriction implies the punctuation's.
@pytest.mark.parametrize(
    ("record", "punctuation", "contained"),
    [
        ("7", "*", True), ("*", "7", False), ("*", "< 7", False), ("*", "*", True),
        ("5", "<= 5", True), ("6", "<= 5", False), ("<= 5", "<= 5", True), ("<= 6", "<= 5", False),
        ("< 5", "<= 5", True),
        ("< 5.5", "<= 5", False), ("5", "< 5", False), ("4", "< 5", True), ("<= 4", "< 5", True),
        ("<= 5", "< 5", False),
        ("< 5", "< 5", True), ("< 6", "< 5", False), ("5", "5", True), ("4", "5", False), ("<= 5", "5", False),
        ("5", ">= 5", True), ("4", ">= 5", False), (">= 5", ">= 5", True), (">= 4", ">= 5", False),
        ("> 5", ">= 5", True),
        ("5", "> 5", False), ("6", "> 5", True), (">= 6", "> 5", True), (">= 5", "> 5", False), ("> 5", "> 5", True),
        ("< 5", "> 5", False), ("> 5", "< 5", False), ("{1, 2}", "(0, 3)", True), ("{1, 3}", "(0, 3)", False),
        ("(1, 2)", "[1, 2]", True), ("[1, 2]", "(1, 2)", False), ("{}", "3", True), ("[1, 2]", "{1, 2}", False),
        ("{1, 2}", "{1, 2, 3}", True), ("(,)", "*", True), ("*", "(,)", False),
    ],
)  # fmt: skip
def test_containment_table(record: str, punctuation: str, contained: bool) -> None:
    schema = Schema.parse("v double")
    assert Pattern.parse(f"[{punctuation}]", schema).contains(Pattern.parse(f"[{record}]", schema)) is contained


def test_golden_matching() -> None:
    p = Pattern.parse("[≤'2010-04-01 10:00:00', 4, *]", SENSOR)
    assert p.matches_row({"time": "2010-04-01 9:00:00", "id": 4, "temperature": 79})
    rows = pa.Table.from_pylist(
        [
            SENSOR.event(e)
            for e in [
                ("2010-04-01 9:00:00", 4, 79), ("2010-04-01 10:00:00", 4, None), ("2010-04-01 10:00:01", 4, 79),
                ("2010-04-01 9:00:00", 3, 79), (None, 4, 79),
            ]
        ],
        schema=SENSOR.arrow,
    )  # fmt: skip
    assert p.matches(rows).to_pylist() == [True, True, False, False, False]
    assert p.matches(rows.to_batches()[0]).to_pylist() == [True, True, False, False, False]
    assert duckdb.sql(f"SELECT {p.to_sql()} FROM rows").fetchall() == [(True,), (True,), (False,), (False,), (False,)]
    assert Pattern.all(SENSOR).matches(rows).to_pylist() == [True] * 5
    assert Pattern.all(SENSOR).to_sql() == "TRUE"
    assert p.matches(rows.slice(0, 0)).to_pylist() == []


def test_the_pattern_language() -> None:
    schema = Schema.parse(
        "a int, b int, c int, d int, e int, f int, g timestamp, h string, i binary, j boolean, k date"
    )
    text = "[*, 3, >= 5, {1,2}, (1,5), [,5), <= 2026-01-01 10:00:00, {'it''s', ''}, x'00ff', true, 2026-01-31]"
    p = Pattern.parse(text, schema)
    assert p.restrictions == (
        ANY, equal(3), at_least(5), one_of([1, 2]), between(1, 5, False, False), less(5),
        at_most(datetime(2026, 1, 1, 10)), one_of(["it's", ""]), equal(b"\x00\xff"), equal(True),
        equal(date(2026, 1, 31)),
    )  # fmt: skip
    assert Pattern.parse(str(p), schema) == p


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[*, 3]", "2 restrictions for 3 attributes"),
        ("[*, 3, *, *]", "4 restrictions for 3 attributes"),
        ("[]", "expected a value for attribute 'time'"),
        ("*, *, *", "starts with \\["),
        ("[*, hot, *]", "attribute 'id': 'hot' is not of type int"),
        ("[*, 3.5, *]", "attribute 'id'"),
        ("[*, '3', *]", "attribute 'id'"),
        ("[*, 3000000000, *]", "attribute 'id'"),
        ("[*, null, *]", "attribute 'id'"),
        ("[yesterday, *, *]", "attribute 'time'"),
        ("[*, *, nan]", "NaN"),
        ("[*, (1 5), *]", "attribute 'id'"),
        ("[*, (1), *]", "two ends"),
        ("[*, (1,5, *]", "expected"),
        ("[*, {1 2}, *]", "attribute 'id'"),
        ("[*, {1, *]", "attribute 'id'"),
        ("[*, {1, 2", "expected , or }"),
        ("[*, 'a, *]", "position"),
        ("[*, *, *] x", "text behind"),
        ("", "starts with"),
    ],
)
def test_bad_patterns_are_one_line_user_errors(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        Pattern.parse(text, SENSOR)
    assert "\n" not in str(caught.value)


def test_texts_need_quotes() -> None:
    with pytest.raises(UserError, match="write texts in single quotes: 'hot'"):
        Pattern.parse("[hot]", Schema.parse("s string"))


def test_patterns_move_between_schemas() -> None:
    p = Pattern.where(SENSOR, time=less("2026-01-01"), id=4)
    assert p.restricted == ("time", "id")
    assert p.describes(["id", "time"])
    assert not p.describes(["id"])
    other = Schema.parse("key bigint, at timestamp, n int")
    assert p.onto(other, {"time": "at", "id": "key"}) == Pattern.parse("[4, < '2026-01-01', *]", other)
    assert p.rename({"id": "sensor"}).restricted == ("time", "sensor")
    with pytest.raises(ValueError, match="also restricts time"):
        p.onto(other, {"id": "key"})
    with pytest.raises(ValueError, match="different schemas"):
        p.contains(Pattern.all(other))
    with pytest.raises(UserError, match="did you mean 'time'"):
        Pattern.where(SENSOR, tim=3)


def test_a_pattern_with_an_empty_restriction_is_empty_and_contained_in_everything() -> None:
    schema = Schema.parse("a int, b int")
    empty = Pattern.parse("[(3, 4), *]", schema)
    assert empty.is_empty
    assert Pattern.parse("[*, 7]", schema).contains(empty)
    assert not empty.contains(Pattern.all(schema))
