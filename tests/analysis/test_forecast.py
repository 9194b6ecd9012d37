"""Which forms of punctuation will flow, what they release, and how `explain` draws it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from penstock.analysis.explain import explain_mermaid, explain_text
from penstock.analysis.forecast import forecast, releases
from penstock.analysis.form import Form
from penstock.analysis.propagate import Propagation
from penstock.builder.stream import Stream
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import less, one_of
from penstock.pattern.schema import Schema
from penstock.plan.orders import Answer
from penstock.plan.plan import Plan
from penstock.plan.policy import Punctuate
from penstock.plan.promise import InBand


def stream(name: str, columns: str = "ts timestamp, trip int, sensor int, v double", *promises: Any) -> Stream:
    return Stream(Source((), Schema.parse(columns, "ts"), name=name, promises=promises))


def timed(name: str) -> Stream:
    return stream(name).disorder("5 s")


def keyed(name: str) -> Stream:
    return timed(name).punctuate(Punctuate.after("trip", "10 min"))


def flows(s: Stream) -> list[str]:
    plan = s.plan
    return [str(f) for f in forecast(plan)[plan.nodes[-1].id]]


def released(s: Stream) -> list[str]:
    plan = s.plan
    return list(releases(plan)[plan.nodes[-1].id])


def test_a_form_reads_like_what_it_says() -> None:
    assert str(Form((("ts", "up to"), ("sensor", "value")))) == "ts up to + sensor: each value"
    assert str(Form()) == "everything, at the end"
    assert str(Form(open=True)) == "what the data says"


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
    assert released(s.window("1 min").group_by("sensor").agg(n="count(*)")) == ["groups: on `window_start up to`"]
    assert flows(s.window("1 min").group_by("sensor").agg(n="count(*)")) == ["window_start up to"]
    assert released(keyed("s").group_by("trip").agg(n="count(*)")) == ["groups: on `trip: each value`"]
    assert released(s.group_by("trip").agg(n="count(*)")) == ["groups: never: nothing promises `trip`"]
    assert released(s.ends().group_by("trip").agg(n="count(*)")) == ["groups: only at the end: nothing promises `trip`"]
    assert released(stream("s").window("1 min").agg(n="count(*)")) == ["groups: never: nothing promises `ts`"]


def test_bounds_release_nothing() -> None:
    assert released(stream("s").bounds("trip", 1, 9).group_by("trip").agg(n="count(*)")) == [
        "groups: never: nothing promises `trip`"
    ]


def test_a_union_promises_what_all_inputs_do() -> None:
    assert flows(keyed("a").union(timed("b"))) == ["ts up to"]
    assert flows(keyed("a").union(stream("b"))) == []
    assert flows(timed("a").union(stream("b").punctuate(Punctuate.once("trip")))) == ["ts up to + trip: each value"]


def test_sorting_and_distinct() -> None:
    s = keyed("s")
    assert released(s.order_by("ts")) == ["sorted prefix: on `ts up to`"]
    assert released(s.order_by("v")) == ["sorted prefix: never: nothing promises `v`"]
    assert released(s.order_by("ts", slack=3)) == ["rows: the first of 4 in order, as events arrive"]
    assert released(s.distinct()) == ["rows: on `ts up to` or `trip: each value`"]
    assert released(stream("s").distinct()) == ["rows: never: nothing promises anything"]


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
        "left rows: on right `trip: each value`",
        "right rows: never: nothing of left promises `trip`",
    ]
    assert released(keyed("l").join(keyed("r"), on="trip")) == [
        "left rows: on right `trip: each value`",
        "right rows: on left `trip: each value`",
    ]
    assert "trip: each value" in flows(keyed("l").join(keyed("r"), on="trip"))
    assert flows(pair) == []
    assert released(timed("l").ends().join(timed("r").ends(), on="trip")) == [
        "left rows: only at the end: nothing of right promises `trip`",
        "right rows: only at the end: nothing of left promises `trip`",
    ]


def test_a_band_lets_time_release() -> None:
    pair = timed("l").join(timed("r"), on="trip", within="1 min")
    assert released(pair) == ["left rows: on right `ts up to`", "right rows: on left `ts up to`"]
    assert any(re.fullmatch(r"ts\w* up to", f) for f in flows(pair))


@pytest.mark.parametrize("form", ["text", "mermaid"])
def test_explain_draws_it_only_when_asked(form: str) -> None:
    plan = Plan.of(keyed("l").join(stream("r"), on="trip").operator)
    draw = explain_text if form == "text" else explain_mermaid
    plain, punctuated = draw(plan), draw(plan, punctuation=True)
    assert "up to" not in plain and "releases" not in plain
    for said in ("ts up to; trip: each value", "no punctuation", "releases right rows: on left `trip: each value`"):
        assert said in punctuated
    assert "left rows: never: nothing of right promises `trip`" in punctuated
    if form == "text":
        kept = [line for line in punctuated.splitlines() if "⇢" not in line and "releases" not in line]
        assert "\n".join(kept) == plain


def test_the_whole_of_an_explained_plan() -> None:
    query = timed("cars").window("1 min").group_by("sensor").agg(n="count(*)")
    assert explain_text(query.plan, punctuation=True) == "\n".join(
        [
            "aggregate-1: count(*) AS n by window_start, sensor",
            "   │  → (window_start timestamp, sensor int, n bigint)",
            "   │  releases groups: on `window_start up to`",
            "   └─ bucket-1: Window.tumbling('1 min', on='ts')",
            "      │  → (ts timestamp, trip int, sensor int, v double, window_start timestamp)",
            "      │  ⇢ ts up to; window_start up to",
            "      └─ source:cars: cars from nothing to read yet (disorder(ts within 5 s))",
            "            → (ts timestamp, trip int, sensor int, v double)",
            "            ⇢ ts up to",
        ]
    )


def test_what_flows_was_forecast() -> None:
    """Real punctuations of the promised forms, carried through plans, have the forms that were forecast."""
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
        forms, carried = forecast(plan), Propagation(plan)
        seen: set[tuple[str, frozenset[str]]] = set()
        for minute in (1, 2, 3):
            said: dict[str, list[Pattern]] = {}
            for node in plan.sources:
                schema = node.operator.schema
                said[node.id] = [Pattern.where(schema, ts=less(f"2026-01-01 00:0{minute}:00"))]
                if Form((("trip", "value"),)) in forms[node.id]:
                    said[node.id].append(Pattern.where(schema, trip=one_of([minute, minute + 4])))
            for node_id, patterns in carried.run(said).items():
                seen |= {(node_id, frozenset(p.restricted)) for p in patterns}
            # An empty state has no objections.
            asked = {i: o.ask for i, o in carried.orders().items() if any(o.ask)}
            carried.answered({i: [[Answer(0)] * len(port) for port in ask] for i, ask in asked.items()})
        for node_id, restricted in seen:
            assert any(set(f.attributes) <= restricted for f in forms[node_id]), (query, node_id, restricted)
        # And what was forecast comes.
        last = plan.nodes[-1].id
        assert {f for i, f in seen if i == last} >= {frozenset(f.attributes) for f in forms[last] if len(f.parts) == 1}
