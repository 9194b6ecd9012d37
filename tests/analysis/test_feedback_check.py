"""Which feedback will be forgotten: by hand, against the guards of the engine, and against plans that run.

The check follows a feedback through a plan without running it. So it must find the places that the engine finds, and
what it says of a guard there must come true on streams that obey their schemes: what goes is gone some generations
later, what stays is still there.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from living import Living, living
from obeying import STEP, Feed, Life, template
from plans import Query, queries

import penstock as ps
from penstock.analysis.feedback_check import Lasting, forgettable, is_covered, remarks
from penstock.analysis.kept_feedback import kept, root_of
from penstock.contract.flow import Flow
from penstock.contract.report import Finding
from penstock.feedback.guards import Guards
from penstock.operators.aggregate.operator import Aggregate
from penstock.operators.sink.operator import Sink
from penstock.pattern.feedback import Feedback, Intent, Switches
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Restriction, at_least, at_most, between, equal, greater, less, one_of
from penstock.plan.operator import Operator
from penstock.plan.plan import Plan

cars = ps.stream("cars", "ts timestamp, segment int, speed double", time="ts")
probes = ps.stream("probes", "ts timestamp, segment int, speed double", time="ts")
timed = cars.disorder("10 s")
means = timed.window("1 min").group_by("segment").agg(mean="avg(speed)", n="count(*)")


def fates(query: ps.Stream, text: str) -> dict[str, str]:
    return {f.place: f.fate for f in forgettable(query.plan, Feedback.parse(text, query.schema)) if not f.doomed}


# --- by hand ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        (timed, "not [< '2026-01-01', *, *]", {"source:cars": "goes"}),
        (timed, "not ['2026-01-01', 3, > 40]", {"source:cars": "goes"}),
        (timed, "not [> '2026-01-01', *, *]", {"source:cars": "stays"}),
        (timed, "not [*, *, > 40]", {"source:cars": "stays"}),
        (timed.where("speed > 3"), "not [*, 3, *]", {"source:cars": "stays"}),
        (timed.select("segment", "speed"), "not [3, *]", {"source:cars": "stays"}),
        (cars, "not [< '2026-01-01', *, *]", {"source:cars": "stays"}),
        (cars.punctuated(), "not [*, *, > 40]", {"source:cars": "as the data says"}),
        (cars.punctuated().scheme(segment="value"), "not [*, {3, 4}, *]", {"source:cars": "if values end"}),
        (cars.punctuated().scheme(segment="value"), "not [*, < 4, *]", {"source:cars": "stays"}),
        (means, "not [*, *, > 40, *]", {"aggregate-1": "stays"}),
        (timed.union(probes), "not [< '2026-01-01', *, *]", {"source:cars": "goes", "source:probes": "stays"}),
    ],
)
def test_what_becomes_of_one_feedback(query: ps.Stream, text: str, expected: dict[str, str]) -> None:
    assert fates(query, text) == expected


def test_a_feedback_on_windows_goes_with_them_all_the_way_up() -> None:
    assert set(fates(means, "not [< '2026-01-01', *, *, *]").values()) == {"goes"}
    assert set(fates(means, "not [*, 3, *, *]").values()) == {"stays"}


def test_groups_that_are_doomed_will_be_told_and_forgotten_with_their_windows() -> None:
    found = forgettable(means.plan, Feedback.parse("not [*, *, *, > 40]", means.schema))
    later = [f for f in found if f.doomed]
    assert {f.fate for f in later} == {"goes"} and all(f.pinned for f in later if f.place.endswith(":groups"))
    assert [f.fate for f in found if not f.doomed] == ["stays"]


def test_a_run_that_ends_forgets_at_the_end() -> None:
    query = cars.ends()
    (found,) = forgettable(query.plan, Feedback.parse("not [*, *, > 40]", cars.schema), bounded=True)
    assert found.fate == "at the end" and not found.endless


def test_two_lists_of_values_are_not_covered_value_by_value() -> None:
    """Each punctuation ends one pair of values: no list is taken off the other."""
    flow = Flow(cars.schema)
    both = frozenset({("segment", "#"), ("speed", "#")})
    one = Pattern.by_name(cars.schema, {"segment": one_of([1, 2]), "speed": equal(3.0)})
    two = Pattern.by_name(cars.schema, {"segment": one_of([1, 2]), "speed": one_of([3.0, 4.0])})
    assert is_covered(flow, both, one) and not is_covered(flow, both, two)  # type: ignore[arg-type]


def test_what_only_one_of_two_consumers_says_waits_and_is_kept_there() -> None:
    fast = timed.where("speed > 40")
    both = fast.union(timed)
    plan = both.plan
    said = Feedback.parse("not [*, 3, *]", timed.schema)
    found = forgettable(plan, said, "source:cars", edge="select-1#0")
    assert [(f.operator, f.fate) for f in found] == [("source:cars", "stays")]
    assert "others read source:cars too" in found[0].why
    # Through the union, both say it: now it is a guard.
    assert "source:cars" in {k.place for k in kept(plan, said) if not k.waits}


def test_remarks_are_for_those_that_could_stay() -> None:
    assert remarks(means.plan, Feedback.parse("not [< '2026-01-01', *, *, *]", means.schema)) == []
    assert remarks(means.plan, Feedback.parse("now [*, *, > 40, *]", means.schema)) == []
    (line,) = remarks(means.plan, Feedback.parse("not [*, *, > 40, *]", means.schema))
    assert line.startswith("aggregate-1 keeps not [mean > …] for ever: no punctuation on `mean` will ever say that")
    pinned = remarks(means.plan, Feedback.parse("not [*, 3, *, *]", means.schema))
    assert any("further feedback is declined" in each for each in pinned)


# --- operators that issue ---------------------------------------------------------------------------------------------


def of(query: ps.Stream, operator: str, issuer: str) -> list[str]:
    (found,) = [f for f in query.check().findings if f.operator == operator]
    return [g.fate for g in found.feedback if g.issuer == issuer]


def test_pace_over_streams_that_tell_their_time_is_forgotten() -> None:
    query = timed.pace(probes.disorder("1 min"), on="ts", bound="1 min")
    for source in ("source:cars", "source:probes"):
        assert of(query, source, "pace-1") == ["goes"]
    assert "not [ts < …] of pace-1 goes: `ts up to` will cover it" in str(query.check())


def test_pace_over_a_stream_that_does_not_is_kept_but_only_once() -> None:
    report = timed.pace(probes, on="ts", bound="1 min").check()
    assert report.safe, "what is kept is little"
    (found,) = [f for f in report.findings if f.operator == "source:probes"]
    (told,) = [g for g in found.feedback if g.issuer == "pace-1"]
    assert told.endless and "one at most" in told.why


def test_top_tells_of_each_group_and_forgets_with_its_window() -> None:
    windowed = timed.window("1 min").top(3, by="speed desc", per="segment")
    assert set(of(windowed, "source:cars", "top-1")) == {"goes"}
    ever = cars.punctuated().scheme(segment="value").top(3, by="speed desc", per="segment")
    assert of(ever, "source:cars", "top-1") == ["if values end"]


def test_a_thrifty_join_tells_what_the_other_side_has_ended() -> None:
    keyed = cars.punctuated().scheme(segment="value")
    by_key = keyed.join(probes, "segment", thrifty=True)
    # Only the side that ends keys says anything; the other one has no punctuation to forget it on.
    assert of(by_key, "source:cars", "join-1") == []
    assert of(by_key, "source:probes", "join-1") == ["stays"]
    both = keyed.join(probes.punctuated().scheme(segment="value"), "segment", thrifty=True)
    assert set(of(both, "source:probes", "join-1")) == {"if values end"}
    left = keyed.join(probes.punctuated().scheme(segment="value"), "segment", "left", thrifty=True)
    assert of(left, "source:cars", "join-1") == [], "its rows come out without a partner too"
    timely = timed.join(probes.disorder("1 s"), ["ts", "segment"], thrifty=True)
    assert set(of(timely, "source:cars", "join-1")) == {"goes"}


def test_an_impatient_join_wishes_for_keys() -> None:
    query = timed.join(probes, "segment", within="1 min", impatient=True)
    (found,) = [f for f in query.check().findings if f.operator == "source:probes"]
    told = [g for g in found.feedback if g.issuer == "join-1"]
    assert [(g.feedback, g.fate) for g in told] == [("prefer [segment = …]", "stays")]
    assert of(query, "source:cars", "join-1") == [], "what is late there is judged by the order of files"


def test_limit_wants_nothing_more_until_the_end() -> None:
    assert of(timed.limit(3), "source:cars", "limit-1") == ["stays"]


def test_an_instrument_is_taken_at_its_word() -> None:
    assert of(timed.instrument("not [*, *, > 40]"), "source:cars", "instrument-1") == ["stays"]
    assert of(timed.instrument("not [< '2026-01-01', *, *]"), "source:cars", "instrument-1") == ["goes"]
    silent = timed.instrument("not [*, *, > 40]").feedback(propagate=False)
    assert of(silent, "source:cars", "instrument-1") == []


def test_the_report_names_what_could_live_for_ever_from_outside() -> None:
    report = means.check()
    assert set(report.endless_feedback) == {
        *("not [window_start >= …]", "not [ts >= …]", "not [segment …]", "not [mean …]", "not [n …]")
    }
    by = {f.operator: f for f in report.findings}
    assert {"aggregate-1", "source:cars"} <= {i for i, f in by.items() if any(g.endless for g in f.feedback)}
    assert not any(label == "feedback" for f in report.findings for label, _ in f.notes), "nobody in the plan says so"
    assert report.safe and isinstance(by["aggregate-1"], Finding)


def test_a_plan_of_many_operators_is_checked_in_time() -> None:
    """And without meeting the limit of recursion."""
    long = timed
    for _ in range(400):
        long = long.where("speed > 3")
    assert long.check().safe
    assert fates(long, "not [*, 3, *]") == {"source:cars": "stays"}


# --- against the guards of the engine ---------------------------------------------------------------------------------


def drawn_feedback(plan: Plan, rng: random.Random, near: int) -> Feedback:
    """Some feedback over the results, with values near those of a generation."""
    schema = plan[root_of(plan)].operator.schema
    chosen: dict[str, Restriction] = {}
    for name in rng.sample(schema.names, k=min(len(schema), rng.choice((1, 1, 2, 3)))):
        low = near * STEP + rng.randint(0, STEP)
        kinds = (less, at_most, at_most, equal, at_least, greater)
        made = [*(how(low) for how in kinds), between(low, low + 3, True, True), one_of([low, low + 1])]
        chosen[name] = rng.choice(made)
    return Feedback(rng.choice((Intent.ASSUMED, Intent.ASSUMED, Intent.DESIRED)), Pattern.by_name(schema, chosen))


def switched(operator: Operator, rng: random.Random) -> Operator:
    """The same with some operators told not to exploit feedback, or not to pass it on."""
    made: dict[int, Operator] = {}

    def again(operator: Operator) -> Operator:
        if id(operator) not in made:
            exploit, propagate = rng.random() < 0.8, rng.random() < 0.9
            propagate = propagate and (exploit or not isinstance(operator, Aggregate))
            inputs = tuple(map(again, operator.inputs))
            made[id(operator)] = replace(operator, inputs=inputs, switches=Switches(exploit, propagate))
        return made[id(operator)]

    return again(operator)


@given(queries(), st.randoms(use_true_random=False))
def test_the_engine_keeps_it_in_the_same_places(query: Query, rng: random.Random) -> None:
    operator = switched(query.stream.operator, rng)
    plan = Plan.of(Sink((operator,), operator.schema))
    feedback = drawn_feedback(plan, rng, 3)
    guards = Guards(plan)
    guards.begin(1)
    guards.tell(root_of(plan), feedback, edge="sink-1#0")
    found = kept(plan, feedback)
    places = guards.prefers if feedback.intent is Intent.DESIRED else guards.places
    assert {k.place for k in found if not k.waits} == places.keys()
    for each in found:
        there = guards.heard[each.speaker][each.place] if each.waits else places[each.place]
        assert any(r.pattern.contains(each.pattern) and r.pinned >= each.pinned for r in there), each
    for place, records in places.items():
        mine = [k.pattern for k in found if k.place == place and not k.waits]
        # Lists of values that differ in nothing else are one record there.
        assert all(any(r.pattern.contains(p) for p in mine) for r in records), place
    waiting = {e for by_edge in guards.heard.values() for e in by_edge}
    assert {k.place for k in found if k.waits} == waiting


# --- against plans that run -------------------------------------------------------------------------------------------

#: After so many generations somebody speaks, and so many later it is looked at.
BEFORE, AFTER = 3, 9
RANDOM = {
    "phases": (Phase.explicit, Phase.reuse, Phase.generate),
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
}


def is_there(run: Living, found: Lasting) -> bool:
    guards = run.driver.feedback.guards
    records = (*guards.places.get(found.place, ()), *guards.prefers.get(found.place, ()))
    if "#" in found.place and found.operator != found.place.partition("#")[0]:
        records = guards.heard.get(found.operator, {}).get(found.place, ())  # It waits for other consumers.
    return any(r.pattern.contains(found.pattern) for r in records)


def hold(query: Query, life: Life, feedback: Feedback, *, exactly: bool = True) -> list[str]:
    """Where a run does not do with guards what the check says.

    That something stays is only asked of safe plans, and if it is asked for `exactly`: the check is careful, and a
    guard may be gone that it does not count on going.
    """
    safe = exactly and query.stream.check().safe
    with living(query, life) as run:
        for number in range(BEFORE):
            run.live(number)
        found = [f for f in forgettable(run.plan, feedback) if not f.doomed]
        run.driver.feedback.log.submit({"text": str(feedback)})
        run.live(BEFORE)
        kept = [f for f in found if f.fate == "stays" and exactly]
        wrong = [f"{f.place} does not keep {f.pattern}" for f in kept if not is_there(run, f)]
        # Time that is told twenty rows later, at two rows a generation, is told ten generations later.
        later = 12 if any(feed.time == "rows" for feed in query.feeds) else 0
        for number in range(BEFORE + 1, BEFORE + AFTER + later):
            run.live(number)
        for each in found:
            if each.fate == "goes" and is_there(run, each):
                wrong.append(f"{each.place} still keeps {each.pattern}: {each.why}")
            if each.fate == "stays" and safe and not is_there(run, each):
                wrong.append(f"{each.place} has forgotten {each.pattern}: {each.why}")
        return wrong


@pytest.mark.parametrize(
    ("templates", "text", "said", "left"),
    [
        (("ts:+",), "s0.where('v > 0')", "not [< 45, *, *, *]", False),
        (("ts:+",), "s0.where('v > 0')", "not [*, *, *, > 4]", True),
        (("k:#",), "s0.where('v > 0')", "not [*, {41, 42}, *, *]", False),
        (("k:#",), "s0.where('v > 0')", "not [*, {41, 44}, *, *]", True),  # 44 never comes, so it never ends.
        (("k:#",), "s0.group_by('k').agg(n='count(*)')", "not [*, > 4]", True),
        (("ts:+",), "s0.window(10).group_by('k').agg(n='count(*)')", "not [< 45, *, *]", False),
        (("ts:+",), "s0.window(10).group_by('k').agg(n='count(*)')", "not [*, *, > 0]", True),
        # Nobody else hears what the join could promise.
        (("ts:+", "k:#"), "s0.join(s1, 'k', 'left')", "not [*, < 45, *, *, *, *, >= 1]", False),
    ],
)
def test_covered_guards_are_removed_and_others_stay(
    templates: tuple[str, ...], text: str, said: str, left: bool
) -> None:
    feeds = tuple(Feed(n, tuple(map(template, templates))) for n in ("s0", "s1") if n in text)
    query = Query(feeds, text)
    feedback = Feedback.parse(said, query.stream.schema)
    with living(query, Life(feeds)) as run:
        for number in range(BEFORE):
            run.live(number)
        run.driver.feedback.log.submit({"text": said})
        run.live(BEFORE)
        assert run.driver.feedback.guards.size > 0
        for number in range(BEFORE + 1, BEFORE + AFTER):
            run.live(number)
        assert (run.driver.feedback.guards.size > 0) is left
        endless = [f for f in forgettable(run.plan, feedback) if f.endless]
        assert bool(endless) >= left


@settings(max_examples=6, **RANDOM)  # type: ignore[arg-type]
@given(queries(), st.integers(0, 999), st.randoms(use_true_random=False))
def test_random_plans_do_with_guards_what_is_said(query: Query, seed: int, rng: random.Random) -> None:
    feedback = drawn_feedback(query.plan, rng, BEFORE)
    assert not hold(query, Life(query.feeds, seed), feedback), f"{query}\n{feedback}"


@pytest.mark.fuzz
@settings(max_examples=300, **RANDOM)  # type: ignore[arg-type]
@given(queries(), st.integers(0, 999), st.randoms(use_true_random=False))
def test_fuzz_guards(query: Query, seed: int, rng: random.Random) -> None:
    feedback = drawn_feedback(query.plan, rng, BEFORE)
    assert not hold(query, Life(query.feeds, seed), feedback, exactly=False), f"{query}\n{feedback}"
