"""What is remembered of the ways that feedback took."""

from __future__ import annotations

import json

import penstock as ps
from penstock.feedback.guards import Guards
from penstock.feedback.trail import CLIENT, LONGEST, MESSAGES, STOPS, Trail
from penstock.operators.sink.operator import Sink
from penstock.pattern.feedback import Feedback
from penstock.plan.plan import Plan

CARS = ps.stream("cars", "ts bigint, segment int, speed double", time="ts").disorder(0)
SLOW = CARS.where("speed < 100").window(20).group_by("segment").agg(mean="avg(speed)")


def guards_of(query: ps.Stream) -> Guards:
    return Guards(Plan.of(Sink((query.operator,), query.schema)))


def tell(guards: Guards, epoch: int, text: str, by: str = CLIENT) -> None:
    guards.begin(epoch)
    guards.tell("aggregate-1", Feedback.parse(text, SLOW.schema), edge="sink-1#0", by=by)


def test_each_stop_says_what_was_done_and_the_last_one_why_no_more() -> None:
    guards = guards_of(SLOW)
    tell(guards, 2, "not [*, 1, *]")
    tell(guards, 3, "not [*, *, > 40]")
    ways = {s.epoch: [t for t in guards.trail if t.epoch == s.epoch] for s in guards.trail}
    assert {s.node for s in ways[2]} == {"aggregate-1", "bucket-1", "select-1", "source:cars"}
    assert all(s.by == CLIENT and s.said == "not [*, 1, *]" for s in ways[2])
    assert {s.node: s.feedback for s in ways[2]}["source:cars"] == "not [*, 1, *]"
    (stopped,) = ways[3]
    assert stopped.node == "aggregate-1" and stopped.did == "drops results" and stopped.why


def test_what_was_said_long_ago_is_not_pushed_out_by_an_operator_that_talks_much() -> None:
    guards = guards_of(SLOW)
    tell(guards, 1, "not [*, 1, *]")
    for epoch in range(2, 200):
        tell(guards, epoch, f"not [< {epoch}, *, *]", by="pace-1")
    spoken = {s.by: {t.said for t in guards.trail if t.by == s.by} for s in guards.trail}
    assert spoken[CLIENT] == {"not [*, 1, *]"}
    assert spoken["pace-1"] == {f"not [< {e}, *, *]" for e in range(200 - MESSAGES[False], 200)}


def test_the_same_said_again_is_one_message() -> None:
    guards = guards_of(SLOW)
    for epoch in (1, 5, 9):
        tell(guards, epoch, "not [*, 1, *]")
    assert {s.epoch for s in guards.trail} == {9}


def test_it_stays_small_whatever_is_said() -> None:
    guards = guards_of(SLOW)
    trail = guards.trail
    said = Feedback.parse(f"not [*, {{{', '.join(map(str, range(1000)))}}}, *]", SLOW.schema)
    for epoch in range(50):
        trail.begin(CLIENT, said if epoch % 2 else Feedback.parse(f"not [{epoch}, *, *]", SLOW.schema), epoch)
        for k in range(2 * STOPS):
            trail.stop(f"select-{k}", said, "passed on")
    stops = list(trail)
    assert len(stops) == STOPS * MESSAGES[True]
    assert max(len(s.feedback) for s in stops) == LONGEST


def test_it_is_read_back_as_it_was_and_goes_on_from_there() -> None:
    guards = guards_of(SLOW)
    tell(guards, 1, "not [*, 1, *]")
    tell(guards, 1, "not [*, 2, *]")
    tell(guards, 2, "not [< 7, *, *]", by="pace-1")
    stored = json.loads(json.dumps({**guards.to_json(), "trail": guards.trail.to_json()}))
    again = Guards.from_json(stored, guards.plan)
    assert list(again.trail) == list(guards.trail)
    for each in (guards, again):
        tell(each, 3, "not [*, 1, *]")
    assert list(again.trail) == list(guards.trail)


def test_what_an_older_version_wrote_is_left_out() -> None:
    old = {"node": "select-1", "feedback": "not [1]", "did": "passed on", "why": "", "by": CLIENT, "said": "not [1]"}
    assert list(Trail.from_json([{**old, "epoch": 3}])) == []


def test_nothing_said() -> None:
    assert list(Trail.from_json([])) == []
