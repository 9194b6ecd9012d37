"""The worked examples give on every back end what their authors say, under several cuts."""

from __future__ import annotations

from typing import Any

import pytest
from backend import Outcome, assert_grammatical, on_kernels, on_reference, on_spark
from case import WHOLE, Cut
from golden_joins import EXPECTED, GOLDEN

ONE_BY_ONE = Cut(file_rows=1, group_rows=1, max_rows=1, buckets=3, fuse_below=0, rewrite_above=0.0, merge_above=1)


def said(name: str, outcome: Outcome) -> list[tuple[Any, ...]]:
    ours = {"one key that ends": ("a", "b", "c")}
    rows = [
        tuple(v for n, v in row.items() if (n in ours.get(name, row)) and not n.startswith("id"))
        for row in outcome.rows
    ]
    return sorted(rows, key=repr)


@pytest.mark.parametrize("name", GOLDEN)
def test_reference(name: str) -> None:
    assert said(name, on_reference(GOLDEN[name])) == sorted(EXPECTED[name], key=repr)


@pytest.mark.parametrize("cut", [WHOLE, ONE_BY_ONE], ids=("whole", "one by one"))
@pytest.mark.parametrize("name", GOLDEN)
def test_kernels(name: str, cut: Cut) -> None:
    outcome = on_kernels(GOLDEN[name], cut)
    assert said(name, outcome) == sorted(EXPECTED[name], key=repr)
    assert_grammatical(outcome)
    assert not outcome.letters


@pytest.mark.parametrize("name", GOLDEN)
def test_spark(name: str, spark: Any) -> None:
    outcome = on_spark(GOLDEN[name], Cut(file_rows=2, group_rows=2, max_rows=4, buckets=2), spark)
    assert said(name, outcome) == sorted(EXPECTED[name], key=repr)
