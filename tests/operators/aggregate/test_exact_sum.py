"""Sums of doubles: equal to math.fsum under any cut and any order of merging."""

from __future__ import annotations

import math
import random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.kernels.duck import query
from penstock.operators.aggregate import exact_sum

NAMES = [column for column, _ in exact_sum.columns("s")]


def partial(numbers: list[float | None]) -> pa.Table:
    rows = "numbers"
    for column, sql in exact_sum.layers("s", "x"):
        rows = f"(SELECT *, {sql} AS {column} FROM {rows})"
    columns = ", ".join(f'{sql} AS "{c}"' for sql, c in zip(exact_sum.partial("s"), NAMES))
    answer = query(f"SELECT {columns} FROM {rows}", numbers=pa.table({"x": pa.array(numbers, pa.float64())}))
    return exact_sum.packed(answer, "s")


def merged(parts: list[pa.Table]) -> pa.Table:
    rows = "parts"
    for column, sql in exact_sum.merge_layers("s"):
        rows = f"(SELECT *, {sql} AS {column} FROM {rows})"
    columns = ", ".join(f'{sql} AS "{c}"' for sql, c in zip(exact_sum.merge("s"), NAMES))
    answer = query(f"SELECT {columns} FROM {rows}", parts=pa.concat_tables(parts))
    return exact_sum.compact(exact_sum.packed(answer, "s"), "s")


def total(part: pa.Table) -> float | None:
    value: float | None = exact_sum.values(part, "s")[0].as_py()
    return value


def same(got: float | None, expected: float) -> bool:
    return got is not None and math.isclose(got, expected, rel_tol=1e-15, abs_tol=0.0)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([1e16, 1.0, -1e16], 1.0),
        ([1e300, 1e100, 1.0, -1e300, -1e100], 1.0),
        ([0.1] * 10, 1.0),
        ([5e-324, 5e-324], 1e-323),
        ([1.7e308, 1.7e308, -1.7e308], 1.7e308),
        ([2.0**51, 2.0**-60, -(2.0**51)], 2.0**-60),
        ([-0.0, 0.0], 0.0),
        ([float("inf"), 1.0], float("inf")),
        ([float("-inf"), 1e300], float("-inf")),
    ],
)
def test_hard_sums(numbers: list[float], expected: float) -> None:
    assert total(partial([*numbers])) == expected
    assert total(merged([partial([x]) for x in numbers])) == expected


def test_what_is_no_number() -> None:
    assert total(partial([])) is None
    assert total(partial([None])) is None
    assert total(merged([partial([None]), partial([2.5])])) == 2.5
    for numbers in ([float("nan"), 1.0], [float("inf"), float("-inf")]):
        assert math.isnan(total(partial([*numbers])) or 0.0)
        assert math.isnan(total(merged([partial([x]) for x in numbers])) or 0.0)


def test_too_large_a_sum_is_an_error() -> None:
    with pytest.raises(OverflowError):
        total(partial([1.7e308, 1.7e308]))


@pytest.mark.parametrize("scale", [1e-30, 1e30, 1e300, 1e-310])
def test_extreme_numbers_take_little_room(scale: float) -> None:
    dice = random.Random(7)
    numbers = [dice.uniform(-1, 1) * scale for _ in range(2_000)]
    part = merged([partial([*numbers[:900]]), partial([*numbers[900:]])])
    assert len(part["s_rest"][0].as_py() or []) < 8
    assert total(part) == math.fsum(numbers)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.one_of(st.floats(-1e300, 1e300), st.floats(-1e6, 1e6)), min_size=1, max_size=30),
    st.integers(0, 2**32),
)
def test_any_cut_and_any_tree_of_merges(numbers: list[float], seed: int) -> None:
    dice = random.Random(seed)
    shuffled = dice.sample(numbers, len(numbers))
    parts = []
    while shuffled:
        size = dice.randint(1, len(shuffled))
        parts.append(partial([*shuffled[:size]]))
        shuffled = shuffled[size:]
    while len(parts) > 1:
        chosen = dice.randint(2, len(parts))
        dice.shuffle(parts)
        parts = [merged(parts[:chosen]), *parts[chosen:]]
    assert same(total(parts[0]), math.fsum(numbers))
    assert total(parts[0]) == total(partial([*numbers]))  # To the last bit.
