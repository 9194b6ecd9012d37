"""Sums: exact under any cut, and an error, never a wrong number, where they do not fit."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from backend import on_kernels, on_reference
from case import WHOLE, Case, Cut, Feed
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import FailingError

CUTS = (WHOLE, Cut(file_rows=3, group_rows=1, max_rows=1, buckets=3, fuse_below=0, as_if_large=True))


def sums(query: str, **columns: list[Any]) -> Case:
    count = len(next(iter(columns.values())))
    rows = [{"ts": i, "k": "a", "id": i, **{c: v[i] for c, v in columns.items()}} for i in range(count)]
    return Case(query, (Feed("s", tuple(("", r) for r in rows), ".disorder(0).ends()"),))


@pytest.mark.parametrize("cut", CUTS)
def test_a_sum_beyond_bigint_names_operator_and_aggregate(cut: Cut) -> None:
    case = sums("s.group_by('k').agg(total='sum(n)', n='count(*)')", n=[2**62, 2**62, 1])
    # A group without an answer is set aside, with no number at all.
    for found in (on_kernels(case, cut), on_reference(case)):
        assert (found.rows, found.letters, found.state) == ([], [("aggregate-1", "failed", None)], 0)
    with pytest.raises(FailingError, match=r"^aggregate-1: sum\(n\) AS total fails: .*\{\"k\":\"a\"\}"):
        on_kernels(case, replace(cut, on_error="fail"))


@pytest.mark.parametrize("cut", CUTS)
def test_a_sum_that_only_passes_beyond_bigint_is_exact(cut: Cut) -> None:
    case = sums("s.group_by('k').agg(total='sum(n)')", n=[2**62, 2**62, -(2**62), -5])
    assert on_kernels(case, cut).rows == on_reference(case).rows == [{"k": "a", "total": 2**62 - 5}]


@pytest.mark.parametrize("cut", CUTS)
def test_a_wider_type_is_the_way_out(cut: Cut) -> None:
    case = sums("s.agg(total='sum(cast(n as decimal(38,0)))')", n=[2**62, 2**62, 1])
    assert on_kernels(case, cut).rows == [{"total": Decimal(2**63 + 1)}]


@pytest.mark.parametrize("cut", CUTS)
def test_decimals_are_exact(cut: Cut) -> None:
    values = [Decimal("9999999.99"), Decimal("-0.01"), Decimal("0.07"), None, Decimal("-9999999.99")]
    case = sums("s.agg(total='sum(d)', most='max(d)')", d=values)
    assert on_kernels(case, cut).rows == [{"total": Decimal("0.06"), "most": Decimal("9999999.99")}]


def test_a_double_too_large_is_an_error() -> None:
    for cut in CUTS:
        case = sums("s.agg(total='sum(v)')", v=[1.7e308, 1.7e308])
        for found in (on_kernels(case, cut), on_reference(case)):
            assert (found.rows, found.letters) == ([], [("aggregate-1", "failed", None)])
        with pytest.raises(FailingError, match=r"sum\(v\) AS total fails: .*too large"):
            on_kernels(case, replace(cut, on_error="fail"))


_FLOATS = st.floats(-1e300, 1e300, allow_subnormal=False)


@given(st.lists(_FLOATS, min_size=1, max_size=12), st.booleans(), st.integers(1, 4))
@settings(max_examples=12)
def test_float_sums_do_not_depend_on_the_cut(values: list[float], cancel: bool, max_rows: int) -> None:
    # With its negatives mixed in, all that is left of a sum is what rounding would have lost.
    numbers = [*values, *(-v for v in values[1:])] if cancel else values
    case = sums("s.agg(total='sum(v)', mean='avg(v)')", v=numbers)
    exact = math.fsum(numbers)
    cuts = (WHOLE, Cut(file_rows=4, group_rows=2, max_rows=max_rows, fuse_below=0))
    found = [on_kernels(case, cut).rows for cut in cuts]
    assert found[0] == found[1]
    (row,) = found[0]
    assert math.isclose(row["total"], exact, rel_tol=1e-12)
    assert math.isclose(row["mean"], exact / len(numbers), rel_tol=1e-12)
