"""The sorted prefix that punctuations complete, against enumeration."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.operators.order_by.sorted_prefix import prefix
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import ANY, Restriction, at_least, at_most, between, equal, greater, less, one_of
from penstock.pattern.schema import Schema

By = Sequence[tuple[str, bool]]
ABC = Schema.parse("a int, b int, c string")


def shown(schema: Schema, by: By, *texts: str, **domains: Restriction) -> str:
    return " ".join(map(str, prefix([Pattern.parse(t, schema) for t in texts], by, schema, domains)))


def test_the_second_attribute_goes_on_where_the_first_ends() -> None:
    by = [("a", False), ("b", False)]
    assert shown(ABC, by, "[<= 5, *, *]") == "[<= 5, *, *]"
    assert shown(ABC, by, "[<= 5, *, *]", "[6, < 3, *]") == "[<= 5, *, *] [6, < 3, *]"
    assert shown(ABC, by, "[<= 5, *, *]", "[7, < 3, *]") == "[<= 5, *, *]"
    assert shown(ABC, by, "[< 6, *, *]", "[*, < 3, *]") == "[< 6, *, *] [6, < 3, *]"
    assert shown(ABC, by, "[*, *, *]") == "[*, *, *]"


def test_a_region_must_begin_where_the_order_begins() -> None:
    assert shown(ABC, [("a", False)], "[[1, 5], *, *]") == ""
    assert shown(ABC, [("a", False)], "[[1, 5], *, *]", "[< 1, *, *]") == "[<= 5, *, *]"
    assert shown(ABC, [("a", False)], "[< 1, *, *]", "[{1, 2, 4}, *, *]") == "[<= 2, *, *]"
    assert shown(ABC, [("a", True)], "[> 7, *, *]", "[< 3, *, *]") == "[> 7, *, *]"


def test_what_restricts_other_attributes_completes_nothing() -> None:
    assert shown(ABC, [("a", False)], "[< 5, 1, *]") == ""
    assert shown(ABC, [("a", False)], "[< 5, 1, *]", "[< 4, 2, *]", b=one_of([1, 2])) == "[< 4, *, *]"


def test_null_comes_last_and_needs_everything() -> None:
    by = [("a", False), ("b", False)]
    assert shown(ABC, by, "[(,), *, *]") == "[(, ), *, *]"
    # All values of `a`, and of those where it is null the ones with small b.
    assert shown(ABC, by, "[(,), *, *]", "[*, < 3, *]") == "[(, ), *, *] [*, < 3, *]"
    real = Schema.parse("a double, b int")
    assert shown(real, by, "[(,), *]", "[*, < 3]") == "[(, ), *] [*, < 3]"
    assert shown(real, by, "[<= inf, *]", "[*, < 3]") == "[<= inf, *]"  # NaN may come.


@pytest.mark.parametrize(
    ("kind", "region", "descending", "following"),
    [
        ("string", "< 'm'", False, "'m'"),
        ("string", "<= 'm'", False, None),
        ("string", "> 'm'", True, "'m'"),
        ("double", "< 2.5", False, "2.5"),
        ("date", "<= '2026-01-31'", False, "'2026-02-01'"),
        ("timestamp", ">= '2026-01-31'", True, "'2026-01-30 23:59:59.999999'"),
        ("decimal(5,2)", "<= 1.50", False, "1.51"),
        ("decimal(5,2)", ">= 1.50", True, "1.49"),
    ],
)
def test_the_next_value_of_each_type(kind: str, region: str, descending: bool, following: str | None) -> None:
    schema = Schema.parse(f"a {kind}, b int")
    text = shown(schema, [("a", descending), ("b", False)], f"[{region}, *]", "[*, < 3]")
    behind = text.split("] [")[1:]
    assert behind == ([] if following is None else [f"{following}, < 3]"])


@pytest.mark.parametrize("whole", [[at_least(datetime.min)], [greater(datetime.min), equal(datetime.min)]])
def test_behind_the_end_of_time_comes_null(whole: list[Restriction]) -> None:
    schema = Schema.parse("a timestamp, b int")
    given = [*(Pattern.where(schema, a=r) for r in whole), Pattern.where(schema, b=less(3))]
    assert [str(p) for p in prefix(given, [("a", True), ("b", False)], schema, {})] == ["[(, ), *]", "[*, < 3]"]


def test_nan_comes_behind_all_numbers_either_way() -> None:
    schema = Schema.parse("a double, b int")
    assert shown(schema, [("a", True)], "[> 5, *]") == "[(5.0, inf], *]"
    assert shown(schema, [("a", True)], "[(5, inf], *]") == "[(5.0, inf], *]"
    assert shown(schema, [("a", True)], "[<= inf, *]") == "[<= inf, *]"
    assert shown(schema, [("a", True), ("b", False)], "[(,), *]", "[*, < 3]") == "[(, ), *] [*, < 3]"
    assert shown(schema, [("a", True), ("b", False)], "[> inf, *]", "[*, < 3]") == "[inf, < 3]"
    assert shown(schema, [("a", False)], "[> 5, *]") == ""
    assert shown(schema, [("a", False), ("b", False)], "[(,), *]", "[*, < 3]") == "[(, ), *] [*, < 3]"


# --- against enumeration ---

FLAGS = Schema.parse("a boolean, b boolean, c boolean")
NUMBERS = Schema.parse("a tinyint, b boolean")


def sort_key(row: Sequence[Any], by: By, schema: Schema) -> tuple[Any, ...]:
    key: list[Any] = []
    for name, descending in by:
        value = row[schema.index(name)]
        key.append((1, 0) if value is None else (0, -value if descending else value))
    return tuple(key)


def check(patterns: list[Pattern], by: By, schema: Schema, events: list[tuple[Any, ...]], domains: Any) -> None:
    found = prefix(patterns, by, schema, domains)

    def matches(these: Sequence[Pattern], event: tuple[Any, ...]) -> bool:
        return any(p.matches_row(dict(zip(schema.names, event, strict=True))) for p in these)

    complete = True
    ordered = sorted(events, key=lambda e: sort_key(e, by, schema))
    for _, tied in groupby(ordered, key=lambda e: sort_key(e, by, schema)):
        group = list(tied)
        complete = complete and all(matches(patterns, e) for e in group)
        assert [matches(found, e) for e in group] == [complete] * len(group)


orders = st.permutations(["a", "b", "c"]).flatmap(
    lambda names: st.tuples(st.integers(1, 3), st.lists(st.booleans(), min_size=3, max_size=3)).map(
        lambda drawn: list(zip(names, drawn[1], strict=True))[: drawn[0]]
    )
)
flags = st.sampled_from([ANY, ANY, equal(False), equal(True), one_of([False, True]), at_most(False), at_least(False)])


@settings(max_examples=300)
@given(st.lists(st.tuples(flags, flags, flags), max_size=7), orders, st.booleans())
def test_flags_in_any_order(rows: list[tuple[Restriction, ...]], by: By, declared: bool) -> None:
    domains = {"b": one_of([False, True])} if declared else {}
    values = [[None, False, True], [False, True] if declared else [None, False, True], [None, False, True]]
    check([Pattern(FLAGS, row) for row in rows], by, FLAGS, list(product(*values)), domains)


near = st.sampled_from([-128, -127, -1, 0, 1, 2, 126, 127])
ends = st.none() | near
numbers = st.one_of(
    st.just(ANY),
    st.lists(near, max_size=4).map(one_of),
    st.builds(between, ends, ends, st.booleans(), st.booleans()),
    near.map(less),
    near.map(at_least),
)


@settings(max_examples=120)
@given(st.lists(st.tuples(numbers, flags), max_size=7), st.booleans(), st.booleans(), st.booleans())
def test_whole_numbers(rows: list[tuple[Restriction, ...]], down_a: bool, down_b: bool, a_first: bool) -> None:
    by = [("a", down_a), ("b", down_b)]
    events = list(product([None, *range(-128, 128)], [None, False, True]))
    check([Pattern(NUMBERS, row) for row in rows], by if a_first else by[::-1], NUMBERS, events, {})


@settings(max_examples=120)
@given(st.lists(st.tuples(numbers, flags), max_size=7), st.booleans())
def test_whole_numbers_of_a_finite_domain(rows: list[tuple[Restriction, ...]], descending: bool) -> None:
    values = [-127, 0, 2, 3]
    events = list(product(values, [None, False, True]))
    by = [("a", descending), ("b", False)]
    check([Pattern(NUMBERS, row) for row in rows], by, NUMBERS, events, {"a": one_of(values)})
