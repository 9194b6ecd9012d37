"""Hashes of keys: stable, spread, and equal exactly where values count as equal."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.kernels.hash import hash_column, hash_keys, is_exact, mix

NULL = "6a09e667f3bcc909"
#: Buckets of checkpoints depend on these: a change needs a new format of checkpoints.
GOLDEN: list[tuple[pa.DataType, list[Any], str]] = [
    (pa.int64(), [0, 1, -1, None], f"e220a8397b1dcdaf 910a2dec89025cc1 e4d971771b652c20 {NULL}"),
    (pa.float64(), [0.0, 1.5, float("nan"), None], f"e220a8397b1dcdaf d6dab18e1392608a c72971d82e15bb46 {NULL}"),
    (pa.bool_(), [True, False, None], f"910a2dec89025cc1 e220a8397b1dcdaf {NULL}"),
    (pa.date32(), [dt.date(2013, 1, 1), None], f"c2d4b737258faae5 {NULL}"),
    (pa.timestamp("us"), [dt.datetime(2013, 1, 1), None], f"8d6361c2fbea4cef {NULL}"),
    (
        pa.string(),
        ["", "a", "segment 7", "Zürich", "x" * 600, None],
        f"e220a8397b1dcdaf 2e7e125fb3dd3121 3e8d0ff46fe47f56 de80f94011bc4df8 3f3ca0acc2d06c16 {NULL}",
    ),
    (pa.binary(), [b"", b"\x00\xff", None], f"e220a8397b1dcdaf 59f730d89fe0d995 {NULL}"),
    (
        pa.decimal128(10, 2),
        [Decimal("0.00"), Decimal("12.50"), Decimal("-0.01"), None],
        f"48218226ff3cd4bf 8ab610ff0c07ad28 e8ba9f99ca933538 {NULL}",
    ),
]


def shown(column: pa.Array) -> str:
    return " ".join(f"{h:016x}" for h in hash_column(column))


@pytest.mark.parametrize(("kind", "values", "hashes"), GOLDEN, ids=[str(t) for t, _, _ in GOLDEN])
def test_hashes_never_change(kind: pa.DataType, values: list[Any], hashes: str) -> None:
    assert shown(pa.array(values, kind)) == hashes


TEXTS = st.lists(st.none() | st.binary(max_size=40) | st.binary(min_size=500, max_size=530), max_size=30)


@given(TEXTS, st.integers(0, 30), st.integers(0, 30))
def test_a_text_hashes_alike_wherever_it_lies(values: list[bytes | None], start: int, length: int) -> None:
    column = pa.array(values, pa.binary())
    alone = [hash_column(pa.array([v], pa.binary()))[0] for v in values]
    assert hash_column(column).tolist() == alone
    part = pa.chunked_array([column.slice(start, length), column.slice(0, start)])
    assert hash_column(part).tolist() == [*alone[start : start + length], *alone[:start]]
    for kind in (pa.large_binary(), pa.binary_view()):
        assert hash_column(column.cast(kind)).tolist() == alone
    assert hash_column(column.dictionary_encode()).tolist() == alone


@given(st.sets(st.binary(max_size=24), min_size=2))
def test_different_texts_hash_differently(values: set[bytes]) -> None:
    """Also those that differ in length alone, or in zero bytes at their end."""
    padded = values | {v + b"\0" for v in values}
    assert len(set(hash_column(pa.array(sorted(padded), pa.binary())).tolist())) == len(padded)


def test_integers_of_all_widths_hash_alike_and_apart() -> None:
    values = list(range(-128, 128))
    widths = [hash_column(pa.array(values, t)).tolist() for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64())]
    assert all(w == widths[0] for w in widths)
    assert len(set(widths[0])) == len(values)


def test_numbers_that_are_equal_hash_alike() -> None:
    quiet, other = np.array([0x7FF8000000000000, 0xFFF8000000000001], np.uint64).view(np.float64)
    assert len(set(hash_column(pa.array([quiet, other])).tolist())) == 1
    assert len(set(hash_column(pa.array([0.0, -0.0])).tolist())) == 1
    assert hash_column(pa.array([1.5], pa.float32())) == hash_column(pa.array([1.5], pa.float64()))
    narrow, wide = pa.array([Decimal("1.25")], pa.decimal128(4, 2)), pa.array([Decimal("1.25")], pa.decimal128(30, 2))
    assert hash_column(narrow) == hash_column(wide)


@given(st.lists(st.integers(0, 2**64 - 1), unique=True, min_size=1))
def test_mixing_is_a_bijection(values: list[int]) -> None:
    """Undone by the inverse multipliers, so no two inputs can share an output."""
    x = mix(np.array(values, np.uint64))
    for shift, factor in ((31, 0x319642B2D24D8EC3), (27, 0x96DE1B173F119089), (30, 1)):
        y = x
        for _ in range(64 // shift):
            y = x ^ (y >> np.uint64(shift))
        x = y * np.uint64(factor)
    assert x.tolist() == values


def test_several_keys_are_told_from_their_swap() -> None:
    table = pa.table({"a": [1, 2, None], "b": [2, 1, None]})
    one, other = hash_keys(table, ["a", "b"]), hash_keys(table, ["b", "a"])
    assert one[0] != other[0] and one[0] == other[1]
    assert len(set(one.tolist())) == 3
    assert hash_keys(table, []).tolist() == [0, 0, 0]


def test_only_one_key_of_a_word_is_exact() -> None:
    assert is_exact([pa.int32()]) and is_exact([pa.timestamp("us")]) and is_exact([pa.bool_()])
    assert not any(map(is_exact, ([pa.string()], [pa.float64()], [pa.int32(), pa.int32()], [pa.decimal128(5, 2)])))
