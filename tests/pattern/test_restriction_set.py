"""Restrictions of one attribute taken together, sets of patterns kept small, and how long lists cost."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.pattern.minimise import maximal
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.restriction import ANY, NOTHING, Range, Restriction, between, equal, less, one_of
from penstock.pattern.restriction_set import FEW_RANGES, jointly_contain, subtract, union
from penstock.pattern.schema import Schema
from penstock.pattern.types import parse_type

SMALL = pa.int8()
DOMAIN = range(-128, 128)
VALUES = st.sampled_from([-128, -127, -3, 0, 1, 2, 3, 4, 5, 60, 61, 62, 126, 127])
PAIR = Schema.parse("a tinyint, b tinyint")


def restrictions(values: st.SearchStrategy[int]) -> st.SearchStrategy[Restriction]:
    ends = st.none() | values
    ranges = st.builds(between, ends, ends, st.booleans(), st.booleans())
    lists = st.lists(values, max_size=6).map(one_of)
    return st.one_of(st.just(ANY), values.map(equal), lists, ranges)


def matched(listed: list[Restriction]) -> set[int | None]:
    return {v for v in [None, *DOMAIN] if any(r.matches(v) for r in listed)}


@settings(max_examples=200)
@given(st.lists(restrictions(VALUES), max_size=6))
def test_a_union_matches_what_its_parts_match(parts: list[Restriction]) -> None:
    assert matched(union(parts, SMALL)) == matched(parts)
    assert matched(union([r for r in parts if r is not ANY])) == matched([r for r in parts if r is not ANY])


@settings(max_examples=200)
@given(restrictions(VALUES), restrictions(VALUES))
def test_what_is_left_without_something(whole: Restriction, taken: Restriction) -> None:
    left = matched(subtract(whole, taken, SMALL))
    if whole is ANY and taken is not ANY:
        assert left == matched([ANY])
    else:
        assert left == matched([whole]) - matched([taken])
        # Without a type, too, where (3, 4) is not empty.
        assert matched(subtract(whole, taken)) == left


@settings(max_examples=200)
@given(st.lists(restrictions(VALUES), max_size=5), restrictions(VALUES))
def test_containing_together_is_exact(parts: list[Restriction], wanted: Restriction) -> None:
    assert jointly_contain(parts, wanted, SMALL) == (matched([wanted]) <= matched(parts))


@pytest.mark.parametrize(
    ("name", "first"),
    [("bigint", 5), ("date", date(2026, 1, 1)), ("timestamp", datetime(2026, 1, 1)), ("decimal(9,2)", Decimal("0.10"))],
)
def test_neighbours_of_any_type_become_a_range(name: str, first: Any) -> None:
    step: Any = {"bigint": 1, "date": timedelta(1), "timestamp": timedelta(microseconds=1)}.get(name, Decimal("0.01"))
    t = parse_type(name)
    assert union([one_of([first, first + 2 * step]), equal(first + step)], t) == [
        Range(first, first + 2 * step, True, True)
    ]
    assert union([one_of([first, first + 2 * step])], t) == [one_of([first, first + 2 * step])]


def test_the_empty_list_belongs_to_no_type() -> None:
    assert union([NOTHING, equal(3)], pa.int64()) == [equal(3)]
    assert union([NOTHING, equal("a")], pa.string()) == [equal("a")]


def test_scattered_runs_stay_in_one_list_and_long_ones_become_ranges() -> None:
    pairs = [v for start in range(0, 1000, 10) for v in (start, start + 1)]
    (only,) = union([one_of(pairs)], pa.int64())
    assert only == one_of(pairs)
    (long, rest) = union([only, one_of(range(2000, 2100))], pa.int64())
    assert (long, rest) == (Range(2000, 2099, True, True), only)
    assert only.contains(Range(10, 11, True, True), pa.int64())
    assert not only.contains(Range(10, 12, True, True), pa.int64())
    assert len(union([one_of(pairs[: 2 * FEW_RANGES])], pa.int64())) == FEW_RANGES


PATTERNS = st.tuples(restrictions(VALUES), restrictions(st.integers(0, 3))).map(lambda row: Pattern(PAIR, row))
ROWS = [{"a": a, "b": b} for a, b in product([None, *range(-4, 7), 59, 61, 127, -128], [None, *range(-1, 5)])]


@settings(max_examples=150)
@given(st.lists(PATTERNS, max_size=14), PATTERNS)
def test_a_set_without_a_pattern(added: list[Pattern], taken: Pattern) -> None:
    seen = PunctuationSet(PAIR).add(*added)
    left = seen.without(taken)
    for row in ROWS:
        if left.matches_row(row):
            assert seen.matches_row(row)
        elif seen.matches_row(row):
            assert taken.matches_row(row)
    if all(p.restrictions[1] is ANY and p.restrictions[0] is not ANY for p in [*added, taken]):
        assert not any(left.matches_row(row) and taken.matches_row(row) for row in ROWS)


@settings(max_examples=150)
@given(st.lists(PATTERNS, max_size=14))
def test_maximal_keeps_just_what_no_other_contains(patterns: list[Pattern]) -> None:
    kept = maximal(patterns)
    for p in patterns:
        assert p.is_empty or any(k.contains(p) for k in kept)
    assert not any(a.contains(b) for a in kept for b in kept if a is not b)


def test_values_that_both_sides_promise_are_forgotten() -> None:
    schema = Schema.parse("trip int, v double")

    def trips(restriction: Restriction) -> Pattern:
        return Pattern.where(schema, trip=restriction)

    left = PunctuationSet(schema).add(trips(one_of([1, 5, 9])), trips(between(20, 40)))
    right = PunctuationSet(schema).add(trips(one_of([5, 30, 77])))
    assert str(left.without(*right)) == "[[20, 29], *] [[31, 40), *] [{1, 9}, *]"
    assert str(right.without(*left)) == "[77, *]"
    assert left.without(trips(one_of([2, 3]))) is left
    # Nothing can be taken from a pattern by one that restricts something else too.
    assert left.without(Pattern.where(schema, trip=5, v=1.0)) is left


def test_keys_that_advance_at_their_own_pace_do_not_pile_up() -> None:
    schema = Schema.parse("sensor int, ts bigint")
    chance, front, seen = random.Random(5), [0] * 12, PunctuationSet(schema)
    for _ in range(150):
        moved = chance.sample(range(12), 5)
        for s in moved:
            front[s] += chance.choice([1, 2, 5])
        seen = seen.add(*(Pattern.where(schema, sensor=s, ts=less(front[s])) for s in moved))
        assert len(seen) <= 12
    for s in range(12):
        assert seen.covers(Pattern.where(schema, sensor=s, ts=less(front[s])))
        assert not seen.covers(Pattern.where(schema, sensor=s, ts=front[s]))


def test_trips_that_end_in_disorder_become_few_patterns() -> None:
    schema = Schema.parse("trip bigint, v double")
    trips = list(range(40_000))
    chance, seen, most = random.Random(5), PunctuationSet(schema), 0
    for at in range(0, 40_000, 1000):
        block = trips[at : at + 3000]
        chance.shuffle(block)
        trips[at : at + 3000] = block
        seen = seen.add(Pattern.where(schema, trip=one_of(trips[at : at + 1000])))
        most = max(most, len(seen))
    assert str(seen) == "[[0, 39999], *]"
    assert most < 60


@pytest.mark.parametrize("make", [lambda i: i, lambda i: f"trip-{i:08d}"], ids=["integers", "texts"])
def test_long_lists_are_worked_on_as_a_whole(make: Callable[[int], Any], calls: Callable[..., int]) -> None:
    schema = Schema.parse(f"trip {'bigint' if make(0) == 0 else 'string'}, v double")
    ids = [make(i) for i in random.Random(3).sample(range(10_000_000), 151_000)]

    def trips(values: list[Any]) -> Pattern:
        return Pattern.where(schema, trip=one_of(values))

    seen, fresh = PunctuationSet(schema).add(trips(ids[:100_000])), trips(ids[150_000:])
    other, known = trips(ids[50_000:150_000]), trips(ids[70_000:71_000])

    assert len(seen.add(fresh).patterns[0]["trip"].values) == 101_000  # type: ignore[attr-defined]
    assert calls(lambda: seen.add(fresh)) < 1_000
    assert calls(lambda: seen.patterns[0].intersect(other)) < 1_000
    assert calls(lambda: seen.without(known)) < 100_000
    assert calls(lambda: seen.covers(known)) < 1_000
    stored = json.dumps(seen.to_json())
    assert PunctuationSet.from_json(json.loads(stored), schema) == seen
    assert calls(lambda: PunctuationSet.from_json(json.loads(stored), schema)) < 1_000
