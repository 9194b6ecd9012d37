"""Guards: where a feedback comes to rest, and that what is kept of it stays small."""

from __future__ import annotations

import json
from random import Random

import pytest

import penstock as ps
from penstock.feedback.guards import Guards
from penstock.operators.sink.operator import Sink
from penstock.pattern.feedback import RECORDS, Feedback
from penstock.pattern.pattern import Pattern
from penstock.plan.plan import Plan
from penstock.portal.testing import local_session

SCHEMA = "ts int, segment int, speed double"


def plan_of(stream: ps.Stream) -> Plan:
    return Plan.of(Sink((stream.operator,), stream.schema))


def told(stream: ps.Stream, *texts: str) -> Guards:
    plan = plan_of(stream)
    guards = Guards(plan)
    guards.begin(1)
    for text in texts:
        root = plan.sinks[0].inputs[0]
        guards.tell(root, Feedback.parse(text, plan[root].operator.schema), edge="sink-1#0")
    return guards


def placed(guards: Guards) -> dict[str, list[str]]:
    return {place: [str(r.pattern) for r in records] for place, records in sorted(guards.places.items())}


@pytest.fixture
def traffic() -> ps.Stream:
    return ps.stream("traffic", SCHEMA, time="ts").disorder(5)


def test_a_chain_without_state_drops_at_the_source_alone(traffic: ps.Stream) -> None:
    chain = traffic.where("speed >= 0").rename(segment="road").where("speed < 200")
    assert placed(told(chain, "not [*, 3, *]")) == {"source:traffic": ["[*, 3, *]"]}


def test_what_is_computed_is_dropped_where_it_is_computed(traffic: ps.Stream) -> None:
    chain = traffic.with_columns(speed="speed * 1.6").where("speed < 200")
    assert placed(told(chain, "not [*, 3, >= 50]")) == {"project-1": ["[*, 3, >= 50.0]"]}


def test_an_operator_that_does_not_exploit_leaves_it_to_others(traffic: ps.Stream) -> None:
    chain = traffic.feedback(exploit=False).where("speed < 200")
    assert placed(told(chain, "not [*, 3, *]")) == {"select-1#0": ["[*, 3, *]"]}


def test_an_aggregate_drops_results_and_forms_no_such_groups(traffic: ps.Stream) -> None:
    query = traffic.window(10).group_by("segment").agg(top="max(speed)")
    found = told(query, "not [< 20, *, *]")
    places = placed(found)
    assert places["aggregate-1"] == places["aggregate-1:groups"] == ["[< 20, *, *]"]
    assert places["source:traffic"] == ["[< 20, *, *]"]
    assert found.fresh["aggregate-1:groups"]


def test_of_two_consumers_both_must_have_said_it(traffic: ps.Stream) -> None:
    one = traffic.where("speed > 0").instrument("not [*, {3, 4}, *]")
    both = one.union(traffic.instrument("not [*, {4, 5}, *]"))
    plan = plan_of(both)
    guards = Guards(plan)
    guards.begin(1)
    select, other = (
        n for n in plan.nodes if n.operator.kind in ("select", "instrument") and n.inputs == ("source:traffic",)
    )
    schema = plan["source:traffic"].operator.schema
    guards.tell("source:traffic", Feedback.parse("not [*, {3, 4}, *]", schema), edge=f"{select.id}#0")
    assert "source:traffic" not in guards.places
    guards.tell("source:traffic", Feedback.parse("not [*, {4, 5}, *]", schema), edge=f"{other.id}#0")
    assert [str(r.pattern) for r in guards.places["source:traffic"]] == ["[*, 4, *]"]


def test_punctuation_lets_go_of_guards(traffic: ps.Stream) -> None:
    guards = told(traffic.where("speed > 0"), "not [< 20, *, *]", "not [*, {3, 4}, *]")
    schema = traffic.schema
    guards.cover({"source:traffic": (Pattern.parse("[*, 4, *]", schema),)})
    assert placed(guards) == {"source:traffic": ["[< 20, *, *]", "[*, 3, *]"]}
    guards.cover({"source:traffic": (Pattern.parse("[< 15, *, *]", schema),)})
    assert guards.size == 2
    guards.cover({"source:traffic": (Pattern.parse("[< 20, *, *]", schema), Pattern.parse("[*, 3, *]", schema))})
    assert placed(guards) == {}


def test_what_is_stored_is_what_was_there(traffic: ps.Stream) -> None:
    query = traffic.window(10, slide=5).group_by("segment").agg(n="count(*)").where("n > 1")
    guards = told(query, "not [< 20, *, *]", "not [*, 3, >= 9]", "prefer [*, 3, *]")
    again = Guards.from_json(guards.to_json(), plan_of(query))
    assert again.to_json() == guards.to_json()
    assert again.sweeps and again.fresh


def test_wishes_are_stored_too() -> None:
    orders = ps.stream("orders", "shop int, amount int").where("amount > 0")
    guards = told(orders, "prefer [3, *]", "prefer [4, *]")
    again = Guards.from_json(guards.to_json(), plan_of(orders))
    assert [str(p) for p in again.preferred["source:orders"]] == ["[{3, 4}, *]"]


@pytest.mark.parametrize("query", ["flat", "windows", "keys", "join", "distinct", "read twice", "queue"])
def test_ten_thousand_epochs_with_a_feedback_each(traffic: ps.Stream, query: str) -> None:
    """Time goes on, so what speaks of time is let go of; what nothing ever covers is limited."""
    other = ps.stream("other", "ts int, segment int, fare double", time="ts").disorder(5)
    stream = {
        "flat": traffic.where("speed > 0").select("ts", "segment", "speed"),
        "windows": traffic.window(10).group_by("segment").agg(top="max(speed)"),
        "keys": traffic.group_by("segment").agg(top="max(speed)"),
        "join": traffic.join(other, "segment"),
        "distinct": traffic.distinct(),
        "read twice": traffic.where("speed > 0").union(traffic.where("speed < 9")),
        "queue": ps.stream("orders", SCHEMA).impute(lambda rows: rows, keeps=["ts", "segment"]),
    }[query]
    plan = plan_of(stream)
    guards = Guards(plan)
    root = plan.sinks[0].inputs[0]
    schema = plan[root].operator.schema
    random = Random(5)
    largest = 0
    for epoch in range(1, 10_001):
        guards.begin(epoch)
        names = list(schema.names)
        chosen = random.choice(names)
        value = epoch if "int" in str(schema.type_of(chosen)) else random.random() * 100
        comparison = random.choice(("", "< ", ">= "))
        text = ", ".join(f"{comparison}{value}" if n == chosen else "*" for n in names)
        intent = "prefer" if epoch % 7 == 0 else "not"
        guards.tell(root, Feedback.parse(f"{intent} [{text}]", schema), edge="sink-1#0")
        if epoch % 3 == 0:
            behind = {}
            for node in plan.nodes:
                time = next((n for n in node.operator.schema.names if n in ("ts", "window_start")), None)
                if time is not None:
                    restricted = ", ".join(f"< {epoch - 5}" if n == time else "*" for n in node.operator.schema.names)
                    behind[node.id] = (Pattern.parse(f"[{restricted}]", node.operator.schema),)
            guards.cover(behind)
        kept = [*guards.places.values(), *guards.prefers.values()]
        kept += [records for places in guards.heard.values() for records in places.values()]
        largest = max(largest, max((len(r) for r in kept), default=0))
    assert largest <= RECORDS
    assert bool(guards.heard) is (query == "read twice")
    # This is what an epoch has to carry.
    assert len(json.dumps(guards.to_json())) < 1_000_000


def test_a_chain_of_a_thousand_operators(traffic: ps.Stream) -> None:
    chain = traffic
    for n in range(1_000):
        chain = chain.where(f"speed > {-n}")
    assert placed(told(chain, "not [*, 3, *]")) == {"source:traffic": ["[*, 3, *]"]}


def test_who_keeps_talking_does_not_keep_a_run_from_ending(traffic: ps.Stream) -> None:
    runs: list[ps.Run] = []

    def talk(now: ps.Progress) -> None:
        runs[0].feedback(f"not [*, {now.epoch}, *]")

    events = ps.generate(rate=10, rows=30, columns={"segment": ("key", 3), "speed": ("uniform", 0, 100)})
    query = events.where("speed >= 0")
    started = query.start(
        ps.memory(), trigger="available_now", spark=local_session(), max_rows=10, listener=lambda p: runs and talk(p)
    )
    runs.append(started)
    started.wait(60)
    assert not started.active and 3 <= len(started.history) <= 5
