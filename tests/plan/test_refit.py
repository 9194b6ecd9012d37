"""Operators are found again when a query was changed, and state never changes its meaning."""

from __future__ import annotations

import json
from typing import Any

import pytest

import penstock as ps
from penstock.errors import UserError
from penstock.plan.plan import Plan
from penstock.plan.refit import fit, known_sinks, refitted

CARS = ps.stream("cars", "ts int, segment int, speed int", time="ts").disorder(0)
BIKES = ps.stream("bikes", "ts int, segment int, speed int", time="ts").disorder(0)


def known(stream: ps.Stream) -> dict[str, Any]:
    """As a checkpoint keeps it: sorted."""
    return json.loads(json.dumps(stream.plan.describe(), sort_keys=True))


def again(before: ps.Stream, after: ps.Stream) -> Plan:
    return refitted(after.plan, known(before), {})


def counted(stream: ps.Stream) -> ps.Stream:
    return stream.window(10).group_by("segment").agg(n="count(*)")


def ids(plan: Plan, kind: str) -> list[str]:
    return [n.id for n in plan if n.operator.kind == kind]


def test_what_has_not_changed_keeps_its_ids() -> None:
    many = CARS.where("speed > 0")
    for k in range(12):  # Equal ones, of which two-figure numbers sort before one-figure ones.
        many = many.union(CARS.where(f"segment = {k}").where("speed > 0"))
    plan = again(many, many)
    assert [n.id for n in plan] == [n.id for n in many.plan] and fit(plan, known(many)).refused == ()
    assert not fit(plan, known(many)).changed


@pytest.mark.parametrize("where", ["front", "middle", "behind"])
def test_a_where_changes_no_other_id(where: str) -> None:
    before = counted(CARS.where("speed > 3")).where("n > 1")
    after = {
        "front": lambda: counted(CARS.where("segment < 7").where("speed > 3")).where("n > 1"),
        "middle": lambda: counted(CARS.where("speed > 3").where("segment < 7")).where("n > 1"),
        "behind": lambda: counted(CARS.where("speed > 3")).where("n > 1").where("n < 9"),
    }[where]()
    plan = again(before, after)
    found = fit(plan, known(before))
    assert found.changed and not found.refused
    assert {n.id for n in before.plan} < {n.id for n in plan}
    for node in before.plan:
        assert plan[node.id].operator.detail == node.operator.detail
    assert ids(plan, "select")[-1 if where == "behind" else 0 if where == "front" else 1] == "select-3"
    said = "select-3 is new in front of aggregate-1: what it has taken in before stays as it is"
    assert found.remarks == (() if where == "behind" else (said,))


def test_a_branch_in_front_of_all_others_changes_no_id() -> None:
    before = counted(CARS.where("speed > 3"))
    new = CARS.where("speed > 50").window(5).group_by("segment").agg(n="count(*)")
    roots = [new.operator, before.operator]
    plan = refitted(Plan.of(*roots), known(before), {})
    assert ids(plan, "aggregate") == ["aggregate-2", "aggregate-1"]
    assert plan["aggregate-1"].operator is before.operator and not fit(plan, known(before)).refused


def test_equal_operators_are_told_apart_by_what_is_below_them() -> None:
    slow, fast = counted(CARS.where("speed < 40")), counted(CARS.where("speed > 90"))
    before = Plan.of(slow.operator, fast.operator).describe()
    plan = refitted(Plan.of(fast.operator, slow.operator), before, {})
    assert plan["aggregate-1"].operator is slow.operator and plan["aggregate-2"].operator is fast.operator
    assert not fit(plan, before).refused


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (counted(CARS.where("speed > 4")), "select-1: definition was '\"speed\" > 3', is '\"speed\" > 4'"),
        (counted(CARS), "select-1 is gone, and aggregate-1 holds state that has come through it"),
        (CARS.where("speed > 3"), "aggregate-1 is gone, with its state"),
        (
            counted(CARS.with_columns(speed="speed + 5").where("speed > 3")),
            "project-1 is new in front of aggregate-1, which holds state: only where() may be put in there",
        ),
        (counted(CARS.where("speed > 3").distinct()), "distinct-1 is new in front of aggregate-1, which holds state"),
        (counted(BIKES.where("speed > 3")), "source:cars is gone"),
    ],
)
def test_state_does_not_change_its_meaning(after: ps.Stream, said: str) -> None:
    before = counted(CARS.where("speed > 3"))
    assert any(said in line for line in fit(again(before, after), known(before)).refused)


def test_sides_of_a_join_are_not_exchanged() -> None:
    left, right = CARS.where("speed > 3"), CARS.where("speed < 3")
    before, after = left.join(right, "segment"), right.join(left, "segment")
    assert any("join-1" in line for line in fit(again(before, after), known(before)).refused)


def test_what_holds_nothing_may_be_taken_out() -> None:
    before = counted(CARS).where("n > 1").where("n < 9")
    found = fit(again(before, counted(CARS).where("n < 9")), known(before))
    assert found.changed and not found.refused


def test_an_id_is_never_used_again() -> None:
    before, after = CARS.where("speed > 3"), CARS.where("speed > 3").where("segment = 1")
    plan = refitted(after.plan, known(before), {}, gone=["select-2"])
    assert ids(plan, "select") == ["select-1", "select-3"]


def test_sinks_are_found_again_by_what_they_are_given() -> None:
    from penstock.engine.query import Queries

    slow, fast = CARS.where("speed < 40"), CARS.where("speed > 90")
    x, y, z = (ps.parquet(name) for name in "xyz")
    before = Queries.of([slow.to(x), fast.to(y)]).plan
    sinks = known_sinks(before, {})
    after = refitted(Queries.of([slow.to(z), fast.to(y), slow.to(x)]).plan, before.describe(), sinks)
    assert {n.id: n.operator.detail for n in after.sinks} == {
        "sink-1": "ps.parquet('x')",
        "sink-2": "ps.parquet('y')",
        "sink-3": "ps.parquet('z')",
    }
    moved = refitted(Queries.of([fast.to(z)]).plan, before.describe(), sinks)
    assert [n.id for n in moved.sinks] == ["sink-2"]


# --- names of one's own -----------------------------------------------------------------------------------------------


def test_a_name_is_an_id() -> None:
    query = counted(CARS.where("speed > 3").named("moving")).named("per-segment").where("n > 1")
    assert [n.id for n in query.plan] == ["source:cars", "moving", "bucket-1", "per-segment", "select-1"]
    before = counted(CARS.where("speed > 3").named("moving")).named("per-segment")
    changed = CARS.where("speed > 3").named("moving").window(20).group_by("segment").agg(n="count(*)")
    lines = fit(again(before, changed.named("per-segment")), known(before)).refused
    assert any(line.startswith("bucket-1: definition was") for line in lines)
    # Numbers go round a name.
    assert ids(CARS.where("speed > 1").named("select-1").where("speed > 2").plan, "select") == ["select-1", "select-2"]


def test_a_name_that_comes_or_goes_later_changes_nothing() -> None:
    plain, named = counted(CARS), counted(CARS).named("all")
    assert ids(again(plain, named), "aggregate") == ["aggregate-1"]
    assert ids(again(named, plain), "aggregate") == ["all"]


@pytest.mark.parametrize("name", ["", "a b", "a/b", "..", "a:b", "ä", 5, None, "dead", "x" * 65])
def test_odd_names_are_refused(name: Any) -> None:
    with pytest.raises(UserError, match=r"named\(.*not possible.*letters, digits"):
        CARS.where("speed > 3").named(name)


def test_names_are_given_once_and_streams_have_theirs() -> None:
    with pytest.raises(UserError, match=r"two operators are named 'x'.*Hint: give each its own"):
        _ = CARS.where("speed > 3").named("x").where("speed > 4").named("x").plan
    with pytest.raises(UserError, match=r"this is the stream 'cars', which has a name"):
        CARS.named("autos")
