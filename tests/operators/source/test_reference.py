"""Promises, checked event by event."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import ViolationError
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Schema
from penstock.plan.promise import Bounds, Disorder, EndOfSource, InBand, Promise, WhenAll
from penstock.reference.interpret import Result, interpret
from penstock.reference.item import Event, is_grammatical

SCHEMA = Schema.parse("ts int, id int", time="ts")


def run(promises: list[Promise], *arrivals: Any, **options: Any) -> Result:
    policy = options.pop("on_violation", "reject")
    source = Source((), SCHEMA, name="s", promises=tuple(promises), on_violation=policy)
    result = interpret(source, {"s": list(arrivals)}, **options)
    assert is_grammatical(result.outputs)
    return result


def row(ts: int | None, key: int | None = 0) -> dict[str, Any]:
    return {"ts": ts, "id": key}


def shown(result: Result) -> list[Any]:
    return [i.row["ts"] if isinstance(i, Event) else str(i.pattern) for i in result.outputs]


def test_disorder_lets_in_what_is_exactly_at_the_slack() -> None:
    result = run([Disorder("ts", 5)], row(10), row(5), row(4), row(None), row(11))
    assert shown(result) == [10, "[< 5, *]", 5, 11, "[< 6, *]"]
    letter, timeless = result.dead_letters
    assert (letter.kind, timeless.kind, timeless.reason) == ("late", "malformed", "time attribute 'ts' is null")
    assert letter.row["ts"] == 4
    assert str(letter.breaks) == "[< 5, *]"
    assert "disorder" in letter.reason


def test_disorder_is_measured_within_a_partition_and_the_source_is_as_far_as_the_slowest() -> None:
    result = run([Disorder("ts", 0)], ("a", row(10)), ("b", row(3)), ("b", row(8)), ("b", row(7)), ("a", row(9)))
    assert shown(result) == [10, 3, "[< 3, *]", 8, "[< 8, *]"]
    assert [(d.partition, d.row["ts"]) for d in result.dead_letters] == [("b", 7), ("a", 9)]


def test_in_band_punctuation_binds_its_partition() -> None:
    seven = Pattern.parse("[*, 7]", SCHEMA)
    result = run([InBand()], ("a", seven), ("b", row(1, 7)), ("a", row(2, 7)), ("b", seven), ("b", row(3, 8)))
    assert shown(result) == [1, "[*, 7]", 3]
    assert [(d.partition, str(d.breaks)) for d in result.dead_letters] == [("a", "[*, 7]")]


def test_in_band_punctuation_written_as_a_record() -> None:
    result = run([InBand()], {**row(1, 7), "punctuation": None}, {"punctuation": "[*, 7]"}, row(2, 7))
    assert shown(result) == [1, "[*, 7]"]


def test_when_all_keys_have_passed() -> None:
    promise = WhenAll("id", (1, 2), "ts")
    result = run([promise], row(5, 1), row(9, 1), row(4, 2), row(8, 1), row(1, 3), row(6, 2), row(1, None))
    assert shown(result) == [5, 9, 4, "[< 4, *]", 6, "[< 6, *]"]
    assert [(d.row["ts"], str(d.breaks)) for d in result.dead_letters] == [
        (8, "[< 9, 1]"),
        (1, "[*, 3]"),
        (1, "[*, *]"),
    ]


def test_when_all_lets_in_what_is_exactly_at_the_slack() -> None:
    result = run([WhenAll("id", (1,), "ts", slack=3)], row(9, 1), row(6, 1), row(5, 1))
    assert shown(result) == [9, "[< 6, *]", 6]


def test_bounds_are_known_before_the_first_event() -> None:
    result = run([Bounds("id", -20, 125)], row(1, 125), row(2, 126), row(3, None), row(4, -21))
    assert shown(result) == ["[*, < -20]", "[*, > 125]", 1, 3]
    assert [str(d.breaks) for d in result.dead_letters] == ["[*, > 125]", "[*, < -20]"]


def test_end_of_source_only_if_asked() -> None:
    assert shown(run([], row(1))) == [1]
    assert shown(run([EndOfSource()], row(1))) == [1, "[*, *]"]
    assert shown(run([], row(1), ends=True)) == [1, "[*, *]"]


def test_what_does_not_fit_the_schema_is_a_dead_letter() -> None:
    result = run([], {"ts": "soon", "id": 1}, {"time": 3}, row(2))
    assert shown(result) == [2]
    assert [d.breaks for d in result.dead_letters] == [None, None]


def test_policy_fail() -> None:
    with pytest.raises(ViolationError, match="stream 's'"):
        run([Disorder("ts", 0)], row(2), row(1), on_violation="fail")


def test_cut_points_move_punctuation_but_not_events() -> None:
    rows = [row(t) for t in (3, 1, 4, 1, 5, 9, 2, 6)]
    every = run([Disorder("ts", 2)], *rows)
    cut = run([Disorder("ts", 2)], *rows, punctuate_at={4})
    assert [s for s in shown(cut) if isinstance(s, int)] == [s for s in shown(every) if isinstance(s, int)]
    assert [s for s in shown(cut) if isinstance(s, str)] == ["[< 2, *]", "[< 7, *]"]
    assert cut.dead_letters == every.dead_letters
