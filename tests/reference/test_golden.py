"""The worked examples of the literature, item by item."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from penstock.builder.stream import StreamBuilder
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Schema
from penstock.plan.promise import Domain
from penstock.reference.interpret import Result, interpret
from penstock.reference.item import Assertion, Event, Item, breaches, events, is_grammatical


def stream(name: str, schema: str, time: str | None = None) -> StreamBuilder:
    return StreamBuilder(Source((), Schema.parse(schema, time), name=name))


def arrivals(source: StreamBuilder, *items: Any) -> list[Any]:
    """Rows as tuples, punctuations as text."""
    return [Pattern.parse(i, source.schema) if isinstance(i, str) else source.schema.event(i) for i in items]


def shown(items: list[Item]) -> list[Any]:
    return [tuple(i.row.values()) if isinstance(i, Event) else str(i.pattern) for i in items]


def run(query: StreamBuilder, inputs: dict[str, list[Any]], **options: Any) -> Result:
    result = interpret(query.operator, inputs, **options)
    for node, items in result.streams.items():
        assert is_grammatical(items), f"{node} breaks its word: {breaches(items)}"
    return result


SENSOR = "sensor int, temp int, hour int, minute int"
HOUR = [(3, 75, 1, 15), (3, 78, 1, 30), (3, 75, 1, 45), (3, 76, 2, 0), "[*, *, 1, *]", (3, 75, 2, 15)]


def test_maximum_appears_exactly_at_the_punctuation() -> None:
    sensor = stream("sensor", SENSOR)
    result = run(sensor.group_by("hour").agg(top="max(temp)"), {"sensor": arrivals(sensor, *HOUR)})
    assert shown(result.outputs) == [(1, 78), "[1, *]"]
    (speaking,) = [s for s in result.trace if s.kind == "aggregate" and s.emitted]
    assert isinstance(speaking.taken, Assertion)
    (held,) = speaking.state
    assert held.key == (2,)
    assert [row["temp"] for row in held.rows] == [76]
    (left,) = result.states["aggregate-1"]
    assert [row["temp"] for row in left.rows] == [76, 75]


def test_two_sensors_wait_for_each_other() -> None:
    three, four = stream("three", SENSOR), stream("four", SENSOR)
    query = three.union(four).group_by("hour").agg(top="max(temp)")
    silent = arrivals(four, (4, 80, 2, 10), (4, 81, 2, 20))
    first = run(query, {"three": arrivals(three, *HOUR), "four": silent})
    assert shown(first.outputs) == []
    spoken = arrivals(four, (4, 90, 1, 10), (4, 81, 2, 20), "[*, *, 1, *]")
    second = run(query, {"three": arrivals(three, *HOUR), "four": spoken})
    assert shown(second.outputs) == [(1, 90), "[1, *]"]


def test_a_frontier_moves_with_the_slowest_input() -> None:
    a, b = stream("a", "ts int"), stream("b", "ts int")
    inputs = {"a": arrivals(a, "[< 10]", "[< 20]"), "b": arrivals(b, "[< 7]", "[< 15]")}
    assert shown(run(a.union(b), inputs).outputs) == ["[< 7]", "[< 15]"]


def test_a_punctuation_on_another_attribute_closes_nothing() -> None:
    sensor = stream("sensor", SENSOR)
    items = arrivals(sensor, (3, 75, 1, 15), "[3, *, 1, *]")
    result = run(sensor.group_by("hour").agg(top="max(temp)"), {"sensor": items})
    assert result.outputs == []
    assert len(result.states["aggregate-1"]) == 1


def test_grammatical_and_ungrammatical_streams() -> None:
    schema = Schema.parse("time timestamp, id int, temperature double")

    def items(punctuation: str) -> list[Item]:
        rows = [("10:00:00", 4, 76.5), ("10:00:00", 3, 75.9), ("09:59:00", 7, 76.6), ("10:01:00", 7, 76.6)]
        made: list[Item] = [Event(schema.event((f"2010-04-01 {t}", i, v))) for t, i, v in rows]
        return [*made[:3], Assertion(Pattern.parse(punctuation, schema)), made[3]]

    assert is_grammatical(items("[< '2010-04-01 10:00:00', *, *]"))
    (breach,) = breaches(items("[*, 7, *]"))
    assert breach.position == 4


def clock(text: str) -> datetime:
    return datetime.fromisoformat(f"2010-04-01 {text}")


def test_bucket_golden_a() -> None:
    source = stream("s", "ts timestamp, v string", "ts")
    rows = [("10:00:00", "a"), ("10:00:30", "b"), ("10:01:00", "b"), ("10:01:30", "a")]
    items = arrivals(source, *((clock(t), v) for t, v in rows), "[<= '2010-04-01 10:01:30', *]")
    result = run(source.window("1 min", granularity="30 s"), {"s": items})
    first, second = clock("10:00:00"), clock("10:01:00")
    assert [(e["window_start"], e["v"]) for e in events(result.outputs)] == [
        (first, "a"), (first, "b"), (second, "b"), (second, "a"),
    ]  # fmt: skip
    assert shown(result.outputs)[4:] == [
        "[*, *, <= '2010-04-01 10:01:00']",
        "[<= '2010-04-01 10:01:30', *, *]",
    ]
    # In a domain of microseconds, the second minute is still open.
    fine = run(source.window("1 min"), {"s": items})
    assert shown(fine.outputs)[4] == "[*, *, <= '2010-04-01 10:00:00']"


@pytest.mark.parametrize(("grain", "last"), [("1 s", "09:59:00"), ("1 us", "09:58:00")])
def test_bucket_golden_b(grain: str, last: str) -> None:
    source = stream("s", "ts timestamp, source int, destination int", "ts")
    items = arrivals(source, "[<= '2010-04-01 9:59:59', *, *]")
    result = run(source.window("1 min", granularity=grain), {"s": items})
    assert shown(result.outputs)[0] == f"[*, *, *, <= '2010-04-01 {last}']"


def test_bucket_golden_c() -> None:
    # Windows (10(w-1), 10w] of the source are [10(w-1)+1, 10w+1) here: origin 1. Window 2 is the one from 11.
    source = stream("s", "b int", "b")
    result = run(source.window(10, origin=1), {"s": arrivals(source, (19,), (21,), "[<= 22]")})
    assert shown(result.outputs) == [(19, 11), (21, 21), "[*, <= 11]", "[<= 22, *]"]


MESSAGE = "timestamp timestamp, source int, destination int"


def counting(source: StreamBuilder) -> StreamBuilder:
    windowed = source.window("1 min", granularity="1 s").select("window_start", "source", "destination")
    return windowed.group_by("window_start", "source", "destination").agg(n="count(*)")


def test_count_punctuated_by_time() -> None:
    source = stream("messages", MESSAGE, "timestamp")
    sent = [(clock("09:59:30"), 1, 2), (clock("09:59:45"), 1, 3), "[<= '2010-04-01 9:59:59', *, *]"]
    result = run(counting(source), {"messages": arrivals(source, *sent)})
    minute = clock("09:59:00")
    assert shown(result.outputs) == [(minute, 1, 2, 1), (minute, 1, 3, 1), "[<= '2010-04-01 09:59:00', *, *, *]"]
    assert result.states["aggregate-1"] == []


def test_count_punctuated_by_key() -> None:
    source = stream("messages", MESSAGE, "timestamp")
    sent = [(clock("09:59:30"), 1, 2), (clock("09:59:45"), 1, 3), "[*, 1, *]"]
    result = run(counting(source), {"messages": arrivals(source, *sent)})
    minute = clock("09:59:00")
    assert shown(result.streams["bucket-1"])[-1] == "[*, 1, *, *]"
    assert shown(result.streams["project-1"])[-1] == "[*, 1, *]"
    assert shown(result.outputs) == [(minute, 1, 2, 1), (minute, 1, 3, 1), "[*, 1, *, *]"]


def test_sensors_that_are_all_known_close_the_hour_together() -> None:
    promises = (Domain("sensor", (3, 4)),)
    sensor = StreamBuilder(Source((), Schema.parse(SENSOR), name="sensor", promises=promises))
    query = sensor.group_by("hour").agg(top="max(temp)")
    items = [(3, 75, 1, 15), (4, 80, 1, 20), (3, 76, 2, 0), "[3, *, 1, *]", "[4, *, {0, 1, 2}, *]"]
    alone = run(query, {"sensor": arrivals(sensor, *items[:4])})
    assert alone.outputs == []
    together = run(query, {"sensor": arrivals(sensor, *items)})
    assert shown(together.outputs) == [(1, 80), "[1, *]"]
    assert [held.key for held in together.states["aggregate-1"]] == [(2,)]
    # Behind the union of two such streams all their sensors must have spoken.
    other = StreamBuilder(Source((), Schema.parse(SENSOR), name="other", promises=(Domain("sensor", (5,)),)))
    both = sensor.union(other.rename(minute="m").rename(m="minute")).group_by("hour").agg(top="max(temp)")
    spoken = {"sensor": arrivals(sensor, *items), "other": arrivals(other, (5, 90, 1, 1), "[5, *, 1, *]")}
    assert shown(run(both, spoken).outputs) == []
    spoken["other"] = arrivals(other, (5, 90, 1, 1), "[{3, 4, 5}, *, 1, *]")
    assert shown(run(both, {**spoken, "sensor": arrivals(sensor, *items, "[5, *, *, *]")}).outputs) == [
        (1, 90),
        "[1, *]",
    ]


def test_an_event_outside_its_domain_is_no_event() -> None:
    sensor = StreamBuilder(Source((), Schema.parse(SENSOR), name="sensor", promises=(Domain("sensor", (3, 4)),)))
    result = run(sensor, {"sensor": arrivals(sensor, (5, 75, 1, 15), (None, 75, 1, 15), (4, 75, 1, 15))})
    assert shown(result.outputs) == [(4, 75, 1, 15)]
    assert [(letter.kind, str(letter.breaks)) for letter in result.dead_letters] == [
        ("forbidden", "[5, *, *, *]"),
        ("forbidden", "[*, *, *, *]"),
    ]


def test_a_dropped_attribute_that_was_promised_for_all_its_values() -> None:
    sensor = StreamBuilder(Source((), Schema.parse(SENSOR), name="sensor", promises=(Domain("sensor", (3, 4)),)))
    items = arrivals(sensor, "[3, *, 1, *]", "[4, *, <= 2, *]")
    assert shown(run(sensor.select("hour", "temp"), {"sensor": items}).outputs) == ["[1, *]"]
