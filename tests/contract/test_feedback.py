"""Feedback in contracts: the table of ⪯, coverage by containment, well-formed contracts, and a plan with feedback."""

from __future__ import annotations

from dataclasses import replace

import pytest
from accepting import ANY_FEEDBACK, NO_FEEDBACK, Feedback, accommodates
from contracts import Contract
from hypothesis import assume, given
from hypothesis import strategies as st

from penstock.contract.feedback import covers
from penstock.contract.template import CLASSES, Scheme, Template
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import ANY, Restriction, at_most, between, equal
from penstock.pattern.schema import Schema

S1, S2 = Scheme.parse("[[a:+, b:-]]"), Scheme.parse("[[a:-, b:#]]")


@pytest.mark.parametrize(
    ("antecedent", "subsequent", "expected"),
    [
        *((NO_FEEDBACK, NO_FEEDBACK, True), (NO_FEEDBACK, ANY_FEEDBACK, False), (NO_FEEDBACK, S1, False)),
        *((ANY_FEEDBACK, NO_FEEDBACK, True), (ANY_FEEDBACK, ANY_FEEDBACK, True), (ANY_FEEDBACK, S1, True)),
        *((S1, NO_FEEDBACK, True), (S1, ANY_FEEDBACK, False), (S1, S1, True), (S1, S2, False)),
    ],
)
def test_what_goes_together(antecedent: Feedback, subsequent: Feedback, expected: bool) -> None:
    assert accommodates(antecedent, subsequent) is expected


S = Schema.parse("a timestamp, b int")


@pytest.mark.parametrize(
    ("template", "feedback", "expected"),
    [
        ("[[a:+, b:-]]", "[<= '2026-01-01 02:00:00', *]", True),
        ("[[a:+, b:#]]", "[<= '2026-01-01 02:00:00', *]", False),  # <= 7 and 3 does not contain <= 5 and any.
        ("[[a:+, b:-]]", "[<= '2026-01-01 02:00:00', 3]", True),
        ("[[a:+, b:-]]", "[<= '2026-01-01 02:00:00', >= 50]", True),
        ("[[a:-, b:+]]", "[*, >= 50]", False),
        ("[[a:-, b:#]]", "[*, < 50]", False),
        ("[[a:-, b:+]]", "[*, 50]", True),
        ("[[a:-, b:#]]", "[*, {50, 60}]", True),
        ("[[a:-, b:-]]", "[*, *]", True),
    ],
)
def test_coverage_of_feedback(template: str, feedback: str, expected: bool) -> None:
    assert covers(Template.parse(template, S), Pattern.parse(feedback, S)) is expected


SMALL = Schema.parse("x int, y int")
LAST = 6


def progress(template: Template) -> list[Pattern]:
    """All punctuations over 0..6 that conform to a template."""
    kinds: dict[str, list[Restriction]] = {
        "+": [at_most(LAST)],
        "#": [equal(n) for n in range(LAST + 1)],
        "range": [between(n, m, True, True) for n in range(LAST + 1) for m in range(n + 1, LAST + 1)],
        "-": [ANY],
    }
    return [Pattern(SMALL, (x, y)) for x in kinds[template.classes[0]] for y in kinds[template.classes[1]]]


drawn = st.tuples(*[st.sampled_from(CLASSES)] * 2).map(lambda cs: Template(("x", "y"), cs))
value = st.integers(1, LAST - 1)
some = st.one_of(st.just(ANY), value.map(equal), value.map(at_most), value.map(lambda n: between(n, n + 1, True, True)))


@given(drawn, some, some)
def test_covered_feedback_is_contained_in_a_punctuation_and_no_other_is(
    template: Template, x: Restriction, y: Restriction
) -> None:
    feedback = Pattern(SMALL, (x, y))
    assume(not feedback.is_empty)
    contained = any(p.contains(feedback) for p in progress(template))
    assert covers(template, feedback) is contained


def test_a_contract_is_well_formed_if_its_inputs_cover_what_it_accepts() -> None:
    select = Contract.parse("{[[a:+, b:-]]} -> {[[a:+, b:-]]}")
    for feedback, expected in [
        *((ANY_FEEDBACK, True), (NO_FEEDBACK, True), (S1, True), (S2, False)),
        (Scheme.parse("[[a:+, b:#]]"), True),
        (Scheme.parse("[[a:#, b:-]]"), True),
        (S1 | S2, False),
    ]:
        assert replace(select, feedback_in=(feedback,)).well_formed is expected


def test_accepted_feedback_is_traced_to_the_names_of_the_inputs() -> None:
    average = "{[[ts:+, v:-]]} -> {[[wid:+, avg:-]]} with feedback {[[wid:+, avg:-]]} -> ∅"
    contract = Contract.parse(average)
    assert not contract.well_formed
    assert replace(contract, lineage=frozenset({("wid", 0, "ts")})).well_formed
    assert not replace(contract, lineage=frozenset({("avg", 0, "ts")})).well_formed


def test_each_input_must_cover_and_a_source_covers_by_itself() -> None:
    union = "{[[a:+, b:-]]}; {[[a:-, b:#]]} -> {[[a:+, b:#]]} with feedback {%s} -> ∅; ∅"
    assert not Contract.parse(union % "[[a:+, b:-]]").well_formed
    assert Contract.parse(union % "[[a:+, b:#]]").well_formed
    assert Contract.parse("-> {[[a:+, b:-]]} with feedback {[[a:#, b:-]]} ->").well_formed
    assert not Contract.parse("-> {[[a:#, b:-]]} with feedback {[[a:+, b:-]]} ->").well_formed
