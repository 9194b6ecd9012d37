"""Templates and schemes: reading, writing, conforming."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.contract.template import CLASSES, Scheme, Template, class_of
from penstock.errors import UserError
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Restriction, at_least, at_most, between, equal, less, one_of
from penstock.pattern.schema import Schema

S = Schema.parse("a timestamp, b int, c int")


@pytest.mark.parametrize(
    ("pattern", "accepted"),
    [
        ("[<= '2026-01-01 23:30:00', 26, *]", True),
        ("[< '2026-01-01 23:30:00', 26, *]", True),
        ("[*, 26, *]", False),
        ("['2026-01-01 23:30:00', < 26, *]", False),
        ("[<= '2026-01-01 23:30:00', 26, 3]", False),
        ("[<= '2026-01-01 23:30:00', {26, 27}, *]", True),
    ],
)
def test_a_template_accepts_what_has_its_classes(pattern: str, accepted: bool) -> None:
    assert Template.parse("[[a:+, b:#, c:-]]", S).accepts(Pattern.parse(pattern, S)) is accepted


@pytest.mark.parametrize(
    ("restriction", "expected"),
    [
        *((less(3), "+"), (at_most(3), "+"), (equal(3), "#"), (one_of([1, 2]), "#"), (between(1, 5), "range")),
        *((at_least(3), None), (one_of([]), None)),
    ],
)
def test_classes_of_restrictions(restriction: Restriction, expected: str | None) -> None:
    assert class_of(restriction) == expected


def test_a_pattern_of_another_schema_does_not_conform() -> None:
    other = Schema.parse("x timestamp, b int, c int")
    assert not Template.parse("[[a:-, b:#, c:-]]", S).accepts(Pattern.parse("[*, 1, *]", other))


def test_words_and_signs_say_the_same() -> None:
    said = Template.of(S, {"a": "up to", "B": "value"})
    assert said == Template.parse("[[a:+, b:#]]", S) == Template.parse("[[b:#,a:+,c:any]]", S)
    assert (said["a"], said["c"], said.tagged) == ("+", "-", {"a": "+", "b": "#"})
    assert Template.of(S, {}).ends and Template.of(S, {}).words == "the end"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[a:+]", "a template is written"),
        ("[[a]]", "write name:class"),
        ("[[a:up]]", "'up to'"),
        ("[[aa:+]]", "did you mean 'a'"),
        ("[[a:+, a:#]]", "'a' twice"),
    ],
)
def test_mistakes_are_named(text: str, part: str) -> None:
    with pytest.raises(UserError, match=part.replace("[", r"\[")):
        Template.parse(text, S)


def test_schemes_are_read_with_their_schema_or_without() -> None:
    text = "{[[a:+, b:-, c:-]], [[a:-, b:#, c:-]]}"
    scheme = Scheme.parse(text)
    assert scheme == Scheme.parse("[[b:#]] [[a:+]]", S) and str(scheme) == text and len(scheme) == 2
    assert Scheme.parse("{}") == Scheme() and Scheme().words == "no punctuation"
    with pytest.raises(UserError, match="write templates"):
        Scheme.parse("{[[a:+]], a:#}")
    assert scheme.accepts(Pattern.parse("[*, 3, *]", S)) and not scheme.accepts(Pattern.parse("[*, 3, 4]", S))
    assert Scheme.parse("[[a:+]]", S) | Scheme.parse("[[b:#]]", S) == scheme


names = st.lists(st.sampled_from(["a", "wind speed", "a,b", "x:y", "_1", "Zahl", "[a"]), min_size=1, unique=True)


@given(st.data(), names)
def test_the_text_of_a_template_reads_back(data: st.DataObject, names: list[str]) -> None:
    template = Template(tuple(names), tuple(data.draw(st.sampled_from(CLASSES)) for _ in names))
    assert Template.parse(str(template)) == template


def test_onto_other_names_keeps_every_tag_or_gives_up() -> None:
    template, out = Template.parse("[[a:+, b:#, c:-]]", S), Schema.parse("key int, ts timestamp")
    assert template.onto(out, {"a": "ts", "b": "key"}) == Template.parse("[[key:#, ts:+]]", out)
    assert template.onto(out, {"a": "ts"}) is None
