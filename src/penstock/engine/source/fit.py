"""Whether values of one Arrow type may stand for a declared type, and the conversion: never rounded, never guessed."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.algebra.types import canonical_type
from penstock.engine.source.ticks import floor_to_microseconds
from penstock.errors import UserError

Mask = np.ndarray[Any, np.dtype[np.bool_]]


class Fit(Enum):
    """How a found type relates to a declared one."""

    SURE = "every value fits"
    CHECKED = "a value may be out of range: such an event is malformed"
    NEVER = "another kind of value: the schema has drifted"


def fit(found: pa.DataType, wanted: pa.DataType) -> Fit:
    """Whether a column of type `found` can be read as `wanted`.

    >>> fit(pa.int32(), pa.int64()).name, fit(pa.int64(), pa.int32()).name, fit(pa.string(), pa.int32()).name
    ('SURE', 'CHECKED', 'NEVER')
    """
    if pa.types.is_null(found):
        return Fit.SURE
    if pa.types.is_timestamp(found) and pa.types.is_timestamp(wanted):
        return Fit.SURE if found.unit in ("us", "ns") else Fit.CHECKED
    try:
        held = canonical_type(found)
    except UserError:
        return Fit.NEVER
    if held == wanted:
        return Fit.SURE
    whole, wide = pa.types.is_signed_integer, pa.types.is_floating
    if whole(held) and whole(wanted):
        return Fit.SURE if held.bit_width <= wanted.bit_width else Fit.CHECKED
    if whole(held) and wide(wanted):
        exact = 53 if wanted == pa.float64() else 24
        return Fit.SURE if held.bit_width <= exact else Fit.CHECKED
    if wide(held) and wide(wanted):
        return Fit.SURE if held.bit_width <= wanted.bit_width else Fit.NEVER
    if pa.types.is_decimal(wanted):
        if pa.types.is_decimal(held):
            room = wanted.precision - wanted.scale >= held.precision - held.scale and wanted.scale >= held.scale
            return Fit.SURE if room else Fit.CHECKED
        return Fit.CHECKED if whole(held) else Fit.NEVER
    if pa.types.is_decimal(held) and whole(wanted) and held.scale == 0:
        return Fit.CHECKED
    if pa.types.is_date(held) and pa.types.is_timestamp(wanted):
        return Fit.CHECKED
    return Fit.NEVER


def convert(column: pa.ChunkedArray, wanted: pa.DataType) -> tuple[pa.ChunkedArray, Mask | None]:
    """The column in the declared type, and a mask of the values that do not fit (null in the column), if any."""
    if column.type == wanted:
        return column, None
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    try:
        return _cast(column, wanted), None
    except pa.ArrowInvalid:
        values = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        bad = np.zeros(len(values), bool)
        _blame(values, wanted, 0, bad)
        kept = pc.if_else(pa.array(~bad), values, pa.scalar(None, values.type))
        return _cast(pa.chunked_array([kept]), wanted), bad


def _blame(values: pa.Array, wanted: pa.DataType, offset: int, bad: Mask) -> None:
    """Find the values that do not convert by halving: work grows with the bad values, not with all of them."""
    if _casts(values, wanted):
        return
    if len(values) == 1:
        bad[offset] = True
        return
    half = len(values) // 2
    _blame(values[:half], wanted, offset, bad)
    _blame(values[half:], wanted, offset + half, bad)


def _cast(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_timestamp(column.type) and pa.types.is_timestamp(wanted):
        if column.type.unit == "ns":
            return floor_to_microseconds(column)
        return column.cast(pa.timestamp(column.type.unit)).cast(wanted)
    return column.cast(wanted)


def _casts(value: pa.Array, wanted: pa.DataType) -> bool:
    try:
        _cast(pa.chunked_array([value]), wanted)
    except pa.ArrowInvalid:
        return False
    return True
