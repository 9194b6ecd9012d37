"""Punctuation sets and grammaticality."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from itertools import product

import duckdb
import pyarrow as pa
import pytest
from grammar import first_violation, is_grammatical
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import SchemaError, ViolationError
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.restriction import ANY, Restriction, between, equal, less, one_of
from penstock.pattern.schema import Schema

SENSOR = Schema.parse("time timestamp, id int, temperature double", time="time")
PAIR = Schema.parse("a tinyint, b tinyint")

EVENTS = [
    ("2010-04-01 10:00:00", 4, 76.5),
    ("2010-04-01 10:00:00", 3, 75.9),
    ("2010-04-01 09:59:00", 7, 76.6),
]
LATE = ("2010-04-01 10:01:00", 7, 76.6)


def test_grammatical_stream() -> None:
    assert is_grammatical([*EVENTS, Pattern.parse("[< '2010-04-01 10:00:00', *, *]", SENSOR), LATE], SENSOR)


def test_ungrammatical_stream_names_the_event_and_the_punctuation() -> None:
    promise = Pattern.parse("[*, 7, *]", SENSOR)
    found = first_violation([*EVENTS, promise, LATE], SENSOR)
    assert found is not None
    assert found.position == 4
    assert found.punctuation == promise
    assert found.event["id"] == 7
    assert isinstance(found.error("sensor"), ViolationError)
    assert "stream 'sensor'" in str(found.error("sensor"))


def test_events_outside_the_schema_are_no_stream() -> None:
    with pytest.raises(SchemaError):
        is_grammatical([(4, 76.5)], SENSOR)


def test_the_end_of_the_stream_forbids_everything() -> None:
    assert not is_grammatical([Pattern.all(SENSOR), (None, None, None)], SENSOR)
    assert is_grammatical([Pattern.parse("[*, (,), *]", SENSOR), (None, None, None)], SENSOR)


def test_hours_of_all_sensors() -> None:
    schema = Schema.parse("sensor int, temp int, hour int, minute int")
    hour = Pattern.parse("[*, *, 1, *]", schema)
    items = [(3, 75, 1, 15), (3, 78, 1, 30), (3, 75, 1, 45), (3, 76, 2, 0), hour, (3, 75, 2, 15)]
    assert is_grammatical(items, schema)
    assert hour.describes(["hour"])
    assert not is_grammatical([*items, (4, 75, 1, 50)], schema)
    # A punctuation that also restricts another attribute closes no hour.
    assert not Pattern.parse("[3, *, 1, *]", schema).describes(["hour"])


def test_a_guard_record_is_covered_by_a_later_punctuation() -> None:
    schema = Schema.parse("wid bigint, v double")
    seen = PunctuationSet(schema).add(Pattern.parse("[< 3, *]", schema))
    assert seen.covers(Pattern.parse("[< 2, *]", schema))
    assert not seen.covers(Pattern.parse("[< 4, *]", schema))


def test_an_advancing_frontier_stays_one_pattern() -> None:
    seen, start = PunctuationSet(SENSOR), datetime(2026, 1, 1)
    for minute in range(50):
        seen = seen.add(Pattern.where(SENSOR, time=less(start + timedelta(minutes=minute))))
    assert str(seen) == "[< '2026-01-01 00:49:00', *, *]"
    assert seen.add(Pattern.where(SENSOR, time=less(start))) is seen


def test_neighbours_grow_together_and_single_keys_become_a_list() -> None:
    schema = Schema.parse("wid int, key string")
    seen = PunctuationSet(schema)
    for wid in (2, 0, 1):
        seen = seen.add(Pattern.where(schema, wid=wid))
    assert str(seen) == "[[0, 2], *]"
    seen = seen.add(Pattern.where(schema, key="b"), Pattern.where(schema, key="a"))
    assert [str(p) for p in seen] == ["[[0, 2], *]", "[*, {'a', 'b'}]"]
    assert seen.add(Pattern.all(schema)).patterns == (Pattern.all(schema),)


def test_many_keys_at_once_are_quick() -> None:
    schema = Schema.parse("key bigint")
    seen = PunctuationSet(schema).add(*(Pattern.where(schema, key=3 * k) for k in range(5_000)))
    assert len(seen) == 1
    assert seen.covers(Pattern.where(schema, key=one_of(range(0, 300, 3))))


def test_an_empty_set() -> None:
    seen = PunctuationSet(PAIR)
    assert seen.matches(pa.table({"a": [1], "b": [1]})).to_pylist() == [False]
    assert seen.to_sql() == "FALSE"
    assert not seen.covers(Pattern.all(PAIR))
    assert len(seen) == 0
    assert seen.add(Pattern.where(PAIR, a=one_of([]))) is seen


VALUES = st.sampled_from([-128, 0, 1, 2, 3, 127])


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    def one() -> Restriction:
        kind = draw(st.integers(0, 3))
        if kind < 2:
            return (ANY, equal(draw(VALUES)))[kind]
        if kind == 2:
            return one_of(draw(st.lists(VALUES, max_size=3)))
        ends = st.none() | VALUES
        return between(draw(ends), draw(ends), draw(st.booleans()), draw(st.booleans()))

    return Pattern(PAIR, (one(), one()))


DOMAIN = [None, *range(-2, 6), -128, -127, 126, 127]
ROWS = pa.Table.from_pylist([{"a": a, "b": b} for a, b in product(DOMAIN, DOMAIN)], schema=PAIR.arrow)


@settings(max_examples=150, deadline=None)
@given(st.lists(patterns(), max_size=6), patterns())
def test_a_set_matches_what_its_patterns_match(added: list[Pattern], asked: Pattern) -> None:
    at_once = PunctuationSet(PAIR).add(*added)
    one_by_one = PunctuationSet(PAIR)
    for pattern in added:
        one_by_one = one_by_one.add(pattern)
    expected = [any(p.matches_row(row) for p in added) for row in ROWS.to_pylist()]
    for seen in (at_once, one_by_one):
        assert seen.matches(ROWS).to_pylist() == expected
        assert len(seen) <= len(added)
        assert not any(p.contains(q) for p in seen for q in seen if p is not q)
        assert all(seen.covers(p) for p in added)
        assert PunctuationSet.from_json(json.loads(json.dumps(seen.to_json())), PAIR) == seen
        assert [r[0] for r in duckdb.sql(f"SELECT {seen.to_sql()} FROM ROWS").fetchall()] == expected
        if seen.covers(asked):
            matched = asked.matches(ROWS).to_pylist()
            assert all(e or not m for e, m in zip(expected, matched, strict=True))


@given(st.lists(patterns().map(lambda p: Pattern(PAIR, (p.restrictions[0], ANY))), max_size=5), patterns())
def test_covering_is_exact_along_one_attribute(added: list[Pattern], asked: Pattern) -> None:
    asked = Pattern(PAIR, (asked.restrictions[0], ANY))
    every = [None, *range(-128, 128)]
    matched = {v for v in every if asked.restrictions[0].matches(v)}
    promised = {v for v in every if any(p.restrictions[0].matches(v) for p in added)}
    assert PunctuationSet(PAIR).add(*added).covers(asked) == (matched <= promised)
