"""Operators that keep rows: any query, any input, any cut: reference = kernels = batch, and Spark."""

from __future__ import annotations

from typing import Any

from backend import assert_grammatical, assert_same, difference, on_kernels, on_reference, on_spark
from batch import batch, has_batch_answer
from case import Case, Cut
from hypothesis import HealthCheck, Phase, given, settings
from join_cases import join_cases
from random_cases import cuts


def check(case: Case, cut: Cut, engine: Any = on_kernels, state: bool = True) -> None:
    found = engine(case, cut)
    if has_batch_answer(case):
        dead = {(stream, event) for stream, _, event in found.letters}
        assert difference(batch(case, dead), found.rows) == ([], []), "batch and engine"
    assert_same(on_reference(case), found, "reference and engine")
    assert_grammatical(found)
    assert found.state == 0 or not state


@given(join_cases(), cuts())
@settings(max_examples=50)
def test_reference_kernels_and_batch_agree_under_any_cut(case: Case, cut: Cut) -> None:
    check(case, cut)


@given(join_cases(rows=True), cuts())
@settings(max_examples=20)
def test_joins_with_the_last_rows_agree_under_any_cut(case: Case, cut: Cut) -> None:
    check(case, cut)


@given(case=join_cases(), cut=cuts(max_rows=(5, 8, None)))
@settings(max_examples=8, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
def test_spark_agrees(spark: Any, case: Case, cut: Cut) -> None:
    check(case, cut, lambda case, cut: on_spark(case, cut, spark))
