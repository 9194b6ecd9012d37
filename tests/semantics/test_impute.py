"""A function with a queue: any query around it, any input, any cut, any budget gives what a map would give."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from backend import assert_grammatical, assert_same, on_kernels, on_reference, on_spark
from case import Case, Cut
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from join_cases import join_cases
from random_cases import cuts, feeds_named, queries

KEEPS = ("['ts', 'k', 'id', 'v', 'n', 'd']", "['ts', 'k']", "['k']", "['ts']", "[]")


@st.composite
def imputing(draw: st.DrawFn, text: str) -> str:
    """A query with a queue behind its first source."""
    function = draw(st.sampled_from(("odd_only", "twice")))
    keeps = draw(st.sampled_from(KEEPS[1:] if function == "twice" else KEEPS))
    where = draw(st.sampled_from(("", "", ", where='v > 0'", ", where=\"k = 'a'\"")))
    queue = f"s.impute({function}, budget={draw(st.sampled_from((1, 2, 2, 3, 5)))}, keeps={keeps}{where})"
    return re.sub(r"\bs\b(?=[.,)]|$)", lambda _: queue, text, count=1)


@st.composite
def cases(draw: st.DrawFn, max_rows: int = 20) -> Case:
    if draw(st.integers(0, 3)) == 0:
        case = draw(join_cases(max_rows=max_rows))
        return Case(draw(imputing(case.query)), case.feeds)
    two = draw(st.booleans())
    text = draw(imputing(draw(queries(1, two))))
    many = draw(st.booleans())
    names = ("s", "t") if "t" in re.findall(r"\b[st]\b(?=[.,)]|$)", text) else ("s",)
    return Case(text, tuple(draw(feeds_named(n, 1, many, max_rows // len(names), True)) for n in names))


def longer(max_rows: tuple[int | None, ...] = (4, 9, None)) -> st.SearchStrategy[Cut]:
    """Cuts in which more arrives in an epoch than has its turn, and stays together."""
    return st.tuples(cuts(max_rows), st.integers(1, 3)).map(lambda drawn: replace(drawn[0], buckets=drawn[1]))


def check(case: Case, cut: Cut, engine: Any = on_kernels) -> None:
    assert "impute" in case.query
    found = engine(case, cut)
    assert_same(on_reference(case), found, "reference and engine")
    assert_grammatical(found)
    assert found.state == 0


@given(cases(), longer())
@settings(max_examples=15)
def test_reference_and_kernels_agree_under_any_cut(case: Case, cut: Cut) -> None:
    check(case, cut)


@given(case=cases(max_rows=12), cut=longer((9, None)))
@settings(max_examples=4, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
def test_spark_agrees(spark: Any, case: Case, cut: Cut) -> None:
    check(case, cut, lambda case, cut: on_spark(case, cut, spark))
