"""Recorded streams against schemes: the worked examples, and the monitor against the letter of C1 and C2."""

from __future__ import annotations

from typing import Any

import pytest
from grammar import is_grammatical
from hypothesis import given
from hypothesis import strategies as st

from penstock.contract.obey import Monitor, obeys
from penstock.contract.template import CLASSES, Scheme, Template
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import ANY, at_least, at_most, between, equal
from penstock.pattern.schema import Schema

S = Schema.parse("a timestamp, b int, c int")
PS1 = Scheme.parse("{[[a:+, b:#, c:-]]}", S)
PS2 = Scheme.parse("{[[a:+, b:-, c:-]], [[a:-, b:#, c:-]]}", S)


def at(clock: str) -> str:
    return f"2026-01-01 {clock}:00"


def e(clock: str, b: int, c: int) -> dict[str, Any]:
    return S.event((at(clock), b, c))


def p(a: str, b: str, c: str = "*") -> Pattern:
    return Pattern.parse(f"[{a if a == '*' else f'''< '{at(a[1:])}' '''}, {b}, {c}]", S)


#: C1 holds, C2 does not: 3 has not ended.
OPEN = [
    *(e("10:16", 2, 23), e("10:17", 1, 13), e("10:17", 3, 31), p("<10:20", "*"), e("10:21", 1, 11), p("*", "1")),
    *(e("10:21", 2, 21), e("10:21", 3, 31), p("<10:25", "*"), p("*", "2"), e("10:27", 3, 30), p("<10:30", "*")),
]


def test_a_stream_that_obeys() -> None:
    stream = [e("21:45", 1, 7), p("<22:00", "1"), p("<22:00", "2")]
    verdict = obeys(stream, PS1)
    assert verdict and str(verdict) == "obeys"
    assert not obeys(stream, PS2)


def test_a_punctuation_that_conforms_to_no_template() -> None:
    stream = [e("21:45", 1, 7), p("<22:00", "*"), p("*", "2"), p("<22:05", "< 1")]
    verdict = obeys(stream, PS1)
    assert not verdict.c1 and verdict.breach is not None
    assert (verdict.breach.position, verdict.breach.punctuation) == (1, stream[1])
    last = obeys(stream, PS2).breach
    assert last is not None and last.position == 3
    assert "item 3" in str(last) and "conforms to no template" in str(last)


def test_events_that_one_template_has_not_covered() -> None:
    verdict = obeys(OPEN, PS2)
    assert verdict.c1 and not verdict.c2
    (waiting,) = verdict.uncovered
    assert (waiting.template, waiting.position, waiting.count) == (Template.parse("[[b:#]]", S), 2, 3)
    assert "waits for b: each value" in str(verdict) and "2 more" in str(verdict)
    assert obeys([*OPEN, p("*", "3")], PS2)


def test_without_events_nothing_must_come() -> None:
    assert obeys([], PS2) and obeys([p("*", "3")], PS2)


def test_no_scheme_promises_nothing_and_allows_nothing() -> None:
    assert obeys([e("10:00", 1, 1)], Scheme())
    assert not obeys([e("10:00", 1, 1), p("*", "1")], Scheme())


def test_the_end_is_a_breach_unless_the_stream_may_end() -> None:
    stream = [*OPEN, Pattern.all(S)]
    assert not obeys(stream, PS2).c1
    assert obeys(stream, PS2, end=True)
    assert obeys([Pattern.all(S)], Scheme(), end=True)


def test_null_in_a_tagged_attribute_waits_for_ever() -> None:
    stream = [S.event((at("10:00"), None, 1)), p("<10:20", "*"), p("*", "1")]
    assert [w.template.words for w in obeys(stream, PS2).uncovered] == ["b: each value"]


def test_values_may_come_in_the_order_of_the_attributes() -> None:
    assert obeys([(at("21:45"), 1, 7), p("<22:00", "1")], PS1)
    with pytest.raises(ValueError):
        obeys([(1, 7)], PS1)


def test_a_monitor_tells_breaches_at_once_and_keeps_the_first() -> None:
    monitor = Monitor(PS1)
    assert monitor.feed(p("<22:00", "1")) is None
    first = monitor.feed(p("<22:00", "*"))
    assert first is not None and first.position == 1
    assert monitor.feed(p("*", "2")) is not None and monitor.breach == first


def test_a_monitor_of_bounded_memory_says_what_it_did_not_follow() -> None:
    monitor = Monitor(PS2, limit=2)
    for b in range(5):
        monitor.feed(e("10:00", b, 0))
        monitor.feed(e("10:00", b, 1))
    assert len(monitor.waiting) == 3  # one time, two values of b
    assert monitor.forgotten == 6
    monitor.feed(p("*", "{0, 1, 2, 3, 4}"))
    monitor.feed(p("<10:20", "*"))
    verdict = monitor.verdict()
    assert verdict.c2 and "6 events were not followed" in str(verdict)
    with pytest.raises(ValueError, match="nothing"):
        Monitor(PS2, limit=0)


SMALL = Schema.parse("x int, y int")
values = st.integers(0, 3)
restrictions = st.sampled_from([ANY, at_least(2), between(1, 2)]) | values.map(equal) | values.map(at_most)
items = st.lists(
    st.one_of(
        st.tuples(values, values),
        st.tuples(restrictions, restrictions).map(lambda rs: Pattern(SMALL, rs)),
    ),
    max_size=12,
)
templates = st.tuples(*[st.sampled_from(CLASSES)] * 2).map(lambda cs: Template(("x", "y"), cs))
schemes = st.frozensets(templates, max_size=3).map(Scheme)


@given(items, schemes)
def test_obeys_is_what_c1_and_c2_say(stream: list[Any], scheme: Scheme) -> None:
    punctuations = [i for i in stream if isinstance(i, Pattern)]
    events = [SMALL.event(i) for i in stream if not isinstance(i, Pattern)]
    c1 = all(any(t.accepts(q) for t in scheme) for q in punctuations)
    c2 = all(any(t.accepts(q) and q.matches_row(event) for q in punctuations) for event in events for t in scheme)
    verdict = obeys(stream, scheme)
    assert (verdict.c1, verdict.c2) == (c1, c2)


@given(items, schemes)
def test_a_monitor_agrees_at_every_item_of_a_grammatical_stream(stream: list[Any], scheme: Scheme) -> None:
    monitor = Monitor(scheme)
    for n, item in enumerate(stream, start=1):
        if not is_grammatical(stream[:n], SMALL):
            break
        breach = monitor.feed(item)
        expected = obeys(stream[:n], scheme)
        assert monitor.verdict() == expected
        assert (breach is not None) == (isinstance(item, Pattern) and not scheme.accepts(item))
