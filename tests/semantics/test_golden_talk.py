"""The worked examples of feedback give the same on the reference that hears, on the kernels and on Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from backend import on_kernels, on_reference, on_spark
from case import Case, Cut
from golden_talk import GOLDENS, Golden, feed
from withheld import TalkingRun

from penstock.pattern.pattern import Pattern

#: One event or punctuation of each stream in an epoch.
ONE = Cut(file_rows=1, max_rows=1, overlap=False)


def in_order(rows: Iterable[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(r.values()) for r in rows), key=repr)


def check(golden: Golden, run: Any, cut: Cut = ONE) -> None:
    found = run(golden.case, cut, {golden.after: [f"not {golden.said}"]})
    assert in_order(found.rows) == sorted(golden.expected, key=repr)
    spared = {place.split(" ")[0].removeprefix("source:") for place in found.saved if place.startswith("source:")}
    assert spared == set(golden.spares)


@pytest.mark.parametrize("name", GOLDENS)
def test_the_reference_that_hears(name: str) -> None:
    golden = GOLDENS[name]
    stream = golden.case.stream()
    inputs = {f.name: f.arrivals() for f in golden.case.feeds}
    arrived = sum(min(golden.after, len(items)) for items in inputs.values())
    run = TalkingRun(stream.plan, inputs, at=arrived + 1, seed=0)
    run.tell(Pattern.parse(golden.said, stream.schema))
    before, behind = run.finish()
    assert in_order([*before, *behind]) == sorted(golden.expected, key=repr)


@pytest.mark.parametrize("name", GOLDENS)
def test_kernels(name: str) -> None:
    check(GOLDENS[name], on_kernels)


def test_something_is_left_out_in_each() -> None:
    kept = {n for n, g in GOLDENS.items() if len(on_reference(g.case).rows) == len(g.expected)}
    assert kept == {
        "1: an average of 51 that may still fall",
        "3: what halves would lose",
        "4: of both, before the last event",
    }


def test_spark(spark: Any) -> None:
    for golden in GOLDENS.values():
        # What is said before anything has come needs no small epochs.
        cut = ONE if golden.after else Cut(overlap=False)
        check(golden, lambda case, cut, said: on_spark(case, cut, spark, said), cut)


def test_open_results_are_told_on_spark(spark: Any) -> None:
    """`now`, of an aggregate and of a join behind it: the means so far, and the left events that have no partner."""
    cars = feed("s", "wid int, speed int", (1, 50), (2, 20), (1, 60), "[1, *, *]", "[2, *, *]")
    limits = feed("t", "wid int, most int", (1, 80), "[1, *, *]")
    case = Case("s.group_by('wid').agg(mean='avg(speed)').join(t.drop('id'), 'wid', 'left')", (cars, limits))
    found = on_spark(case, ONE, spark, {2: ["now [*, *, *]"], 3: ["now [2, *, *]"]})
    first, second = (in_order(rows) for _, rows in found.answers)
    assert first == [(1, 55.0, 80), (2, 20.0, None)]
    assert second == [(2, 20.0, None)]
    assert in_order(found.rows) == [(1, 55.0, 80), (2, 20.0, None)]
