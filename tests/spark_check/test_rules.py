"""Spark's rules about state, over trees written by hand: no JVM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.contract.report import Finding
from penstock.spark_check.join import band_of
from penstock.spark_check.plan import (
    Column,
    Constant,
    Custom,
    Deduplicate,
    Expression,
    Less,
    Opaque,
    SparkAggregate,
    SparkJoin,
    SparkLimit,
    SparkNode,
    SparkSource,
    SparkUnion,
    Static,
    Sum,
    Through,
    Watermark,
)
from penstock.spark_check.rules import analyse

HOUR = 3_600_000_000
MARK = 600_000
TS, K = Column(1, "ts", "timestamp"), Column(2, "k", "int")
RTS, RK = Column(3, "rts", "timestamp"), Column(4, "rk", "int")


def marked(column: Column) -> Column:
    return replace(column, delay=MARK)


def stream(name: str, time: Column, key: Column, watermark: bool = True) -> SparkNode:
    source = SparkSource((time, key), name=name)
    if not watermark:
        return source
    return Watermark((marked(time), key), (source,), column=time, delay="10 minutes")


def join(left: SparkNode, right: SparkNode, *ranges: Less, how: str = "inner") -> SparkJoin:
    # References in a condition carry the watermark of the column they refer to.
    known = {c.id: c for side in (left, right) for c in side.columns}

    def refer(e: Expression) -> Expression:
        if isinstance(e, Sum):
            return Sum(tuple((sign, refer(part)) for sign, part in e.parts))
        return known[e.id] if isinstance(e, Column) else e

    refers = tuple(Less(refer(r.less), refer(r.more), r.strict) for r in ranges)
    return SparkJoin((*left.columns, *right.columns), (left, right), how=how, keys=((K, RK),), ranges=refers)


NOT_LATER = Less(RTS, Sum(((1, TS), (1, Constant("INTERVAL 1 HOUR", HOUR)))))
NOT_EARLIER = Less(TS, RTS)


def only(plan: SparkNode, mode: str = "append") -> Finding:
    (found,) = analyse(plan, mode).findings  # type: ignore[arg-type]
    return found


def test_the_inner_join_without_a_watermark_is_refused_with_the_fix() -> None:
    report = analyse(join(stream("clicks", TS, K, False), stream("views", RTS, RK, False)))
    assert not report
    assert report.culprit is not None
    assert report.culprit.operator == "join on k = rk"
    assert report.culprit.needs == (
        '.withWatermark("ts", "10 minutes") on clicks',
        '.withWatermark("rts", "10 minutes") on views',
        "AND rts BETWEEN ts AND ts + INTERVAL 1 HOUR",
    )
    assert [(f.stream, f.declaration) for f in report.fixes] == [
        ("clicks", '.withWatermark("ts", "10 minutes")'),
        ("views", '.withWatermark("rts", "10 minutes")'),
    ]


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("early", [False, True])
def test_following_the_advice_makes_the_join_safe(left: bool, right: bool, late: bool, early: bool) -> None:
    ranges = [NOT_LATER] * late + [NOT_EARLIER] * early
    found = only(join(stream("clicks", TS, K, left), stream("views", RTS, RK, right), *ranges))
    assert (found.state == "bounded") == (left and right and late and early)
    assert any("on clicks" in n for n in found.needs) != left
    assert any("on views" in n for n in found.needs) != right
    added = [n for n in found.needs if n.startswith("AND")]
    if late and early:
        assert not added
    for need in added:
        ranges += [NOT_EARLIER] if "BETWEEN" in need or ">=" in need else []
        ranges += [NOT_LATER] if "BETWEEN" in need or "<=" in need else []
    assert only(join(stream("clicks", TS, K), stream("views", RTS, RK), *ranges)).state == "bounded"


@st.composite
def ranges(draw: st.DrawFn) -> Less:
    """`±(rts - ts) + c <= 0`, each part on either side of the sign, in random order."""
    towards = draw(st.sampled_from([1, -1]))
    shift = draw(st.integers(-5, 5))
    sides: tuple[list[tuple[int, Expression]], list[tuple[int, Expression]]] = ([], [])
    parts = draw(st.permutations([(towards, RTS), (-towards, TS), (1, Constant(str(shift), shift))]))
    for sign, part in parts:
        over = draw(st.booleans())
        sides[over].append((-sign if over else sign, part))
    less, more = (Sum(tuple(s)) if s else Constant("0", 0) for s in sides)
    return Less(less, more, draw(st.booleans()))


def value(e: Expression, ts: int, rts: int) -> int:
    if isinstance(e, Sum):
        return sum(sign * value(part, ts, rts) for sign, part in e.parts)
    if isinstance(e, Constant):
        assert e.micros is not None
        return e.micros
    return ts if e == TS or e == marked(TS) else rts


def holds(r: Less, ts: int, rts: int) -> bool:
    low, high = value(r.less, ts, rts), value(r.more, ts, rts)
    return low < high if r.strict else low <= high


@given(st.lists(ranges(), max_size=3))
def test_rows_go_exactly_when_what_is_far_ahead_cannot_join_them(found: list[Less]) -> None:
    ahead = 1000
    plan = join(stream("clicks", TS, K), stream("views", RTS, RK), *found)
    left = not all(holds(r, 0, ahead) for r in found)
    right = not all(holds(r, ahead, 0) for r in found)
    said = only(plan).why
    assert said[0].startswith("rows of clicks go") == left
    assert said[1].startswith("rows of views go") == right
    band = band_of(plan)
    if band is None:
        assert not left and not right
    elif not any(r.strict for r in found):
        for apart in range(-20, 21):
            inside = (band.low is None or band.low <= apart) and (band.high is None or apart <= band.high)
            assert inside == all(holds(r, 0, apart) for r in found)


def test_a_watermarked_key_on_one_side_is_enough() -> None:
    left, right = stream("clicks", TS, K), stream("views", RTS, RK, False)
    for keys in (((marked(TS), RTS),), ((K, RK), (marked(TS), RTS))):
        assert only(SparkJoin((), (left, right), how="inner", keys=keys)).state == "bounded"
    truncated = Opaque("date_trunc('hour', ts)", frozenset({1}))
    assert only(SparkJoin((), (left, right), how="inner", keys=((truncated, RTS),))).state == "unbounded"


def test_a_range_that_spark_cannot_solve_is_said_to_be_one() -> None:
    apart = Less(Opaque("(rts - ts)", frozenset({1, 3})), Constant("INTERVAL 1 HOUR", HOUR))
    found = only(join(stream("clicks", TS, K), stream("views", RTS, RK), apart))
    assert found.state == "unbounded"
    assert all("cannot solve `(rts - ts) <= INTERVAL 1 HOUR`" in w for w in found.why)


def test_a_range_over_columns_without_watermark_does_not_help() -> None:
    at = Column(5, "at", "timestamp")
    left = Watermark((marked(TS), K, at), (SparkSource((TS, K, at), name="clicks"),), column=TS, delay="1 minute")
    found = only(join(left, stream("views", RTS, RK), Less(at, RTS), Less(RTS, at)))
    assert found.state == "unbounded"
    assert "rows of clicks go" in found.why[0]  # By the watermark of views: Spark compares it with ts.
    assert "at in the time range has no watermark" in found.why[1]
    assert found.needs[-1] == "AND rts >= ts - INTERVAL 1 HOUR"


@pytest.mark.parametrize(("how", "late", "early", "output"), [
    ("left_outer", True, False, "complete"),
    ("left_outer", False, True, "held back"),
    ("right_outer", False, True, "complete"),
    ("right_outer", True, False, "held back"),
    ("full_outer", True, False, "held back"),
    ("full_outer", True, True, "complete"),
    ("left_semi", False, False, "at once"),
])  # fmt: skip
def test_outer_rows_appear_when_their_side_is_let_go(how: str, late: bool, early: bool, output: str) -> None:
    ranges = [NOT_LATER] * late + [NOT_EARLIER] * early
    assert only(join(stream("clicks", TS, K), stream("views", RTS, RK), *ranges, how=how)).output == output


def test_a_table_costs_no_state() -> None:
    found = only(SparkJoin((), (stream("clicks", TS, K, False), Static((RK,))), how="inner", keys=((K, RK),)))
    assert (found.state, found.safe) == ("none", True)


def test_columns_cut_away_keep_their_names_in_the_advice() -> None:
    left = Through((K,), (stream("clicks", TS, K),))
    right = Through((RK,), (stream("views", Column(3, "ts", "timestamp"), RK),))
    seen = ((marked(Column(7, "clicked", "timestamp")), K), (marked(Column(8, "seen", "timestamp")), RK))
    plan = SparkJoin((), (left, right), how="inner", keys=((K, RK),), seen=seen)
    assert only(plan).needs == ("AND seen BETWEEN clicked AND clicked + INTERVAL 1 HOUR",)
    unseen = only(replace(plan, seen=()))
    assert unseen.needs[:2] == ("select ts of clicks along to the join", "select ts of views along to the join")
    assert unseen.needs[2] == "AND views.ts BETWEEN clicks.ts AND clicks.ts + INTERVAL 1 HOUR"


WINDOW = Column(9, "window", "struct<start:timestamp,end:timestamp>", MARK)


@pytest.mark.parametrize(("keys", "watermark", "mode", "state", "output"), [
    ((), False, "complete", "constant", "at once"),
    ((), False, "append", "constant", "held back"),
    ((K,), False, "update", "unbounded", "at once"),
    ((K,), True, "append", "unbounded", "held back"),
    ((WINDOW, K), True, "append", "bounded", "complete"),
    ((WINDOW,), True, "update", "bounded", "at once"),
    ((WINDOW,), True, "complete", "unbounded", "at once"),
    ((replace(WINDOW, delay=None),), False, "update", "unbounded", "at once"),
    ((marked(TS),), True, "append", "bounded", "complete"),
    ((Column(5, "even", "boolean"),), False, "update", "constant", "at once"),
    ((Column(5, "even", "boolean"), K), False, "update", "unbounded", "at once"),
])  # fmt: skip
def test_groups_go_with_a_watermarked_key(
    keys: tuple[Column, ...], watermark: bool, mode: str, state: str, output: str
) -> None:
    found = only(SparkAggregate(keys, (stream("clicks", TS, K, watermark),), keys=keys), mode)
    assert (found.state, found.output) == (state, output)


def test_the_advice_for_groups_fits_what_is_there() -> None:
    def needs(input: SparkNode, *keys: Column, seen: tuple[Column, ...] = ()) -> tuple[str, ...]:
        return only(SparkAggregate(keys, (input,), keys=keys, seen=(seen,) if seen else ()), "update").needs

    bare = replace(WINDOW, delay=None)
    assert needs(stream("clicks", TS, K, False), bare) == ('.withWatermark("ts", "10 minutes") on clicks',)
    assert needs(stream("clicks", TS, K), K) == ('window("ts", "1 hour") among the keys',)
    assert needs(Through((K,), (stream("clicks", TS, K),)), K) == (
        'select ts along to here, and window("ts", "1 hour") among the keys',
    )
    hourly = SparkAggregate((WINDOW, K), (stream("clicks", TS, K),), keys=(WINDOW, K))
    assert analyse(SparkAggregate((K,), (hourly,), keys=(K,)), "update").findings[1].needs == ("window among the keys",)


def test_one_group_that_keeps_every_value_is_not_constant() -> None:
    clicks = stream("clicks", TS, K)
    found = only(SparkAggregate((), (clicks,), keys=(), hoards="collect_list"), "complete")
    assert (found.state, found.needs != ()) == ("unbounded", True)
    assert only(SparkAggregate((), (clicks,), keys=(WINDOW,), hoards="collect_list")).state == "bounded"


def test_two_watermarks_from_one_input_are_refused() -> None:
    pairs = join(stream("clicks", TS, K), stream("views", RTS, RK), NOT_LATER, NOT_EARLIER)
    again = Deduplicate(pairs.columns, (pairs,), keys=(K,), within_watermark=True)
    refused = analyse(again).culprit
    assert refused is not None
    assert "ts, rts have a watermark" in refused.why[-1]
    assert "drop('rts')" in refused.needs[-1]
    dropped = Through((marked(TS), K), (pairs,))
    assert analyse(replace(again, inputs=(dropped,), columns=dropped.columns))
    assert analyse(SparkAggregate((WINDOW,), (pairs,), keys=(WINDOW,)))


def test_a_second_watermark_is_refused() -> None:
    plan = Watermark((marked(TS), K), (Through((), (stream("clicks", TS, K),)),), column=TS, delay="1 hour")
    report = analyse(plan)
    assert report.culprit is not None
    assert report.culprit.operator == 'withWatermark("ts", "1 hour")'


def test_duplicates_are_forgotten_with_a_watermarked_key_or_within_the_watermark() -> None:
    clicks, bare = stream("clicks", TS, K), stream("clicks", TS, K, False)
    for input, keys, within, state in [
        (bare, (K,), False, "unbounded"),
        (clicks, (K,), False, "unbounded"),
        (clicks, (K, marked(TS)), False, "bounded"),
        (clicks, (K,), True, "bounded"),
        (bare, (K,), True, "unbounded"),
    ]:
        found = only(Deduplicate(input.columns, (input,), keys=keys, within_watermark=within))
        assert found.state == state
    advice = only(Deduplicate(bare.columns, (bare,), keys=(K,))).needs
    assert advice == ('.withWatermark("ts", "10 minutes").dropDuplicatesWithinWatermark(["k"])',)


def test_state_of_user_code_depends_and_without_a_clock_it_is_refused() -> None:
    clicks = stream("clicks", TS, K)
    silent = Custom((), (clicks,), call="transformWithState", keys=(K,), timed=False, setting="NoTime")
    assert "TTL" in only(silent).needs[0]
    assert not analyse(silent)
    timed = replace(silent, timed=True, setting="EventTime")
    assert only(timed).state == "as the data says"
    assert str(analyse(timed)).startswith("depends on your code")


def test_a_union_takes_the_watermark_of_its_first_input() -> None:
    first, second = stream("clicks", TS, K), stream("views", RTS, RK, False)
    report = analyse(SparkUnion(first.columns, (first, second)))
    assert report.safe
    assert report.findings[0].needs == (
        '.withWatermark("rts", "10 minutes") on views, or one watermark after the union',
    )
    assert not analyse(SparkUnion(first.columns, (first, stream("views", RTS, RK)))).findings
    other = SparkUnion((TS, K), (second, first))
    counted = analyse(SparkAggregate((K,), (other,), keys=(K,)), "update").findings[-1]
    assert "does not get here" in counted.why[0]
    assert counted.needs == (".withWatermark on every input of the union",)


def test_several_watermarks_go_on_together_or_not_at_all() -> None:
    ranged = join(stream("clicks", TS, K), stream("views", RTS, RK), NOT_LATER, NOT_EARLIER)
    assert any("clicks, views" in a for a in only(ranged).assumes)
    alone = Deduplicate((), (stream("clicks", TS, K),), keys=(K,), within_watermark=True)
    assert not any("slowest" in a for a in only(alone).assumes)


def test_what_spark_refuses_is_not_safe() -> None:
    report = analyse(stream("clicks", TS, K), "append", "it says no")
    assert not report
    assert "Spark refuses to run this query: it says no" in str(report)


def test_edges_say_which_column_comes_with_a_promise() -> None:
    twice = SparkLimit((K,), (SparkLimit((K,), (stream("clicks", TS, K),), rows="3"),), rows="3")
    edges = analyse(twice).edges
    assert edges == {"clicks": "ts up to", "limit(3)": "no punctuation", "limit(3) (2)": "no punctuation"}


def test_a_plan_of_two_hundred_operators_costs_little(calls: Callable[..., int]) -> None:
    plan = stream("clicks", TS, K)
    for i in range(200):
        plan = Deduplicate(plan.columns, (plan,), keys=(K,), within_watermark=i % 2 == 0)
    assert calls(lambda: analyse(plan)) < 400_000
    report = analyse(plan)
    assert len(report.findings) == 200
    deep: SparkNode = stream("clicks", TS, K)
    for _ in range(5000):
        deep = Through(deep.columns, (deep,))
    assert analyse(deep).safe
