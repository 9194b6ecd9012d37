"""The verdict on plans: a table of small queries, written from the rules of the operators, and the classical ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from accordance import Accordance, accord
from disaccord import Edge
from offerings import offering

import penstock as ps
from penstock.analysis.check import check
from penstock.analysis.judge import weigh
from penstock.builder.multiway import join as multijoin
from penstock.builder.stream import StreamBuilder
from penstock.contract.report import Finding, Report
from penstock.operators.sink.operator import Sink
from penstock.operators.source.operator import Source
from penstock.pattern.schema import Schema
from penstock.plan.plan import Plan
from penstock.plan.policy import Punctuate
from penstock.plan.table import table

COLUMNS = "ts timestamp, trip int, zone string, v double"


def bare(name: str, columns: str = COLUMNS, time: str | None = "ts") -> StreamBuilder:
    return StreamBuilder(Source((), Schema.parse(columns, time), name=name))


def timed(name: str) -> StreamBuilder:
    return bare(name).disorder("5 s")


def keyed(name: str) -> StreamBuilder:
    return bare(name).punctuate(Punctuate.once("trip"))


def zoned(name: str) -> StreamBuilder:
    """Three zones and no others; nothing is punctuated."""
    return bare(name).punctuate(Punctuate.values("zone", ["a", "b", "c"]))


def last(stream: StreamBuilder, **how: Any) -> Finding:
    return check(stream.plan, **how).findings[-1]


A, B = bare("a"), bare("b")
TA, TB, KA, KB = timed("a"), timed("b"), keyed("a"), keyed("b")
COUNT = {"n": "count(*)"}
TABLE = table("zones", "zone string, name string", key="zone").read_parquet("zones")
BY_RANGE = bare("a").punctuated().scheme(trip="range")
PER_ZONE = bare("a").punctuate(Punctuate.values("zone", ["a", "b"])).punctuated().scheme(ts="up to", zone="value")

#: A query, and the state and the output of its last operator.
VERDICTS: list[tuple[str, StreamBuilder, str, str]] = [
    # Without state.
    ("where", A.where("v > 1"), "none", "at once"),
    ("select", TA.select("ts"), "none", "at once"),
    ("map", TA.map(lambda t: t), "none", "at once"),
    ("union", A.union(B), "none", "at once"),
    ("lookup", A.lookup(TABLE, "zone"), "none", "at once"),
    ("window", A.window("1 min"), "none", "at once"),
    # Aggregates close on any part of the grouping key, and on nothing else.
    ("window by time", TA.window("1 min").group_by("trip").agg(**COUNT), "bounded", "complete"),
    ("sliding window", TA.window("1 min", slide="10 s").group_by("trip").agg(**COUNT), "bounded", "complete"),
    ("window by key", KA.window("1 min").group_by("trip").agg(**COUNT), "bounded", "complete"),
    ("window, key elsewhere", KA.window("1 min").group_by("zone").agg(**COUNT), "unbounded", "held back"),
    ("group by key", KA.group_by("trip", "zone").agg(**COUNT), "bounded", "complete"),
    ("group by key, only time", TA.group_by("trip").agg(**COUNT), "unbounded", "held back"),
    ("group by a range of keys", BY_RANGE.group_by("trip").agg(**COUNT), "bounded", "complete"),
    ("one group", TA.agg(**COUNT), "constant", "held back"),
    ("one group that keeps its values", TA.agg(n="count(distinct trip)"), "unbounded", "held back"),
    ("windows that keep their values", TA.window("1 min").agg(n="count(distinct trip)"), "bounded", "complete"),
    (
        "landmark that keeps its values",
        TA.window(landmark="1 h").agg(n="count(distinct trip)"),
        "unbounded",
        "complete",
    ),
    ("few groups", zoned("a").group_by("zone").agg(**COUNT), "constant", "held back"),
    ("few groups, many windows", zoned("a").window("1 min").group_by("zone").agg(**COUNT), "unbounded", "held back"),
    ("group over what is computed", KA.select(trip="trip + 1").group_by("trip").agg(**COUNT), "unbounded", "held back"),
    ("group over what is renamed", KA.rename(trip="t").group_by("t").agg(**COUNT), "bounded", "complete"),
    ("time of each zone, together", PER_ZONE.window("1 min").agg(**COUNT), "bounded", "complete"),
    ("bounds release nothing", A.bounds("trip", 0, 9).group_by("trip").agg(**COUNT), "unbounded", "held back"),
    ("in band, undeclared", A.punctuated().group_by("trip").agg(**COUNT), "as the data says", "complete"),
    ("in band, declared", A.punctuated().scheme(trip="value").group_by("trip").agg(**COUNT), "bounded", "complete"),
    ("in band, other", A.punctuated().scheme(ts="up to").group_by("trip").agg(**COUNT), "unbounded", "held back"),
    # Windows by count keep a position for each key; landmark windows keep a total for each, for ever.
    ("count window", A.window(rows=10).agg(**COUNT), "constant", "at once"),
    ("count window by key", TA.window(rows=10).group_by("trip").agg(**COUNT), "unbounded", "held back"),
    ("count window, key ends", KA.window(rows=10).group_by("trip").agg(**COUNT), "bounded", "complete"),
    ("landmark", TA.window(landmark="1 h").agg(**COUNT), "bounded", "complete"),
    ("sessions", TA.window(session="1 h").group_by("trip").agg(**COUNT), "bounded", "complete"),
    ("sessions without time", A.window(session="1 h").group_by("trip").agg(**COUNT), "unbounded", "held back"),
    ("landmark without time", A.window(landmark="1 h").agg(**COUNT), "unbounded", "held back"),
    (
        "landmark by key, which ends",
        timed("a").punctuate(Punctuate.once("trip")).window(landmark="1 h").group_by("trip").agg(**COUNT),
        "unbounded",
        "complete",
    ),
    (
        "landmark by zone",
        zoned("a").disorder("1 s").window(landmark="1 h").group_by("zone").agg(**COUNT),
        "bounded",
        "complete",
    ),
    # Duplicates and sorting.
    ("distinct", A.distinct(), "unbounded", "at once"),
    ("distinct by time", TA.distinct(), "bounded", "at once"),
    ("distinct by key", KA.distinct(), "bounded", "at once"),
    ("distinct of few", zoned("a").select("zone").distinct(), "constant", "at once"),
    ("order", TA.order_by("ts", "trip"), "bounded", "complete"),
    ("order by another first", TA.order_by("trip", "ts"), "unbounded", "held back"),
    ("order down", TA.order_by("ts desc"), "unbounded", "held back"),
    ("order by key values", KA.order_by("trip"), "unbounded", "held back"),
    ("order with slack", A.order_by("ts", slack=9), "constant", "at once"),
    ("merge", TA.merge(TB), "bounded", "complete"),
    ("merge with one that is silent", TA.merge(B), "unbounded", "held back"),
    # Joins: rows of one side leave on promises of the other.
    ("join", A.join(B, "trip"), "unbounded", "at once"),
    ("join, only time, no window", TA.join(TB, "trip"), "unbounded", "at once"),
    ("join by key", KA.join(KB, "trip"), "bounded", "at once"),
    ("join, one side's keys end", KA.join(B, "trip"), "unbounded", "at once"),
    ("join in a window", TA.join(TB, "trip", within="1 h"), "bounded", "at once"),
    ("join in a window, one side silent", TA.join(B, "trip", within="1 h"), "unbounded", "at once"),
    ("join, time one way and keys the other", KA.join(TB, "trip", within="1 h"), "bounded", "at once"),
    ("band open above", TA.join(TB, "trip", between=("0 s", None)), "unbounded", "at once"),
    ("band open above, right keys end", TA.join(KB, "trip", between=("0 s", None)), "bounded", "at once"),
    ("band open below, right keys end", TA.join(KB, "trip", between=(None, "0 s")), "unbounded", "at once"),
    (
        "join, mixed classes over the key",
        KA.join(bare("b").punctuate(Punctuate.sorted_by("trip")), "trip"),
        "bounded",
        "at once",
    ),
    ("join on part of the key", KA.join(KB, ["trip", "zone"]), "bounded", "at once"),
    ("left", KA.join(KB, "trip", "left"), "bounded", "complete"),
    ("left, left never settled", KA.join(B, "trip", "left"), "unbounded", "held back"),
    ("left, right never settled", A.join(KB, "trip", "left"), "unbounded", "complete"),
    ("right, right never settled", A.join(KB, "trip", "right"), "unbounded", "held back"),
    ("full", TA.join(TB, "trip", "full", within="1 h"), "bounded", "complete"),
    ("full, one side silent", TA.join(B, "trip", "full", within="1 h"), "unbounded", "held back"),
    ("semi", KA.join(KB, "trip", "semi"), "bounded", "at once"),
    ("anti", KA.join(KB, "trip", "anti"), "bounded", "complete"),
    ("anti, nothing", A.join(B, "trip", "anti"), "unbounded", "held back"),
    ("intersect", TA.intersect(TB), "bounded", "at once"),
    ("difference of two silent ones", A.difference(B), "unbounded", "at once"),
    ("join, right says it in band", KA.join(B.punctuated(), "trip"), "as the data says", "at once"),
    ("join, right in band, left silent", A.join(B.punctuated(), "trip"), "unbounded", "at once"),
    ("last rows", TA.join(TB, "trip", rows=5), "unbounded", "complete"),
    (
        "last rows of few",
        zoned("a").disorder("1 s").join(zoned("b").disorder("1 s"), "zone", rows=5),
        "bounded",
        "complete",
    ),
    (
        "all rows of few",
        zoned("a").disorder("1 s").join(zoned("b").disorder("1 s"), "zone", rows=(5, None)),
        "unbounded",
        "complete",
    ),
    ("last rows without time", zoned("a").join(zoned("b").disorder("1 s"), "zone", rows=5), "unbounded", "held back"),
]


@pytest.mark.parametrize(("query", "state", "output"), [v[1:] for v in VERDICTS], ids=[v[0] for v in VERDICTS])
def test_verdicts(query: StreamBuilder, state: str, output: str) -> None:
    found = last(query)
    assert (found.state, found.output) == (state, output)
    assert bool(found.needs) == (not found.safe)
    assert found.state == "none" or found.why


@pytest.mark.parametrize("query", [v[1] for v in VERDICTS], ids=[v[0] for v in VERDICTS])
def test_a_plan_is_safe_if_its_offerings_have_an_accordance(query: StreamBuilder) -> None:
    plan = query.plan
    verdicts = weigh(plan)
    if any(v.state == "as the data says" for v in verdicts.values()):
        pytest.skip("no contract says what the data decides")
    offered = {n.id: offering(n.operator, [verdicts[i].behind.scheme for i in n.inputs]) for n in plan.nodes}
    edges = [Edge(i, n.id, input=k) for n in plan.nodes for k, i in enumerate(n.inputs)]
    assert isinstance(accord(offered, edges), Accordance) == check(plan).safe


# --- what is said -----------------------------------------------------------------------------------------------------


def test_a_join_says_on_what_rows_leave_and_what_that_assumes() -> None:
    found = last(keyed("starts").join(keyed("ends"), "trip", "left"))
    assert found.why == (
        "left rows (starts) leave on right (ends) `trip: each value`",
        "right rows (ends) leave on left (starts) `trip: each value`",
    )
    assert found.assumes == ("every `trip` of starts also ends in ends", "every `trip` of ends also ends in starts")


def test_time_goes_on_everywhere_and_needs_no_assumption() -> None:
    assert last(TA.join(TB, "trip", within="1 h")).assumes == ()
    assert last(TA.union(TB).window("1 min").agg(**COUNT)).assumes == ()


def test_a_stream_joined_with_itself_ends_its_own_keys() -> None:
    assert last(KA.where("v > 1").join(KA.where("v < 0"), "trip")).assumes == ()


def test_assumptions_travel_with_the_punctuation() -> None:
    found = last(KA.union(KB).group_by("trip").agg(**COUNT))
    assert found.safe
    assert set(found.assumes) == {"every `trip` of a also ends in b", "every `trip` of b also ends in a"}


def test_each_zone_must_be_told_of() -> None:
    found = last(PER_ZONE.window("1 min").agg(**COUNT))
    assert found.assumes == ("punctuation comes for every declared value of `zone`",)


def test_what_is_missing_is_named_with_its_source() -> None:
    report = check(bare("probes").rename(trip="t").window("1 min").group_by("t").agg(**COUNT).plan)
    assert report.culprit is not None
    assert report.culprit.operator == "aggregate-1"
    assert report.culprit.needs == ("probes: ts up to", "probes: trip: each value")
    assert "no punctuation" in report.culprit.why[0]
    assert report.edges["project-1"] == "no punctuation"


def test_where_a_promise_got_lost() -> None:
    found = last(TA.order_by("ts", slack=3).distinct())
    assert "`ts up to` of a does not get through orderby-1" in found.why[-1]


def test_unmatched_rows_are_not_reached_by_punctuation_of_the_other_side() -> None:
    # Padded rows have a null in ts_right: a duplicate elimination behind the join keeps them for ever.
    joined = TA.join(TB, "trip", "left", within="1 h").select("trip", "ts_right").distinct()
    assert last(joined).state == "unbounded"
    assert last(TA.join(TB, "trip", "left", within="1 h").select("trip", "ts").distinct()).state == "bounded"
    assert last(TA.join(TB, "trip", within="1 h").select("trip", "ts_right").distinct()).state == "bounded"


def test_values_of_a_stored_attribute_are_lost_without_a_window() -> None:
    """A promise on a zone of which rows are stored is not asked again: only what rises, or a window, lets it pass."""
    left = KA.punctuate(Punctuate.once("zone"))
    right = KB.select("trip", "ts")
    assert last(left.join(right, "trip").group_by("zone").agg(**COUNT)).state == "unbounded"
    windowed = timed("a").punctuate(Punctuate.once("zone")).join(TB.select("trip", "ts"), "trip", within="1 h")
    assert last(windowed.group_by("zone").agg(**COUNT)).state == "bounded"


def test_time_passes_a_join_by_key_as_its_rows_leave() -> None:
    joined = timed("a").punctuate(Punctuate.once("trip")).join(KB.select("trip", zone_b="zone"), "trip")
    assert last(joined.window("1 min").agg(**COUNT)).state == "bounded"


def test_m_streams_at_once() -> None:
    def m(*streams: StreamBuilder, within: str | None = None) -> Finding:
        return last(multijoin(*streams, on="trip", within=within) if within else multijoin(*streams, on="trip"))

    c = keyed("c")
    assert m(KA, KB, c).state == "bounded"
    assert m(KA, KB, bare("c")).state == "unbounded"
    assert m(TA, TB, timed("c"), within="1 h").state == "bounded"
    assert m(TA, TB, bare("c"), within="1 h").needs == ("c: trip: each value", "c: ts up to")


def test_a_bounded_run_that_ends() -> None:
    query = A.ends().join(B.ends(), "trip", "full").group_by("trip").agg(**COUNT)
    assert not check(query.plan)
    report = check(query.plan, bounded=True)
    assert report.safe
    assert "at the end of the run" in report.findings[-1].why[-1]
    half = check(A.ends().join(B, "trip").plan, bounded=True)
    assert not half.safe
    assert half.fixes[0].declaration == "b = b.ends()"


def test_several_sinks_share_a_source() -> None:
    queries = (TA.window("1 min").agg(**COUNT), TA.group_by("trip").agg(**COUNT))
    good, bad = (Sink((q.operator,), q.schema) for q in queries)
    report = check(Plan.of(good, bad))
    assert [f.operator for f in report.findings if not f.safe] == ["aggregate-2"]


# --- the classical queries --------------------------------------------------------------------------------------------


def messages(first: StreamBuilder, second: StreamBuilder) -> Report:
    def counted(s: StreamBuilder) -> StreamBuilder:
        windowed = s.window("1 min").select("window_start", "source", "destination")
        return windowed.group_by("window_start", "source", "destination").agg(n="count(*)")

    on = {"window_start": "window_start", "source": "destination", "destination": "source"}
    joined = counted(first).join(counted(second), on).select("window_start", "source", ratio="n / n_right")
    return check(joined.plan)


def test_the_message_query() -> None:
    one, two = (bare(n, "ts timestamp, source int, destination int") for n in ("msg1", "msg2"))
    by_time = messages(one.disorder("1 s"), two.disorder("1 s"))
    assert by_time.safe
    assert not any(f.assumes for f in by_time.findings)
    assert by_time.edges["project-3"] == "window_start up to"

    by_key = messages(one.punctuate(Punctuate.once("source")), two.punctuate(Punctuate.once("destination")))
    assert by_key.safe
    assert {a for f in by_key.findings for a in f.assumes} == {
        "every `source` of msg1 also ends in msg2 (`destination`)",
        "every `destination` of msg2 also ends in msg1 (`source`)",
    }

    without = messages(one, two)
    assert [f.operator for f in without.findings if not f.safe] == ["aggregate-1", "aggregate-2", "join-1"]
    assert without.fixes[0].declaration == 'msg1 = msg1.disorder("1 min")\nmsg2 = msg2.disorder("1 min")'


def auction(item: StreamBuilder, bid: StreamBuilder, person: StreamBuilder) -> Report:
    sold = item.join(bid, "item_id")
    early = sold.join(person, {"bidder": "p_id"}, between=(-12, None), times=("at", "since"))
    return check(early.group_by("bidder").agg(n="count(distinct category)").plan)


def test_the_auction() -> None:
    item = bare("item", "item_id int, category string", None)
    bid = bare("bid", "item_id int, bidder string, at int", "at")
    person = bare("person", "p_id string, since int", "since")
    whole = (
        item.punctuate(Punctuate.once("item_id")),
        bid.punctuate(Punctuate.sorted_by("at"), Punctuate.once("item_id")),
        person.punctuate(Punctuate.once("p_id")),
    )
    assert auction(*whole).safe
    # Only Person has a window: without the keys of Item and Person, bids and what they won stay.
    missing = auction(item, whole[1], person)
    assert [f.operator for f in missing.findings if not f.safe][:2] == ["join-1", "join-2"]
    assert missing.fixes[0].stream.split(", ") in (["item", "person"], ["person", "item"])
    assert 'once("item_id")' in missing.fixes[0].declaration
    assert 'once("p_id")' in missing.fixes[0].declaration


@pytest.mark.parametrize("first", ["r with s", "s with t"])
def test_another_join_order_does_not_purge_what_nobody_ends(first: str) -> None:
    """Both orders leave state of t: it needs c or d from the other side, and b up to tells nothing of these."""
    r = bare("r", "a int, b int", None).punctuate(Punctuate.sorted_by("b"))
    s = bare("s", "b int, c int, d int", None).punctuate(Punctuate.sorted_by("b"))
    t = bare("t", "c int, d int", None).punctuate(Punctuate.sorted_by("c"))
    query = r.join(s, "b").join(t, ["c", "d"]) if first == "r with s" else r.join(s.join(t, ["c", "d"]), "b")
    report = check(query.plan)
    assert not report.safe
    (with_t,) = [f for f in report.findings if f.operator.startswith("join") and any("(t)" in w for w in f.why)]
    assert with_t.state == "unbounded"
    assert any(w.startswith("right rows (t) never leave") for w in with_t.why)


def test_two_hundred_operators_cost_little(calls: Callable[..., int]) -> None:
    streams = [timed(f"s{i}").punctuate(Punctuate.once("trip")) for i in range(40)]
    query = streams[0]
    for i, s in enumerate(streams[1:], 1):
        other = s.where("v > 1").select("ts", "trip", **{f"v{i}": "v"})
        first = query.schema.times[0]
        query = query.where("v > 0").join(other, "trip", within="1 h", times=(first, "ts"), suffix=f"_{i}")
    plan = query.plan
    assert len(plan.nodes) >= 190
    assert check(plan).safe
    assert calls(lambda: check(plan)) < 500_000


def test_it_is_told_when_every_event_is_in_many_windows() -> None:
    s = ps.stream("s", "ts timestamp, k int", time="ts").disorder("1 s")
    (many,) = [f for f in s.window("1 h", slide="1 s").agg(n="count(*)").check().findings if f.operator == "bucket-1"]
    assert many.why == ("every event is in 3,600 windows, and counts in each",)
    (few,) = [f for f in s.window("1 h", slide="1 min").agg(n="count(*)").check().findings if f.operator == "bucket-1"]
    assert few.why == ()


@pytest.mark.parametrize("few", ["group", "all", "top"])
def test_results_that_wait_for_what_nobody_declared_are_not_called_sure(few: str) -> None:
    """However little is kept, whether results appear is for the data to say."""
    s = ps.stream("s", "ts int, k int", time="ts").punctuated().punctuate(Punctuate.values("k", [1, 2]))
    query = {
        "group": s.group_by("k").agg(n="count(*)"),
        "all": s.agg(n="count(*)"),
        "top": s.top(2, "ts", ["k"]),
    }[few]
    report = query.check()
    last = report.findings[-1]
    assert (last.mark, last.state, last.output) == ("?", "constant", "as the data says")
    assert report.safe and report.verdict.startswith("safe if the data says enough")
    if few != "all":
        assert s.scheme(k="value").group_by("k").agg(n="count(*)").check().findings[-1].mark == "✓"


@pytest.mark.parametrize("how", ["right", "rows"])
def test_unmatched_rows_that_wait_for_what_nobody_declared_are_not_called_sure(how: str) -> None:
    """Also where the join is unsafe for another reason."""
    s = ps.stream("s", "ts int, k int", time="ts").punctuated()
    t = ps.stream("t", "ts int, k int", time="ts").disorder(5)
    join = s.join(t, "k", "right") if how == "right" else s.join(t, "k", rows=2)
    last = join.check().findings[-1]
    assert (last.mark, last.state, last.output) == ("✗", "unbounded", "as the data says")
