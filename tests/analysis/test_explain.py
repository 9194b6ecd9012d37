"""Which punctuation will flow, on what state leaves, and how `explain` draws it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from penstock.analysis.explain import coming, explain_mermaid, explain_text, leaving
from penstock.analysis.judge import weigh
from penstock.analysis.propagate import Propagation
from penstock.builder.stream import StreamBuilder
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import less, one_of
from penstock.pattern.schema import Schema
from penstock.plan.orders import Answer
from penstock.plan.plan import Plan
from penstock.plan.policy import Punctuate
from penstock.plan.promise import InBand


def stream(name: str, columns: str = "ts timestamp, trip int, sensor int, v double", *promises: Any) -> StreamBuilder:
    return StreamBuilder(Source((), Schema.parse(columns, "ts"), name=name, promises=promises))


def timed(name: str) -> StreamBuilder:
    return stream(name).disorder("5 s")


def keyed(name: str) -> StreamBuilder:
    return timed(name).punctuate(Punctuate.after("trip", "10 min"))


def flows(s: StreamBuilder) -> list[str]:
    plan = s.plan
    return list(coming(plan)[plan.nodes[-1].id])


def released(s: StreamBuilder) -> list[str]:
    plan = s.plan
    return list(leaving(plan)[plan.nodes[-1].id])


def test_what_sources_promise() -> None:
    assert flows(stream("s")) == []
    assert flows(timed("s").ends()) == ["ts up to", "everything, at the end"]
    assert flows(keyed("s")) == ["ts up to", "trip: each value"]
    assert flows(stream("s").punctuate(Punctuate.once("trip"))) == ["trip: each value"]
    assert flows(stream("s").complete_when([1, 2], on="sensor", past="ts")) == ["ts up to"]
    assert flows(stream("s").bounds("v", 0.0, 9.0)) == ["v outside its bounds"]
    assert flows(stream("s", "ts timestamp", InBand())) == ["what the data says"]


def test_stateless_operators_rename_and_forget() -> None:
    s = keyed("s")
    assert flows(s.where("v > 3")) == ["ts up to", "trip: each value"]
    assert flows(s.rename(trip="journey").drop("ts")) == ["journey: each value"]
    assert flows(s.select("ts", twice="trip * 2")) == ["ts up to"]
    assert flows(s.map(lambda t: t, keeps=["trip"])) == ["trip: each value"]
    assert flows(s.window("1 min")) == ["ts up to", "window_start up to", "trip: each value"]


def test_groups_wait_for_what_describes_them() -> None:
    s = timed("s")
    assert released(s.window("1 min").group_by("sensor").agg(n="count(*)")) == ["groups leave on `window_start up to`"]
    assert flows(s.window("1 min").group_by("sensor").agg(n="count(*)")) == ["window_start up to"]
    assert released(keyed("s").group_by("trip").agg(n="count(*)")) == ["groups leave on `trip: each value`"]
    assert released(s.group_by("trip").agg(n="count(*)")) == [
        never := "groups never leave: nothing from s promises `trip` (what arrives: ts up to)",
        need := "needs s: trip: each value",
    ]
    at_the_end = "but all of it leaves at the end of the run, which s will tell"
    assert released(s.ends().group_by("trip").agg(n="count(*)")) == [never, at_the_end, need]
    assert released(stream("s").window("1 min").agg(n="count(*)")) == [
        "groups never leave: nothing from s promises `window_start` (what arrives: no punctuation)",
        "needs s: ts up to",
    ]


def test_bounds_release_nothing() -> None:
    assert released(stream("s").bounds("trip", 1, 9).group_by("trip").agg(n="count(*)")) == [
        "groups never leave: nothing from s promises `trip` (what arrives: no punctuation)",
        "needs s: trip: each value",
    ]


def test_a_union_promises_what_all_inputs_do() -> None:
    assert flows(keyed("a").union(timed("b"))) == ["ts up to"]
    assert flows(keyed("a").union(stream("b"))) == []
    assert flows(timed("a").union(stream("b").punctuate(Punctuate.once("trip")))) == ["ts up to + trip: each value"]


def test_sorting_and_distinct() -> None:
    s = keyed("s")
    assert released(s.order_by("ts")) == ["a sorted prefix leaves on `ts up to`"]
    assert released(s.order_by("v")) == [
        "sorted events never leave: nothing from s promises `v` (what arrives: ts up to; trip: each value)",
        "needs s: v up to",
    ]
    assert released(s.order_by("ts", slack=3)) == ["the first of 4 events leaves when another arrives"]
    assert released(s.distinct()) == ["events are forgotten on `ts up to` or `trip: each value`"]
    assert released(stream("s").distinct()) == [
        "remembered events never leave: nothing from s promises anything (what arrives: no punctuation)",
        "needs s: ts up to",
    ]


def test_finite_domains_let_others_speak() -> None:
    columns = "ts timestamp, sensor int"
    left = stream("l", columns).disorder("5 s").rename(ts="at")
    each = stream("r", columns).punctuate(Punctuate.once("sensor"), Punctuate.values("sensor", [1, 2]))
    both = left.rename(at="ts").union(each)
    assert flows(both) == ["ts up to + sensor: each value"]
    assert flows(both.select("ts")) == []  # The left input may have other sensors.
    known = stream("k", columns).disorder("5 s").punctuate(Punctuate.values("sensor", [1, 2, 3]))
    assert flows(known.union(each).select("ts")) == ["ts up to"]


def test_a_join_releases_each_side_on_promises_of_the_other() -> None:
    pair = stream("l").join(keyed("r"), on="trip")
    assert released(pair) == [
        "left rows (l) leave on right (r) `trip: each value`",
        "right rows (r) never leave: nothing from left (l) promises `trip` (what arrives: no punctuation)",
        "needs l: trip: each value",
        'needs partners near in time instead: join(…, within="1 h"), and time up to from both',
    ]
    assert released(keyed("l").join(keyed("r"), on="trip")) == [
        "left rows (l) leave on right (r) `trip: each value`",
        "right rows (r) leave on left (l) `trip: each value`",
    ]
    assert "trip: each value" in flows(keyed("l").join(keyed("r"), on="trip"))
    assert flows(pair) == []
    assert released(timed("l").ends().join(timed("r").ends(), on="trip")) == [
        "left rows (l) never leave: nothing from right (r) promises `trip` (what arrives: ts up to)",
        "right rows (r) never leave: nothing from left (l) promises `trip` (what arrives: ts up to)",
        "but all of it leaves at the end of the run, which l and r will tell",
        "needs r: trip: each value",
        "needs l: trip: each value",
        'needs partners near in time instead: join(…, within="1 h"), and time up to from both',
    ]


def test_a_band_lets_time_release() -> None:
    pair = timed("l").join(timed("r"), on="trip", within="1 min")
    assert released(pair) == [
        "left rows (l) leave on right (r) `ts up to`",
        "right rows (r) leave on left (l) `ts up to`",
    ]
    assert any(re.fullmatch(r"ts\w* up to", f) for f in flows(pair))


@pytest.mark.parametrize("form", ["text", "mermaid"])
def test_explain_draws_it_only_when_asked(form: str) -> None:
    plan = Plan.of(keyed("l").join(stream("r"), on="trip").operator)
    draw = explain_text if form == "text" else explain_mermaid
    plain, punctuated = draw(plan), draw(plan, punctuation=True)
    assert "up to" not in plain and "state: " not in plain
    leave = "state: right rows (r) leave on left (l) `trip: each value`"
    for said in ("ts up to; trip: each value", "no punctuation", leave):
        assert said in punctuated
    assert "left rows (l) never leave: nothing from right (r) promises `trip`" in punctuated
    if form == "text":
        kept = [line for line in punctuated.splitlines() if "⇢" not in line and "state: " not in line]
        assert "\n".join(kept) == plain


def test_the_whole_of_an_explained_plan() -> None:
    query = timed("cars").window("1 min").group_by("sensor").agg(n="count(*)")
    assert explain_text(query.plan, punctuation=True) == "\n".join(
        [
            "aggregate-1: count(*) AS n by window_start, sensor",
            "   │  → (window_start timestamp, sensor int, n bigint)",
            "   │  state: groups leave on `window_start up to`",
            "   └─ bucket-1: Window.tumbling('1 min', on='ts')",
            "      │  → (ts timestamp, trip int, sensor int, v double, window_start timestamp)",
            "      │  ⇢ ts up to; window_start up to",
            "      └─ source:cars: cars from nothing to read yet (disorder(ts within 5 s))",
            "            → (ts timestamp, trip int, sensor int, v double)",
            "            ⇢ ts up to",
        ]
    )


def test_what_flows_was_foretold() -> None:
    """Real punctuations of the promised templates, carried through plans, are those that were foretold."""
    left, right = keyed("l"), keyed("r")
    plans = [
        left.union(right).window("1 min").group_by("trip").agg(n="count(*)"),
        left.join(right, on="trip").distinct(),  # The state is asked only if somebody hears the answer.
        left.join(timed("r"), on="trip", within="1 min").distinct(),
        left.join(right, on="trip", how="full").distinct(),
        left.join(timed("r"), on="trip", within="1 min", how="left").group_by("trip").agg(n="count(*)"),
        left.join(right, on="trip", how="anti").distinct().rename(trip="journey"),
        left.order_by("ts", "trip").select("ts"),
    ]
    for query in plans:
        plan = query.plan
        flows = {i: verdict.behind for i, verdict in weigh(plan).items()}
        # Of a template and of what comes besides, the attributes that it speaks of.
        foretold = {
            i: [{n for n, _ in t} for t in f.promised] + [set(a.names) for a in f.asides] for i, f in flows.items()
        }
        carried = Propagation(plan)
        seen: set[tuple[str, frozenset[str]]] = set()
        for minute in (1, 2, 3):
            said: dict[str, list[Pattern]] = {}
            for node in plan.sources:
                schema = node.operator.schema
                said[node.id] = [Pattern.where(schema, ts=less(f"2026-01-01 00:0{minute}:00"))]
                if {"trip"} in foretold[node.id]:
                    said[node.id].append(Pattern.where(schema, trip=one_of([minute, minute + 4])))
            for node_id, patterns in carried.run(said).items():
                seen |= {(node_id, frozenset(p.restricted)) for p in patterns}
            # An empty state has no objections.
            asked = {i: o.ask for i, o in carried.orders().items() if any(o.ask)}
            carried.answered({i: [[Answer(0)] * len(port) for port in ask] for i, ask in asked.items()})
        for node_id, restricted in seen:
            assert any(names <= restricted for names in foretold[node_id]), (query, node_id, restricted)
        # And what was foretold comes.
        last = plan.nodes[-1].id
        assert {f for i, f in seen if i == last} >= {frozenset(names) for names in foretold[last] if len(names) == 1}
