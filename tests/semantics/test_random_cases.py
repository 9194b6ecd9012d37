"""Any query, any input, any cut: reference = kernels = batch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from backend import Outcome, assert_grammatical, assert_same, by_epoch, difference, on_kernels, on_reference, on_spark
from batch import batch, has_batch_answer
from case import WHOLE, Case, Cut
from hypothesis import HealthCheck, Phase, assume, given, settings
from random_cases import cases, cuts


def check(case: Case, cut: Cut, engine: Any = on_kernels) -> Outcome:
    expected, found = on_reference(case), engine(case, cut)
    assert_same(expected, found, "reference and engine")
    assert_grammatical(found)
    return found


@given(cases(), cuts())
@settings(max_examples=30)
def test_reference_and_kernels_agree_under_any_cut(case: Case, cut: Cut) -> None:
    found = check(case, cut)
    assert found.state == 0
    if has_batch_answer(case):
        dead = {(stream, event) for stream, _, event in found.letters}
        assert difference(batch(case, dead), found.rows) == ([], [])


@given(cases(ends=False), cuts())
@settings(max_examples=12)
def test_streams_that_do_not_end_agree_too(case: Case, cut: Cut) -> None:
    check(case, cut)


@given(cases(max_rows=20), cuts(), cuts())
@settings(max_examples=11)
def test_no_cut_changes_a_result(case: Case, one: Cut, other: Cut) -> None:
    assert_same(on_kernels(case, one), on_kernels(case, other))


@given(cases(max_rows=20), cuts())
@settings(max_examples=12)
def test_groups_are_emitted_in_the_epoch_that_completes_them(case: Case, cut: Cut) -> None:
    feed = case.feeds[0]
    assume(len(case.feeds) == 1 and len(feed.partitions) == 1)
    case = Case(case.query, (replace(feed, format="parquet"),))  # Of lines of text, plans name bytes.
    found = on_kernels(case, cut)
    expected = by_epoch(case, found.plans)
    for number, rows in enumerate(expected, start=1):
        assert difference(rows, found.epochs.get(number, [])) == ([], []), f"epoch {number}"


@pytest.mark.fuzz
@given(cases(max_rows=24), cuts())
@settings(suppress_health_check=list(HealthCheck))
def test_fuzz(case: Case, cut: Cut) -> None:
    found = check(case, cut)
    assert found.state == 0
    if has_batch_answer(case):
        dead = {(stream, event) for stream, _, event in found.letters}
        assert difference(batch(case, dead), found.rows) == ([], [])
    assert_same(found, on_kernels(case, WHOLE))


@given(case=cases(), cut=cuts(max_rows=(5, 8, None)))
@settings(max_examples=6, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
def test_spark_agrees(spark: Any, case: Case, cut: Cut) -> None:
    check(case, cut, lambda case, cut: on_spark(case, cut, spark))
