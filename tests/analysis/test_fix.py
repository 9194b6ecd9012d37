"""The reverse question: what is offered makes the plan safe, is the smallest, and is Python that can be written."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plans import Query, queries

import penstock as ps
from penstock.analysis.check import check
from penstock.analysis.fix import fixes, fixes_at_the_end, variables
from penstock.builder.stream import StreamBuilder
from penstock.contract.report import Fix
from penstock.operators.source.operator import Source
from penstock.pattern.schema import Attribute, Schema
from penstock.plan.operator import Operator
from penstock.plan.plan import Plan
from penstock.plan.policy import Punctuate


def bare(
    name: str, columns: str = "ts timestamp, trip int, zone string, v double", time: str | None = "ts"
) -> StreamBuilder:
    return StreamBuilder(Source((), Schema.parse(columns, time), name=name))


def applied(plan: Plan, fix: Fix) -> Plan:
    """The plan with the declarations of a fix run as Python on its sources."""
    written = variables(plan)
    names = {written[n.operator.name]: StreamBuilder(n.operator) for n in plan.nodes if isinstance(n.operator, Source)}
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
def test_every_alternative_makes_the_plan_safe(query: StreamBuilder) -> None:
    plan = query.plan
    before = check(plan)
    assert not before.safe
    assert before.fixes == fixes(plan) != ()
    for fix in before.fixes:
        assert check(applied(plan, fix)).safe, fix.declaration
        assert set(fix.helps) == {f.operator for f in before.findings if not f.safe}


@pytest.mark.parametrize("query", UNSAFE.values(), ids=UNSAFE.keys())
def test_no_declaration_is_superfluous(query: StreamBuilder) -> None:
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


#: What streams and attributes may be called, as far as anybody would try.
STREAMS = ("a", "my-cars", "my_cars", "class", "2026", "ps", "x²", "ﬁ", "ñ-1")
ATTRIBUTES = (
    "trip",
    "class",
    "my trip",
    "self",
    "it's",
    'a "b"',
    "back\\slash",
    "two\nlines",
    "tick`s",
    "a, b",
    "ﬁ",
    "2nd",
    "#",
)


@given(
    st.lists(st.sampled_from(STREAMS), min_size=2, max_size=2, unique=True),
    st.lists(st.sampled_from(ATTRIBUTES), min_size=2, max_size=2, unique=True),
    st.sampled_from(("ts", "when", "no\ntime")),
    st.tuples(st.booleans(), st.booleans()),
    st.sampled_from((pa.timestamp("us"), pa.date32(), pa.int64())),
    st.sampled_from(("distinct", "group", "window", "join", "order", "band")),
)
def test_what_is_offered_can_be_pasted_whatever_things_are_called(
    names: list[str], keys: list[str], time: str, in_band: tuple[bool, ...], kind: pa.DataType, what: str
) -> None:
    one, two = keys
    schema = Schema((Attribute(time, kind), Attribute(one, pa.int64()), Attribute(two, pa.string())), (time,))
    a, b = (StreamBuilder(Source((), schema, name=n)) for n in names)
    a, b = (s.punctuated().scheme(**{two: "value"}) if told else s for s, told in zip((a, b), in_band, strict=True))
    extent: dict[pa.DataType, str | int] = {pa.timestamp("us"): "1 h", pa.date32(): "1 d"}
    size = extent.get(kind, 10)
    query = {
        "distinct": lambda: a.drop(two).distinct(),
        "group": lambda: a.union(b).group_by(one).agg(n="count(*)"),
        "window": lambda: a.window(size).group_by(one).agg(n="count(*)"),
        "join": lambda: a.join(b, one),
        "order": lambda: a.union(b).order_by(time),
        "band": lambda: a.join(b, one, within=size),
    }[what]()
    improves(query.plan, fixes(query.plan))
    improves(
        query.plan, fixes_at_the_end(query.plan, [f.operator for f in check(query.plan).findings if not f.safe]), True
    )


@given(queries())
@settings(suppress_health_check=list(HealthCheck))
def test_whatever_is_offered_for_a_random_plan_makes_it_better(query: Query) -> None:
    improves(query.plan, fixes(query.plan))


def improves(plan: Plan, offered: Sequence[Fix], bounded: bool = False) -> None:
    """What a fix says it helps is safe with it, and nothing gets worse."""
    before = {f.operator: f for f in check(plan, bounded=bounded).findings}
    for fix in offered:
        compile(fix.declaration, "fix", "exec")
        after = {f.operator: f for f in check(applied(plan, fix), bounded=bounded).findings}
        assert fix.helps and all(after[i].safe for i in fix.helps), fix.declaration
        assert all(after[i].safe for i, f in before.items() if f.safe), fix.declaration


def test_a_wide_plan_costs_little(calls: Callable[..., int]) -> None:
    query = bare("s0")
    for i in range(1, 40):
        other = bare(f"s{i}").where("v > 1").select("ts", "trip", **{f"v{i}": "v"})
        query = query.join(other, "trip", within="1 h", times=(query.schema.times[0], "ts"), suffix=f"_{i}")
    (fix, *_) = fixes(query.plan)
    assert calls(lambda: fixes(query.plan)) < 1_000_000
    assert check(applied(query.plan, fix)).safe
