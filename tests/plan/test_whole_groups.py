"""Which groups punctuations describe, alone and together, against enumeration; and where finite domains survive."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.distinct.operator import Distinct
from penstock.operators.join.operator import Join, JoinKind, Taken
from penstock.operators.map.operator import Map
from penstock.operators.multijoin.operator import MultiJoin
from penstock.operators.order_by.operator import OrderBy
from penstock.operators.project.operator import Project
from penstock.operators.select.operator import Select
from penstock.operators.sink.operator import Sink
from penstock.operators.source.operator import Source
from penstock.operators.union.operator import Union
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import ANY, Restriction, between, equal, less, one_of
from penstock.pattern.schema import Schema
from penstock.plan.domain import domains
from penstock.plan.promise import Domain
from penstock.plan.whole_groups import Describer, described
from penstock.sql.expression import Expression

READING = Schema.parse("sensor int, zone string, ts int, note string")
FINITE = {"sensor": one_of([1, 2, 3]), "zone": one_of(["in", "out"])}


def reading(*texts: str) -> list[Pattern]:
    return [Pattern.parse(text, READING) for text in texts]


def test_one_pattern_describes_alone() -> None:
    assert described(reading("[*, *, < 7, *]"), ["ts"], {}) == tuple(reading("[*, *, < 7, *]"))
    assert not described(reading("[1, *, < 7, *]"), ["ts"], FINITE)


def test_all_values_of_a_domain_describe_together() -> None:
    each = reading("[1, *, < 7, *]", "[{2, 3}, *, < 5, *]")
    assert described(each, ["ts"], FINITE) == tuple(reading("[*, *, < 5, *]"))
    assert described(each, ["ts"], {}) == ()
    assert described(each, ["sensor", "ts"], {}) == tuple(each)


def test_boxes_overlap_in_two_attributes() -> None:
    # Neither sensor nor zone can be eliminated on its own: only all of the boxes together cover every event.
    boxes = reading("[{1, 2}, 'in', < 9, *]", "[3, *, < 8, *]", "[1, 'out', < 7, *]", "[2, 'out', < 6, *]")
    assert described(boxes, ["ts"], FINITE) == tuple(reading("[*, *, < 6, *]"))


def test_without_a_domain_null_escapes() -> None:
    halves = reading("[*, *, 1, < 'm']", "[*, *, 1, >= 'm']")
    assert not described(halves, ["ts"], FINITE)


def test_a_range_that_spans_the_domain_restricts_nothing() -> None:
    assert described(reading("[<= 3, *, 4, *]"), ["ts"], FINITE) == tuple(reading("[*, *, 4, *]"))
    assert not described(reading("[< 3, *, 4, *]"), ["ts"], FINITE)


def test_nothing_describes_nothing() -> None:
    assert described([], ["ts"], FINITE) == ()
    assert described(reading("[*, *, *, *]"), [], {}) == tuple(reading("[*, *, *, *]"))


# --- against enumeration: a and b are to be described, c and d have finite domains, e has none. ---

BOX = Schema.parse("a tinyint, b tinyint, c tinyint, d boolean, e tinyint")
BOX_DOMAINS = {"c": one_of([1, 2, 4]), "d": one_of([False, True])}
GROUPS = list(product([None, *range(-1, 5)], [None, 0, 1, 2]))
REST = list(product([1, 2, 4], [False, True], [None, 0, 1]))


def restrictions(values: Sequence[int | bool]) -> st.SearchStrategy[Restriction]:
    value = st.sampled_from(list(values))
    ranges = st.builds(between, st.none() | value, st.none() | value, st.booleans(), st.booleans())
    return st.one_of(st.just(ANY), value.map(equal), st.lists(value, max_size=3).map(one_of), ranges)


BOXES = st.lists(
    st.tuples(
        restrictions([0, 1, 2, 3]),
        st.sampled_from([ANY, equal(0), less(2), one_of([0, 1])]),
        restrictions([1, 2, 3, 4]),
        restrictions([False, True]),
        st.sampled_from([ANY, ANY, ANY, less(1)]),
    ).map(lambda row: Pattern(BOX, row)),
    max_size=8,
)


def brute_force(patterns: Sequence[Pattern], group: tuple[int | None, int | None]) -> bool:
    return all(
        any(p.matches_row(dict(zip(BOX.names, (*group, *rest), strict=True))) for p in patterns) for rest in REST
    )


@settings(max_examples=80, deadline=None)
@given(BOXES)
def test_described_is_what_enumeration_finds(patterns: list[Pattern]) -> None:
    found = described(patterns, ["a", "b"], BOX_DOMAINS)
    assert all(set(p.restricted) <= {"a", "b"} for p in found)
    for group in GROUPS:
        expected = brute_force(patterns, group)
        row = dict(zip(BOX.names, (*group, 1, True, None), strict=True))
        assert any(p.matches_row(row) for p in found) == expected


@settings(max_examples=80, deadline=None)
@given(BOXES, st.data())
def test_a_describer_says_the_same_in_any_portions(patterns: list[Pattern], data: st.DataObject) -> None:
    describer = Describer(BOX, ["a", "b"], BOX_DOMAINS)
    said: list[Pattern] = []
    for at, pattern in enumerate(patterns):
        said += describer.add([pattern])
        if data.draw(st.booleans()):
            stored = json.loads(json.dumps(describer.to_json()))
            describer = Describer(BOX, ["a", "b"], BOX_DOMAINS)
            describer.restore(stored)
        for group in GROUPS:
            row = dict(zip(BOX.names, (*group, 1, True, None), strict=True))
            assert any(p.matches_row(row) for p in said) == brute_force(patterns[: at + 1], group)


def test_a_describer_says_what_several_say_once() -> None:
    describer = Describer(READING, ["ts"], FINITE)
    assert describer.add(reading("[{1, 2}, *, < 7, *]")) == ()
    assert describer.add(reading("[3, *, < 7, *]")) == tuple(reading("[*, *, < 7, *]"))
    assert describer.add(reading("[3, *, < 9, *]", "[3, *, < 7, *]")) == ()
    assert describer.add(reading("[{1, 2}, *, < 8, *]")) == tuple(reading("[*, *, < 8, *]"))
    assert len(describer.to_json()["waiting"]) == 1  # Sensor 3 is ahead; the others have said all they can.


def test_beyond_the_limit_less_is_found_but_nothing_false() -> None:
    schema = Schema.parse("g int, k int, x int, y int")
    sensors = range(12)
    # Two incomparable promises per value: 2 ^ 12 combinations.
    each = [Pattern.where(schema, k=k, x=less(k + 1)) for k in sensors]
    each += [Pattern.where(schema, k=k, y=less(12 - k)) for k in sensors]
    found = described(each, ["x", "y"], {"k": one_of(sensors)})
    assert found
    for p in found:
        for x, y in product(range(-1, 14), repeat=2):
            if p.matches_row({"g": 0, "k": 0, "x": x, "y": y}):
                assert all(any(q.matches_row({"g": 0, "k": k, "x": x, "y": y}) for q in each) for k in sensors)


def test_a_thousand_sensors_stay_quick_and_small() -> None:
    schema = Schema.parse("sensor int, ts int")
    describer = Describer(schema, ["ts"], {"sensor": one_of(range(1000))})
    for hour in range(3):
        new = describer.add([Pattern.where(schema, sensor=s, ts=less(10 * hour + s % 7)) for s in range(1000)])
        assert new == (Pattern.where(schema, ts=less(10 * hour)),)
    assert len(describer.to_json()["waiting"]) <= 1000


# --- domains ---

TWO = Source((), Schema.parse("k int, v int"), "two", promises=(Domain("k", (1, 2)),))
THREE = Source((), Schema.parse("k int, w int"), "three", promises=(Domain("k", (2, 3)), Domain("w", (7,))))
BARE = Source((), Schema.parse("k int, w int"), "bare")


def shown(operator: object) -> dict[str, str]:
    return {n: str(r) for n, r in domains(operator).items()}  # type: ignore[arg-type]


def join(how: JoinKind, left: Source, right: Source) -> Join:
    key = ((0, "k"), (1, "k")) if how in ("right", "full") else ((0, "k"),)
    columns: tuple[Taken, ...] = (Taken("k", key), Taken("v", ((0, "v"),)))
    columns = columns if how in ("semi", "anti") else (*columns, Taken("w", ((1, "w"),)))
    return Join((left, right), Schema.parse("k int, v int, w int"), how=how, keys=(("k", "k"),), columns=columns)


def test_domains_pass_what_keeps_values() -> None:
    schema = TWO.schema
    predicate = Expression.predicate("v > 3", schema)
    for operator in (
        Select((TWO,), schema, predicate=predicate),
        Distinct((TWO,), schema),
        OrderBy((TWO,), schema, by=(("v", True),)),
        Sink((TWO,), schema),
        Map((TWO,), schema, function=lambda t: t, keeps=("k",)),
        Aggregate((TWO,), schema, keys=("k",), aggregations=()),
    ):
        assert shown(operator) == {"k": "{1, 2}"}
    assert shown(Map((TWO,), schema, function=lambda t: t)) == {}
    assert shown(Aggregate((TWO,), schema, keys=("v",), aggregations=())) == {}


def test_domains_follow_names_but_not_computations() -> None:
    columns = tuple(
        (n, Expression.parse(t, TWO.schema)) for n, t in (("a", "k"), ("b", "k"), ("k", "v"), ("c", "k + 1"))
    )
    assert shown(Project((TWO,), Schema.parse("a int, b int, k int, c int"), columns=columns)) == {
        "a": "{1, 2}",
        "b": "{1, 2}",
    }


def test_domains_of_a_union_are_united() -> None:
    assert shown(Union((TWO, THREE), TWO.schema)) == {"k": "{1, 2, 3}"}
    assert shown(Union((TWO, BARE), TWO.schema)) == {}


def test_domains_of_a_join_end_where_nulls_are_padded() -> None:
    assert shown(join("inner", TWO, THREE)) == {"k": "{1, 2}", "w": "7"}
    assert shown(join("left", TWO, THREE)) == {"k": "{1, 2}"}
    assert shown(join("right", TWO, THREE)) == {"k": "{1, 2, 3}", "w": "7"}
    assert shown(join("full", TWO, THREE)) == {"k": "{1, 2, 3}"}
    assert shown(join("full", TWO, BARE)) == {}
    assert shown(join("left", TWO, BARE)) == {"k": "{1, 2}"}
    assert shown(join("anti", TWO, BARE)) == {"k": "{1, 2}"}
    columns = (Taken("k", ((0, "k"),)), Taken("w", ((1, "w"),)))
    multi = MultiJoin(
        (TWO, THREE), BARE.schema, keys=(("k",), ("k",)), columns=columns, times=(None, None), windows=(None, None)
    )
    assert shown(multi) == {"k": "{1, 2}", "w": "7"}
