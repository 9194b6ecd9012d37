"""Policies are checked where they are declared, and become promises of the source."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from penstock.builder.stream import StreamBuilder
from penstock.errors import UserError
from penstock.operators.source.operator import Source
from penstock.pattern.schema import Schema
from penstock.plan.policy import Measured, Policy, Punctuate
from penstock.plan.promise import (
    Adaptive,
    After,
    Bounds,
    Declared,
    Disorder,
    Domain,
    Every,
    InBand,
    Monitored,
    Once,
    WhenAll,
    WithinRows,
)

TRIPS = StreamBuilder(
    Source((), Schema.parse("ts timestamp, day date, trip int, zone string", time="ts"), name="trips")
)
SECOND = 1_000_000


def promises(stream: StreamBuilder) -> tuple[object, ...]:
    assert isinstance(stream.operator, Source)
    return stream.operator.promises


@pytest.mark.parametrize(
    ("policy", "promise"),
    [
        (Punctuate.every("1 min"), Every("ts", 60 * SECOND)),
        (Punctuate.every("1 day", on="day"), Every("day", 1)),
        (Punctuate.after("trip", "10 s"), After("trip", "ts", 10 * SECOND)),
        (Punctuate.after("zone", "2 days", on="day", remember=5), After("zone", "day", 2, 5)),
        (Punctuate.once("trip", remember=7), Once("trip", 7)),
        (Punctuate.when_all(["a", "b"], on="zone"), WhenAll("zone", ("a", "b"), "ts")),
        (Punctuate.bounds("trip", 1, 9), Bounds("trip", 1, 9)),
        (Punctuate.sorted_by("trip"), Disorder("trip", 0)),
        (Punctuate.values("zone", ["x", "y"]), Domain("zone", ("x", "y"))),
        (Punctuate.within_rows(3), WithinRows("ts", 3)),
    ],
)
def test_a_policy_becomes_a_promise(policy: Policy, promise: object) -> None:
    assert promises(TRIPS.punctuate(policy)) == (promise,)


def test_policies_add_up_in_the_order_given() -> None:
    both = TRIPS.disorder("1 s").punctuate(Punctuate.once("trip"), Punctuate.every("1 min"))
    assert promises(both) == (Disorder("ts", SECOND), Once("trip"), Every("ts", 60 * SECOND))


def test_a_measured_disorder() -> None:
    measured = TRIPS.disorder(Measured(quantile=0.99, at_least="1 s", at_most="5 min", warm_up=100))
    assert promises(measured) == (Adaptive("ts", 0.99, SECOND, 300 * SECOND, 100),)
    assert promises(measured.monitor_disorder()) == promises(measured)  # it is measured already
    assert promises(TRIPS.monitor_disorder().monitor_disorder()) == (Monitored("ts"),)


@pytest.mark.parametrize(
    ("declared", "shown"),
    [
        (TRIPS.disorder("5 s"), "disorder(ts within 5 s)"),
        (TRIPS.disorder("1 day", on="day"), "disorder(day within 1 day)"),
        (TRIPS.punctuate(Punctuate.sorted_by("trip")), "disorder(trip within 0 ticks)"),
        (TRIPS.punctuate(Punctuate.after("trip", "1 h")), "trip over after 1 h of ts"),
        (TRIPS.punctuate(Punctuate.after("zone", "2 days", on="day")), "zone over after 2 days of day"),
        (TRIPS.punctuate(Punctuate.every("90 s")), "every 1 min 30 s of ts"),
        (
            TRIPS.disorder(Measured(quantile=0.99, at_least="1 s", at_most="5 min")),
            "disorder(ts as 0.99 of the events, 1 s to 5 min)",
        ),
    ],
)
def test_lengths_of_time_are_shown_as_people_write_them(declared: StreamBuilder, shown: str) -> None:
    assert declared.operator.detail == f"trips from nothing to read yet ({shown})"


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (lambda: TRIPS.disorder(5), ["disorder: 'ts' is a timestamp, 5 has no unit", "'5 s'"]),
        (lambda: TRIPS.disorder(-5), ["disorder: -5 is negative"]),
        (lambda: TRIPS.disorder("-5 s"), ["'-5 s' is negative"]),
        (lambda: TRIPS.disorder(timedelta(seconds=-1)), ["is negative"]),
        (lambda: TRIPS.disorder(-1, on="trip"), ["-1 is negative"]),
        (lambda: TRIPS.disorder("1 s", on="trip"), ["'trip' is an integer, '1 s' is not"]),
        (lambda: TRIPS.disorder(True, on="trip"), ["True is not"]),
        (lambda: TRIPS.disorder(Measured(at_most=5)), ["5 has no unit"]),
        (lambda: TRIPS.disorder("1 s").punctuate(Punctuate.after("trip", -1)), ["Punctuate.after: -1 is negative"]),
        (lambda: TRIPS.complete_when([1], on="trip", slack=7), ["7 has no unit"]),
    ],
)
def test_an_extent_has_a_unit_and_is_not_negative(declare: Callable[[], object], words: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        declare()
    for word in words:
        assert word in str(caught.value)


def test_a_bare_number_of_dates_is_days_and_nothing_needs_no_unit() -> None:
    assert (
        promises(TRIPS.disorder(5, on="day")) == promises(TRIPS.disorder("5 days", on="day")) == (Disorder("day", 5),)
    )
    assert promises(TRIPS.disorder(0)) == (Disorder("ts", 0),)


def test_punctuation_in_companion_columns() -> None:
    assert promises(TRIPS.punctuated(companion=True, remember=10)) == (InBand("punctuation", True, 10),)


@pytest.mark.parametrize(
    ("policy", "part"),
    [
        (Punctuate.after("tripp", "1 s"), "unknown column 'tripp'"),
        (Punctuate.once("trip", remember=0), "remember=0"),
        (Punctuate.sorted_by("zone"), "'zone' is string"),
        (Punctuate.every(0), "every(0)"),
        (Punctuate.values("zone", []), "no values"),
        (Punctuate.within_rows(-1), "within_rows(-1)"),
        (Punctuate.values("trip", ["a"]), "Punctuate.values('trip'): 'a' is not of type int"),
        (Punctuate.bounds("trip", 5, 1), "stream 'trips': bounds('trip', 5, 1) leave no value"),
        (Punctuate.bounds("trip", "a"), "bounds('trip'): 'a' is not of type int"),
        (Punctuate.bounds("trap", 1), "bounds: unknown column 'trap'"),
        (Punctuate.when_all(["x"], on="trip"), "complete_when('trip'): 'x' is not of type int"),
        (Punctuate.when_all([1], on="trap"), "complete_when: unknown column 'trap'"),
        ("1 min", "is not a policy"),
    ],
)
def test_mistakes_are_named(policy: Policy, part: str) -> None:
    with pytest.raises(UserError) as caught:
        TRIPS.punctuate(policy)
    assert part in str(caught.value)


@pytest.mark.parametrize("values", [3, "north", None])
def test_a_list_of_values_is_a_list(values: Any) -> None:
    with pytest.raises(UserError, match="is not a list"):
        Punctuate.values("zone", values)
    with pytest.raises(UserError, match="is not a list"):
        Punctuate.when_all(values, on="zone")


def test_the_order_of_an_attribute_is_declared_once() -> None:
    for again in (Punctuate.within_rows(2), Punctuate.sorted_by("ts")):
        with pytest.raises(UserError, match="declared twice"):
            TRIPS.disorder("1 s").punctuate(again)
    with pytest.raises(UserError, match="at_least='10 s' is more"):
        TRIPS.disorder(Measured(at_least="10 s", at_most="1 s"))
    with pytest.raises(UserError, match="quantile=0"):
        Measured(at_most="1 s", quantile=0)


def test_a_policy_is_declared_before_operators() -> None:
    with pytest.raises(UserError, match="declares something about a source"):
        TRIPS.where("trip > 3").punctuate(Punctuate.once("trip"))


# --- schemes of what comes in band ------------------------------------------------------------------------------------

MARKED = TRIPS.punctuated()


def declared(stream: StreamBuilder) -> tuple[object, ...]:
    (found,) = [p for p in promises(stream) if isinstance(p, Declared)]
    return found.templates


def test_a_scheme_in_words_or_as_a_template() -> None:
    both = ((("ts", "+"), ("trip", "#")),)
    assert declared(MARKED.scheme(ts="up to", trip="value")) == both
    assert declared(MARKED.scheme(trip="each value", ts="Up To", zone="any")) == both
    assert declared(MARKED.scheme("[[trip:#, ts:+, zone:-]]")) == both
    assert declared(MARKED.scheme(TRIP="range")) == ((("trip", "range"),),)


def test_schemes_add_up_in_one_promise() -> None:
    one = MARKED.scheme(trip="value").scheme("[[ts:+]]", "[[zone:#]]").scheme(trip="value")
    assert declared(one) == ((("trip", "#"),), (("ts", "+"),), (("zone", "#"),))
    assert str(promises(one)[-1]) == "scheme [[trip:#]], [[ts:+]], [[zone:#]]"
    assert promises(one)[0] == InBand()


@pytest.mark.parametrize(
    ("texts", "classes", "message"),
    [
        (("[ts:+]",), {}, "is not a template"),
        (("[[ts]]",), {}, "is not a template"),
        (("[[]]",), {}, "is not a template"),
        (("[[ts:*, zone:-]]",), {}, "restricts nothing"),
        ((), {}, "restricts nothing"),
        ((), {"trip": "sometimes"}, "'trip' is 'sometimes'"),
        ((), {"trip": 4}, "'trip' is 4"),
        ((), {"tripp": "value"}, "did you mean 'trip'"),
    ],
)
def test_schemes_that_say_nothing_sensible(texts: tuple[str, ...], classes: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        MARKED.scheme(*texts, **classes)


def test_a_scheme_is_about_punctuation_in_band() -> None:
    with pytest.raises(UserError, match=r"none are declared.*punctuated\(\) first"):
        TRIPS.disorder("1 s").scheme(trip="value")
    with pytest.raises(UserError, match="declares something about a source"):
        MARKED.where("trip > 3").scheme(trip="value")
