"""Pace and instrument between epochs: what they promise, what they tell upstream, and what they remember."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.analysis.propagate import Propagation
from penstock.errors import UserError
from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.instrument.operator import Instrument
from penstock.operators.pace.operator import Pace
from penstock.pattern.feedback import Switches
from penstock.pattern.pattern import Pattern

BOUND = 10


def stream(name: str, schema: str = "ts int, k string") -> ps.Stream:
    return ps.stream(name, schema, time="ts")


def paced() -> ps.Stream:
    # The second input has its attributes in another order: what it is told must fit its own schema.
    return stream("a").pace(stream("b", "k string, ts int"), on="ts", bound=BOUND)


def told(p: Propagation) -> list[tuple[str, int, str]]:
    return [(node, port, str(feedback)) for node, port, feedback in p.issued()]


def after(p: Propagation, *seen: int, **said: str) -> list[str]:
    """What is promised behind the pace after an epoch in which tasks saw these times."""
    p.saw([{"pace-1": value} for value in seen])
    schemas = {n.id: n.operator.schema for n in p.plan.sources}
    out = p.run({f"source:{n}": [Pattern.parse(t, schemas[f"source:{n}"])] for n, t in said.items()})
    return [str(q) for q in out["pace-1"]]


def test_a_pace_promises_what_it_will_not_let_pass_and_tells_every_input() -> None:
    p = Propagation(paced().plan)
    assert (after(p), told(p), p.told) == ([], [], {})
    assert after(p, 30, 25) == ["[< 20, *]"]
    assert p.told == {"pace-1": 20}
    assert told(p) == [("pace-1", 0, "not [< 20, *]"), ("pace-1", 1, "not [*, < 20]")]
    assert (after(p, 28), told(p)) == ([], [])
    assert (after(p, 31), told(p)[0]) == (["[< 21, *]"], ("pace-1", 0, "not [< 21, *]"))


def test_a_pace_also_promises_what_all_inputs_do_and_nothing_twice() -> None:
    p = Propagation(paced().plan)
    assert after(p, 30, a="[< 15, *]") == ["[< 20, *]"]
    assert after(p, b="[*, < 18]", a="[< 18, *]") == []
    assert after(p, b="['x', *]", a="[< 50, *]") == ["[< 50, 'x']"]
    assert after(p, 31, a="[*, *]", b="[*, *]") == ["[*, *]"]


def test_what_a_merge_saw_counts_with_the_next_punctuation_which_need_not_wait_for_input() -> None:
    p = Propagation(paced().group_by("ts").agg(n="count(*)").plan)
    after(p, 30)
    assert not p.pending
    p.saw([{"pace-1": 40}])
    assert p.pending and p.told == {"pace-1": 20}
    assert after(p) == ["[< 30, *]"]
    assert not p.pending and p.told == {"pace-1": 30}


def test_nobody_waits_for_a_promise_that_nobody_hears() -> None:
    p = Propagation(paced().plan)
    p.saw([{"pace-1": 40}])
    assert not p.pending


@given(st.lists(st.lists(st.integers(-99, 99), max_size=4), max_size=6))
def test_floors_rise_with_the_latest_and_outlive_a_restart(epochs: list[list[int]]) -> None:
    p, high, floor = Propagation(paced().plan), None, None
    for seen in epochs:
        out = after(p, *seen)
        high = max([*seen, *([] if high is None else [high])], default=None)
        due = None if high is None else high - BOUND
        assert out == ([f"[< {due}, *]"] if due != floor else [])
        assert told(p) == ([(n, i, f) for n, i, f in _feedback(due)] if due != floor else [])
        floor = due
        stored, p = p.to_json(), Propagation(p.plan)
        p.restore(stored)
        assert p.told == ({} if floor is None else {"pace-1": floor})


def _feedback(floor: int | None) -> list[tuple[str, int, str]]:
    return [("pace-1", 0, f"not [< {floor}, *]"), ("pace-1", 1, f"not [*, < {floor}]")]


def test_feedback_that_was_not_taken_up_before_a_crash_is_told_again() -> None:
    p = Propagation(paced().plan)
    after(p, 30)
    stored = p.to_json()
    first = told(p)
    again = Propagation(p.plan)
    again.restore(stored)
    assert told(again) == first != []


@pytest.mark.parametrize(
    ("kind", "high", "bound", "says"),
    [
        ("tinyint", -120, 20, []),  # Below all that there is: nothing to say.
        ("tinyint", -100, 20, ["[< -120]"]),
        ("bigint", -(2**63) + 5, 5, []),
        ("date", 20_000, "2 d", ["[< '2024-10-02']"]),
        ("timestamp", 60_000_000, "1 min", ["[< '1970-01-01 00:00:00']"]),
        ("timestamp", -62_135_596_800_000_000 + 10, "1 s", []),
        ("timestamp", 2**62, "1 s", ["[< '9999-12-31 23:59:59.999999']"]),
    ],
)
def test_times_at_the_ends_of_their_types(kind: str, high: int, bound: int | str, says: list[str]) -> None:
    plan = stream("a", f"ts {kind}").pace(stream("b", f"ts {kind}"), bound=bound).plan
    p = Propagation(plan)
    assert after(p, high) == says
    assert bool(p.told) == bool(says)


def test_switched_not_to_pass_on_a_pace_keeps_its_word_and_its_peace() -> None:
    p = Propagation(paced().feedback(propagate=False).plan)
    assert after(p, 30) == ["[< 20, *]"]
    assert told(p) == []


# --- instrument -------------------------------------------------------------------------------------------------------


def counted(stream: ps.Stream, *counts: int) -> list[list[str]]:
    p = Propagation(stream.plan)
    found = []
    for count in counts:
        if count:
            p.saw([{"instrument-1": count}])
        found.append([f for _, _, f in told(p)])
        stored, p = p.to_json(), Propagation(p.plan)
        p.restore(stored)
    return found


def test_an_instrument_speaks_once_when_it_has_seen_an_event() -> None:
    once = stream("a").instrument("not [< 7, *]")
    assert counted(once, 0, 3, 0, 5) == [[], ["not [< 7, *]"], [], []]


def test_an_instrument_speaks_after_every_so_many_events_but_once_in_an_epoch() -> None:
    often = stream("a").instrument(lambda n: f"prefer [{n}, *]", every=4)
    assert counted(often, 3, 0, 1, 9, 2, 2) == [[], [], ["prefer [4, *]"], ["prefer [13, *]"], [], ["prefer [17, *]"]]
    assert counted(often.feedback(propagate=False), 9) == [[]]


def test_punctuation_passes_an_instrument() -> None:
    p = Propagation(stream("a").instrument("not [1, *]").plan)
    said = Pattern.parse("[< 5, 'x']", p.plan["source:a"].operator.schema)
    assert p.run({"source:a": [said]})["instrument-1"] == (said,)


# --- building ---------------------------------------------------------------------------------------------------------


def test_a_pace_is_a_union_with_a_bound() -> None:
    made = stream("a", "ts timestamp, k string").pace(stream("b", "ts timestamp, k string"), bound=timedelta(minutes=1))
    assert isinstance(made.operator, Pace)
    assert (made.operator.on, made.operator.bound, made.schema.times) == ("ts", 60_000_000, ("ts",))
    assert "pace-1: 2 inputs, ts at most 1 min behind the latest" in made.explain(punctuation=True)
    # Punctuation flows behind it though nobody promises any.
    assert "⇢ ts up to" in made.where("k = 'x'").explain(punctuation=True)


def test_a_change_of_the_bound_is_another_query() -> None:
    a, b = stream("a"), stream("b")
    known = a.pace(b, bound=5).plan.describe()
    (line,) = a.pace(b, bound=6).plan.differences(known)
    assert "5 behind the latest" in line and "6 behind the latest" in line


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda a, b: a.pace(b, on="k", bound=1), "pace: 'k' is string"),
        (lambda a, b: a.pace(b, bound=-1), "negative"),
        (lambda a, b: a.pace(b, bound="1 s"), "whole number"),
        (lambda a, b: a.pace(b.select("ts"), bound=1), "the streams differ"),
        (lambda a, b: a.pace("b", bound=1), "is not a stream"),
        (lambda a, b: a.instrument("never [1, *]"), "starts with 'never'"),
        (lambda a, b: a.instrument("not [1]"), "1 restriction for 2"),
        (lambda a, b: a.instrument(7), "is not feedback"),
        (lambda a, b: a.instrument("not [1, *]", every=0), "every=0"),
        (lambda a, b: a.instrument(lambda n: f"not [{n}]", every=3), "1 restriction for 2"),
        (lambda a, b: a.group_by("k").agg(n="count(*)").feedback(exploit=False), "without exploiting"),
    ],
)
def test_mistakes_are_told_when_the_query_is_built(make: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        make(stream("a"), stream("b"))  # type: ignore[operator]


def test_switches_are_those_of_the_last_operator() -> None:
    made = stream("a").where("ts > 1").feedback(exploit=False, log=False).select("k")
    assert made.operator.switches == Switches()
    assert made.operator.inputs[0].switches == Switches(False, True, False)
    quiet = stream("a").group_by("k").agg(n="count(*)").feedback(exploit=False, propagate=False)
    assert isinstance(quiet.operator, Aggregate) and not quiet.operator.switches.propagate
    assert isinstance(stream("a").instrument("prefer [*, 'x']").operator, Instrument)
    with pytest.raises(UserError, match="is for consumers"):
        stream("a").instrument("now [*, *]")


def test_dates_are_counted_in_days() -> None:
    made = stream("a", "ts date").pace(stream("b", "ts date"), bound="36 h")
    assert isinstance(made.operator, Pace) and made.operator.bound == 2
