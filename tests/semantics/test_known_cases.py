"""Hand-picked cases give the same on every back end, under several cuts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from backend import Outcome, assert_grammatical, assert_same, on_kernels, on_reference, on_spark
from case import WHOLE, Case, Cut
from known_cases import CASES

CUTS = {
    "whole": WHOLE,
    "small epochs": Cut(file_rows=6, group_rows=3, max_rows=2, buckets=3, merge_above=2, fuse_below=0),
    "restarted": Cut(file_rows=5, group_rows=2, max_rows=3, buckets=2, restart=True, empty_file=True),
    "small tasks": Cut(file_rows=4, group_rows=2, buckets=5, parallelism=4, batch_rows=1, as_if_large=True),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("cut", CUTS)
def test_known_case(name: str, cut: str) -> None:
    check(name, CUTS[cut], on_kernels)


@pytest.mark.parametrize("name", CASES)
def test_known_case_on_spark(name: str, spark: Any) -> None:
    check(name, Cut(file_rows=6, group_rows=3, max_rows=9, buckets=2), lambda case, cut: on_spark(case, cut, spark))


def check(name: str, cut: Cut, engine: Callable[[Case, Cut], Outcome]) -> None:
    case = CASES[name]
    expected, found = on_reference(case), engine(case, cut)
    assert_same(expected, found, name)
    assert_grammatical(found)
    assert (found.state == 0) == (expected.state == 0)
