"""Traces read like timelines."""

from __future__ import annotations

from penstock.builder.stream import StreamBuilder
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Schema
from penstock.reference.trace import format_step, trace


def test_a_timeline() -> None:
    schema = Schema.parse("timestamp int, key string, value int", time="timestamp")
    query = StreamBuilder(Source((), schema, name="s")).disorder(2).window(10).group_by("key").agg(n="sum(value)")
    rows = [(105, "C", 3), (112, "C", 4), (109, "C", 1)]
    lines = [format_step(s) for s in trace(query.operator, {"s": [schema.event(r) for r in rows]})]
    assert lines == [
        "source:s: timestamp 105, key C, value 3 → emits timestamp 105, key C, value 3",
        "bucket-1: timestamp 105, key C, value 3 → emits timestamp 105, key C, value 3, window_start 100",
        "aggregate-1: timestamp 105, key C, value 3, window_start 100 → emits nothing (holds 100, C: 1 event)",
        "source:s: knows now → emits punctuation [< 103, *, *]",
        "bucket-1: punctuation [< 103, *, *] → emits punctuation [*, *, *, <= 90]; punctuation [< 103, *, *, *]",
        "aggregate-1: punctuation [*, *, *, <= 90] → emits punctuation [<= 90, *, *] (holds 100, C: 1 event)",
        "aggregate-1: punctuation [< 103, *, *, *] → emits nothing (holds 100, C: 1 event)",
        "source:s: timestamp 112, key C, value 4 → emits timestamp 112, key C, value 4",
        "bucket-1: timestamp 112, key C, value 4 → emits timestamp 112, key C, value 4, window_start 110",
        "aggregate-1: timestamp 112, key C, value 4, window_start 110 → "
        "emits nothing (holds 100, C: 1 event; 110, C: 1 event)",
        "source:s: knows now → emits punctuation [< 110, *, *]",
        "bucket-1: punctuation [< 110, *, *] → emits punctuation [*, *, *, <= 100]; punctuation [< 110, *, *, *]",
        "aggregate-1: punctuation [*, *, *, <= 100] → "
        "emits window_start 100, key C, n 3; punctuation [<= 100, *, *] (holds 110, C: 1 event)",
        "aggregate-1: punctuation [< 110, *, *, *] → emits nothing (holds 110, C: 1 event)",
        "source:s: timestamp 109, key C, value 1 → dead letter: "
        "breaks disorder(timestamp within 2 ticks): matches [< 110, *, *]",
    ]


def test_what_joins_and_sorts_hold_can_be_read() -> None:
    trips, fares = (Schema.parse(f"trip int, {value} int") for value in ("km", "fare"))
    query = StreamBuilder(Source((), trips, name="trips")).join(StreamBuilder(Source((), fares, name="fares")), "trip")
    sent = {
        "trips": [{"trip": 1, "km": 5}, Pattern.parse("[1, *]", trips)],
        "fares": [{"trip": 2, "fare": 9}, {"trip": 1, "fare": 7}],
    }
    steps = trace(query.order_by("fare").distinct().operator, sent)
    assert [format_step(s) for s in steps if not s.operator.startswith("source")] == [
        "join-1: trip 1, km 5 → emits nothing (holds left: trip 1, km 5)",
        "join-1: trip 2, fare 9 → emits nothing (holds left: trip 1, km 5; right: trip 2, fare 9)",
        "join-1: punctuation [1, *] → emits nothing (holds left: trip 1, km 5; right: trip 2, fare 9)",
        "join-1: trip 1, fare 7 → emits trip 1, km 5, fare 7, not stored: no partner can come "
        "(holds left: trip 1, km 5 (has had a partner); right: trip 2, fare 9)",
        "orderby-1: trip 1, km 5, fare 7 → emits nothing (holds trip 1, km 5, fare 7)",
    ]
