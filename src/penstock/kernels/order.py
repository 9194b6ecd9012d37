"""Numbers for the values of rows, by which they can be sorted: a million of them takes some tens of milliseconds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.hash import whole_numbers
from penstock.kernels.index import Positions, by_bits

Codes = npt.NDArray[np.uint64]

_LARGEST = 1 << 64
_BLOCK = 1 << 15


def code_order(codes: Codes) -> Positions:
    """The order that sorts numbers; equal ones stay in the order in which they are.

    >>> code_order(np.array([1 << 40, 7, 1 << 40, 3], np.uint64)).tolist()
    [3, 1, 0, 2]
    """
    return by_bits(codes, 0, int(codes.max(initial=0)).bit_length())


def sortable(t: pa.DataType) -> bool:
    """Whether `codes_of` takes a column of this type. Of floating numbers, different ones can be equal."""
    texts = pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_binary(t) or pa.types.is_large_binary(t)
    return bool(_whole(t) or texts)


def codes_of(columns: list[pa.Array]) -> Codes:
    """A number for each row, equal for rows with equal values. It sorts by the first column, if that is of whole
    numbers, nulls first, and within it by the others.

    >>> codes_of([pa.array([8, 7, 8]), pa.array(["x", "x", None])]).tolist()
    [3, 1, 2]
    """
    return numbered(columns)[0]


def numbered(columns: list[pa.Array]) -> tuple[Codes, int]:
    """The same, and a number that all of them are below; it is small where values are from small ranges.

    >>> codes, size = numbered([pa.array([8, 7, 8]), pa.array(["x", "x", None])])
    >>> codes.tolist(), size
    ([3, 1, 2], 4)
    """
    if (at_once := _at_once(columns)) is not None:
        return at_once
    codes, size = np.zeros(len(columns[0]) if columns else 0, np.uint64), 1
    for column in columns:
        found, many = _codes(column)
        if size * many > _LARGEST:
            codes, size = _ranks(codes)
        if size * many > _LARGEST:
            found, many = _ranks(found)
        codes = found if size == 1 else codes * np.uint64(many) + found
        size *= many
    return codes, size


def _at_once(columns: list[pa.Array]) -> tuple[Codes, int] | None:
    """Numbers for columns of whole numbers without nulls from ranges that are not too large; else None."""
    spans, size = [], 1
    for column in columns:
        t = column.type
        signed = pa.types.is_signed_integer(t) or pa.types.is_timestamp(t) or pa.types.is_date32(t)
        if not signed or column.null_count or not len(column):
            return None
        values = np.asarray(column.view(t if pa.types.is_integer(t) else f"int{t.bit_width}"))
        low, high = int(values.min()), int(values.max())
        size *= high - low + 1
        if size > _LARGEST >> 2:
            return None
        spans.append((values, low, high - low + 1))
    if not spans:
        return None
    codes = np.empty(len(columns[0]), np.int64)
    # In blocks that stay in the cache.
    for first in range(0, len(codes), _BLOCK):
        block = codes[first : first + _BLOCK]
        for at, (values, low, many) in enumerate(spans):
            some = values[first : first + _BLOCK]
            if at:
                block *= many
                block += some
                block -= low
            else:
                np.subtract(some, low, out=block, dtype=np.int64)
    return codes.view(np.uint64), size


def _codes(column: pa.Array) -> tuple[Codes, int]:
    """A number for each value of a column, and how many numbers there may be."""
    if not _whole(column.type):
        coded = column.dictionary_encode()
        indices = pc.fill_null(pc.add(coded.indices.cast(pa.int64()), 1), 0)
        return np.asarray(indices).view(np.uint64), len(coded.dictionary) + 1
    if not len(column):
        return np.zeros(0, np.uint64), 1
    whole = whole_numbers(pa.chunked_array([column])).view(np.int64)
    low, high = int(whole.min()), int(whole.max())
    codes: Codes = whole.view(np.uint64) - np.uint64(low % _LARGEST)
    if not column.null_count:
        return codes, high - low + 1
    many = high - low + 1
    if many == _LARGEST:
        codes, many = _ranks(codes)
    codes = codes + np.uint64(1)
    codes[np.asarray(column.is_null())] = 0
    return codes, many + 1


def _ranks(codes: Codes) -> tuple[Codes, int]:
    """The same order in as few numbers as can be."""
    order = code_order(codes)
    ordered = codes[order]
    steps = np.concatenate([[0], np.cumsum(ordered[1:] != ordered[:-1])])
    ranks = np.empty(len(codes), np.uint64)
    ranks[order] = steps
    return ranks, int(steps[-1]) + 1


def _whole(t: pa.DataType) -> bool:
    return bool(pa.types.is_integer(t) or pa.types.is_timestamp(t) or pa.types.is_date32(t) or pa.types.is_boolean(t))
