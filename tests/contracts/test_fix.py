"""The reverse question: what is offered makes the plan safe, is the smallest, and is Python that can be written."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

import penstock as ps
from penstock.algebra.builder import Stream
from penstock.algebra.operator import Operator, Source
from penstock.algebra.plan import Plan
from penstock.algebra.punctuate import Punctuate
from penstock.algebra.schema import Schema
from penstock.contracts.check import check
from penstock.contracts.fix import fixes
from penstock.contracts.report import Fix


def bare(name: str, columns: str = "ts timestamp, trip int, zone string, v double", time: str | None = "ts") -> Stream:
    return Stream(Source((), Schema.parse(columns, time), name=name))


def applied(plan: Plan, fix: Fix) -> Plan:
    """The plan with the declarations of a fix run as Python on its sources."""
    names = {
        re.sub(r"\W", "_", n.operator.name): Stream(n.operator) for n in plan.nodes if isinstance(n.operator, Source)
    }
    olds = {name: s.operator for name, s in names.items()}
    scope: dict[str, object] = {"ps": ps, **names}
    exec(fix.declaration, scope)
    swapped = {id(olds[name]): scope[name].operator for name in names}  # type: ignore[attr-defined]
    made: dict[int, Operator] = {}
    for node in plan.nodes:
        inputs = tuple(made[id(i)] for i in node.operator.inputs)
        old = node.operator
        made[id(old)] = swapped.get(id(old)) or type(old)(**{**old.__dict__, "inputs": inputs})
    return Plan.of(made[id(plan.nodes[-1].operator)])


A, B = bare("a"), bare("b")
UNSAFE = {
    "group by key": A.group_by("trip").agg(n="count(*)"),
    "window": A.window("1 min").group_by("zone").agg(n="count(*)"),
    "inner join": A.join(B, "trip"),
    "left join": A.join(B, "trip", "left"),
    "window join": A.join(B, "trip", within="1 h"),
    "open band": A.join(B, "trip", between=("0 s", None)),
    "distinct": A.distinct(),
    "distinct without time": A.select("zone").distinct(),
    "order": A.order_by("ts"),
    "merge": A.merge(B),
    "union": A.union(B).window("1 min").agg(n="count(*)"),
    "in band": A.punctuated().scheme(zone="value").group_by("trip").agg(n="count(*)"),
    "two times": bare("t", "up timestamp, down timestamp", None).window("1 min", on="up").agg(n="count(*)"),
    "integer time": bare("t", "n int, k int", "n").window(10).agg(m="count(*)"),
    "one side told": A.punctuate(Punctuate.once("trip")).join(B, "trip"),
    "a name that is no identifier": bare("my-stream").distinct(),
    "chain": A.join(B, "trip", within="1 h").window("1 min", on="ts").group_by("trip").agg(n="count(*)"),
}


@pytest.mark.parametrize("query", UNSAFE.values(), ids=UNSAFE.keys())
def test_every_alternative_makes_the_plan_safe(query: Stream) -> None:
    plan = query.plan
    before = check(plan)
    assert not before.safe
    assert before.fixes == fixes(plan) != ()
    for fix in before.fixes:
        assert check(applied(plan, fix)).safe, fix.declaration
        assert set(fix.helps) == {f.operator for f in before.findings if not f.safe}


@pytest.mark.parametrize("query", UNSAFE.values(), ids=UNSAFE.keys())
def test_no_declaration_is_superfluous(query: Stream) -> None:
    plan = query.plan
    for fix in fixes(plan):
        lines = fix.declaration.split("\n")
        for k in range(len(lines)):
            rest = "\n".join(lines[:k] + lines[k + 1 :])
            assert not check(applied(plan, Fix(fix.stream, rest))).safe


def test_time_comes_first_and_keys_as_the_alternative() -> None:
    first, second = fixes(UNSAFE["window"].plan)
    assert first.declaration == 'a = a.disorder("1 min")'
    assert second.declaration.startswith('a = a.punctuate(ps.Punctuate.once("zone"))')
    assert '.punctuated().scheme(zone="value")' in second.declaration


def test_an_inner_join_needs_the_ends_of_keys_from_both() -> None:
    (fix,) = fixes(UNSAFE["inner join"].plan)
    assert fix.stream == "a, b"
    assert [line.partition("  #")[0] for line in fix.declaration.split("\n")] == [
        'a = a.punctuate(ps.Punctuate.once("trip"))',
        'b = b.punctuate(ps.Punctuate.once("trip"))',
    ]


def test_a_stream_that_speaks_in_band_is_asked_for_a_scheme() -> None:
    (fix,) = fixes(UNSAFE["in band"].plan)
    assert fix.declaration == 'a = a.scheme(trip="value")'


def test_the_attribute_is_named_as_at_the_source() -> None:
    renamed = A.rename(trip="journey").group_by("journey").agg(n="count(*)")
    (fix,) = fixes(renamed.plan)
    assert 'once("trip")' in fix.declaration


def test_a_safe_plan_needs_nothing() -> None:
    assert fixes(A.where("v > 1").plan) == ()


def test_what_no_source_can_mend_is_left_out() -> None:
    assert fixes(A.agg(n="count(*)").plan) == ()
    assert fixes(A.order_by("ts desc").plan) == ()
    # The landmark totals stay whatever is said; the join below it can be helped.
    both = A.join(B, "trip", within="1 h").window(landmark="1 h", on="ts").group_by("trip").agg(n="count(*)")
    fix = fixes(both.plan)[0]
    assert fix.helps == ("join-1",)


def test_a_wide_plan_costs_little(calls: Callable[..., int]) -> None:
    query = bare("s0")
    for i in range(1, 40):
        other = bare(f"s{i}").where("v > 1").select("ts", "trip", **{f"v{i}": "v"})
        query = query.join(other, "trip", within="1 h", times=(query.schema.times[0], "ts"), suffix=f"_{i}")
    (fix, *_) = fixes(query.plan)
    assert calls(lambda: fixes(query.plan)) < 1_000_000
    assert check(applied(query.plan, fix)).safe
