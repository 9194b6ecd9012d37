"""What a consumer ignores may be left out, and nothing else: Definition 1, for whole plans.

The result without feedback comes from the reference interpreter, which knows nothing of guards. The engine may leave
out results that match the feedback, from the epoch on that takes it up. It may not lose, change or invent any other.

Most of what could be said at random matches nothing, or comes when all is over. So it is made after a run without
feedback: at some moment, about results that are still to come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from random import Random
from typing import Any

import pytest
from backend import Outcome, assert_grammatical, difference, on_kernels, on_reference, on_spark
from case import Case, Cut
from extra_cases import extra_cases
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from join_cases import join_cases
from random_cases import cases, cuts

import penstock as ps
from penstock.operators.aggregate.operator import Aggregate
from penstock.pattern.feedback import Feedback, Switches
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import at_least, at_most, between, equal, greater, less, one_of
from penstock.pattern.schema import Schema
from penstock.plan.operator import Operator

RANDOMS = st.randoms(use_true_random=False)
#: Cases without results are passed over, which is no sign of a bad strategy.
FILTERED = {"suppress_health_check": (HealthCheck.filter_too_much, HealthCheck.too_slow, HealthCheck.data_too_large)}


def joined(ends: bool = True) -> st.SearchStrategy[Case]:
    """Joins of all kinds. What one of the last rows gives out before its inputs are over depends on the epochs."""
    of_rows = (join_cases(rows=True),) if ends else ()
    return st.one_of(join_cases(ends=ends), *of_rows).filter(lambda case: "join(" in case.query)


def others(ends: bool = True) -> st.SearchStrategy[Case]:
    extra = extra_cases() if ends else extra_cases().map(endless)
    return st.one_of(cases(ends=ends), extra, join_cases(ends=ends))


def anything(ends: bool = True) -> st.SearchStrategy[Case]:
    return st.one_of(joined(ends), others(ends))


def endless(case: Case) -> Case:
    feeds = tuple(replace(f, promises=f.promises.replace(".ends()", "")) for f in case.feeds)
    return replace(case, feeds=feeds)


def drawn_pattern(schema: Schema, rows: Sequence[dict[str, Any]], random: Random) -> Pattern:
    """A pattern that matches some of these results, and if one is found soon not all of them."""
    for _ in range(9):
        pattern = _near(schema, rows, random)
        if pattern.is_empty:  # as [4, 4) is: to say so is a mistake
            pattern = Pattern.all(schema)
        if 0 < sum(map(pattern.matches_row, rows)) < max(2, len(rows)):
            break
    return pattern


def _near(schema: Schema, rows: Sequence[dict[str, Any]], random: Random) -> Pattern:
    row, other = random.choice(rows), random.choice(rows)
    chosen: dict[str, Any] = {}
    for name in random.sample(schema.names, k=min(len(schema.names), random.choice((1, 1, 2, 3)))):
        value, second = row[name], other[name]
        if value is None or second is None or value != value or second != second:
            continue
        kinds = [equal(value), one_of([value, second])]
        if isinstance(value, int | float | datetime) and not isinstance(value, bool):
            low, high = min(value, second), max(value, second)
            kinds += [less(value), at_most(value), greater(value), at_least(value), between(low, high, True, False)]
        chosen[name] = random.choice(kinds)
    return Pattern.by_name(schema, chosen)


def switched(stream: ps.Stream, random: Random) -> ps.Stream:
    """The same query with some operators told not to exploit feedback, or not to pass it on."""
    made: dict[int, Operator] = {}

    def rebuilt(operator: Operator) -> Operator:
        if id(operator) not in made:
            exploit, propagate = random.random() < 0.6, random.random() < 0.8
            if isinstance(operator, Aggregate):
                propagate = propagate and exploit
            inputs = tuple(rebuilt(i) for i in operator.inputs)
            made[id(operator)] = replace(operator, inputs=inputs, switches=Switches(exploit, propagate))
        return made[id(operator)]

    return replace(stream, operator=rebuilt(stream.operator))


def both(case: Case, cut: Cut) -> tuple[Outcome, Outcome]:
    """What the reference gives in the end, and the engine when nobody says anything."""
    plain = on_reference(case.ending())
    assume(plain.rows)
    quiet = on_kernels(case, cut)
    assume(quiet.rows)
    return plain, quiet


def feedback_for(case: Case, quiet: Outcome, random: Random) -> dict[int, list[str]]:
    """Some feedback, each at some time, about results that come later if nobody says anything."""
    schema = case.stream().schema
    said: dict[int, list[str]] = {}
    for _ in range(random.choice((1, 1, 2, 4))):
        when = random.choice((0, random.randrange(max(n for n, rows in quiet.epochs.items() if rows))))
        later = [row for n, rows in quiet.epochs.items() if n > when for row in rows]
        said.setdefault(when, []).append(f"not {drawn_pattern(schema, later, random)}")
    return said


def check(case: Case, found: Outcome, plain: Outcome, quiet: Outcome, said: dict[int, list[str]]) -> None:
    """Streams that do not end may give out less than the reference does, told or not; but nothing that it does not."""
    schema = case.stream().schema
    patterns = [Feedback.parse(t, schema).pattern for texts in said.values() for t in texts]
    lost, invented = difference(quiet.rows, found.rows)[0], difference(found.rows, plain.rows)[0]
    assert not invented, f"not a result without feedback: {invented}"
    wrongly = [r for r in lost if not any(p.matches_row(r) for p in patterns)]
    assert not wrongly, f"lost though nobody ignores it: {wrongly}"
    assert_grammatical(found)
    assert found.state == 0 or quiet.state > 0
    assert set(found.letters) <= set(quiet.letters)


def check_promises(found: Outcome, quiet: Outcome) -> None:
    """Guards drop events, never punctuation: all that is promised otherwise is promised."""
    told = {p for patterns in found.punctuations.values() for p in patterns}
    missing = {p for patterns in quiet.punctuations.values() for p in patterns} - told
    missing = {p for p in missing if not any(q.contains(p) for q in told)}
    assert not missing, f"promised no more: {[*map(str, missing)]}"


def leave_out(case: Case, cut: Cut, random: Random) -> None:
    plain, quiet = both(case, cut)
    said = feedback_for(case, quiet, random)
    found = on_kernels(case, cut, said)
    check(case, found, plain, quiet, said)
    # After a restart it is not known any more that a stream had ended before something was said about it.
    assert found.guards == 0 or cut.restart, "everything has ended, so nothing need be remembered"
    # With everything switched on, what is ignored does not appear once an epoch runs under the feedback.
    if len(said) == 1 and found.plans:
        patterns = [Feedback.parse(t, case.stream().schema).pattern for texts in said.values() for t in texts]
        for number, rows in found.epochs.items():
            if found.plans[number].control > 0 and max(said) == 0:
                assert not [r for r in rows if any(p.matches_row(r) for p in patterns)]


@given(joined(), cuts(), RANDOMS)
@settings(max_examples=30, **FILTERED)
def test_only_what_is_ignored_is_left_out_of_joins(case: Case, cut: Cut, random: Random) -> None:
    leave_out(case, cut, random)


@given(others(), cuts(), RANDOMS)
@settings(max_examples=25, **FILTERED)
def test_only_what_is_ignored_is_left_out(case: Case, cut: Cut, random: Random) -> None:
    leave_out(case, cut, random)


def switch_off(case: Case, cut: Cut, random: Random) -> None:
    plain, quiet = both(case, cut)
    said = feedback_for(case, quiet, random)
    found = on_kernels(case, cut, said, lambda stream: switched(stream, random))
    check(case, found, plain, quiet, said)
    check_promises(found, quiet)


@given(joined(ends=False), cuts(), RANDOMS)
@settings(max_examples=30, **FILTERED)
def test_any_operators_of_a_join_may_be_switched_off(case: Case, cut: Cut, random: Random) -> None:
    switch_off(case, cut, random)


@given(others(ends=False), cuts(), RANDOMS)
@settings(max_examples=20, **FILTERED)
def test_any_operators_may_be_switched_off(case: Case, cut: Cut, random: Random) -> None:
    switch_off(case, cut, random)


@given(anything().map(endless), cuts(), RANDOMS)
@settings(max_examples=15, **FILTERED)
def test_promises_come_all_the_same(case: Case, cut: Cut, random: Random) -> None:
    _, quiet = both(case, cut)
    found = on_kernels(case, cut, feedback_for(case, quiet, random))
    check_promises(found, quiet)


@given(cases(), cuts())
@settings(max_examples=20)
def test_feedback_that_matches_nothing_changes_nothing(case: Case, cut: Cut) -> None:
    plain = on_reference(case)
    schema = case.stream().schema
    nothing = Pattern.by_name(schema, {schema.names[0]: between(7, 3, True, True)} if "int" in str(schema) else {})
    if not nothing.is_empty:
        return
    found = on_kernels(case, cut, {0: [f"not {nothing}"]})
    assert difference(plain.rows, found.rows) == ([], [])


@pytest.mark.fuzz
@given(st.booleans().flatmap(lambda ends: anything(ends)), cuts(), RANDOMS)
@settings(suppress_health_check=list(HealthCheck))
def test_fuzz_feedback(case: Case, cut: Cut, random: Random) -> None:
    plain, quiet = both(case, cut)
    said = feedback_for(case, quiet, random)
    for change in (lambda stream: stream, lambda stream: switched(stream, random)):
        found = on_kernels(case, cut, said, change)
        check(case, found, plain, quiet, said)
        check_promises(found, quiet)


@given(case=anything(), cut=cuts(max_rows=(5, 8, None)), random=RANDOMS)
@settings(max_examples=5, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
def test_spark_leaves_out_the_same(spark: Any, case: Case, cut: Cut, random: Random) -> None:
    plain, quiet = both(case, cut)
    said = feedback_for(case, quiet, random)
    check(case, on_spark(case, cut, spark, said), plain, quiet, said)


@given(anything(), cuts(), RANDOMS)
@settings(max_examples=15, **FILTERED)
def test_a_wish_changes_the_order_alone(case: Case, cut: Cut, random: Random) -> None:
    plain, quiet = both(case, cut)
    said = feedback_for(case, quiet, random)
    wishes = {n: [t.replace("not ", "prefer ", 1) for t in ts] for n, ts in said.items()}
    found = on_kernels(case, cut, wishes)
    assert difference(plain.rows, found.rows) == ([], [])
    assert found.letters == plain.letters
    assert_grammatical(found)
