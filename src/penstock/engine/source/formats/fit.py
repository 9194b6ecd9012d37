"""Whether values of one Arrow type may stand for a declared type, and the conversion: never rounded, never guessed."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import UserError
from penstock.kernels.ticks import calendar
from penstock.pattern.types import canonical_type, type_text

FINER = "is finer than a microsecond"
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
        return Fit.SURE if found.unit == "us" else Fit.CHECKED
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


def convert(
    column: pa.ChunkedArray, wanted: pa.DataType, finer: Mask | None = None
) -> tuple[pa.ChunkedArray, Mask | None]:
    """The column in the declared type, and a mask of the values that do not fit (null in the column), if any.

    `finer` marks values that were finer than a microsecond before they were read.
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    bad: Mask | None = None
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        finer = _finer(column)
    if finer is not None:
        column, bad = _without(column, finer)
    if column.type != wanted:
        try:
            column = _cast(column, wanted)
        except pa.ArrowInvalid:
            values = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
            found = np.zeros(len(values), bool)
            _blame(values, wanted, 0, found)
            kept, _ = _without(pa.chunked_array([values]), found)
            column, bad = _cast(kept, wanted), found if bad is None else bad | found
    if _has_calendar(wanted) and (beyond := _beyond(column)) is not None:
        column, _ = _without(column, beyond)
        bad = beyond if bad is None else bad | beyond
    return column, bad


def misfit_text(found: pa.DataType, wanted: pa.DataType) -> str:
    """What is wrong with values of one type that do not fit another."""
    if pa.types.is_timestamp(found) and found.unit == "ns":
        return FINER
    return f"does not fit {type_text(wanted)}"


def _without(column: pa.ChunkedArray, bad: Mask) -> tuple[pa.ChunkedArray, Mask | None]:
    """The column with nulls for the values that do not fit."""
    if not bad.any():
        return column, None
    return pc.if_else(pa.array(~bad), column, pa.scalar(None, column.type)), bad


def _finer(column: pa.ChunkedArray) -> Mask:
    """Which nanoseconds are between two microseconds."""
    ticks = column.cast(pa.timestamp("ns")).cast(pa.int64())
    filled = pc.fill_null(ticks, 0) if column.null_count else ticks
    found: Mask = filled.to_numpy() % 1_000 != 0
    return found


def _has_calendar(wanted: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(wanted) or pa.types.is_date(wanted))


def _beyond(column: pa.ChunkedArray) -> Mask | None:
    """Which moments lie before the year 1 or behind the year 9999: no pattern could name them."""
    low, high = calendar(column.type)
    ticks = column.cast(pa.int64() if pa.types.is_timestamp(column.type) else pa.int32())
    ends = pc.min_max(ticks)
    if ends["min"].as_py() is None or (low <= ends["min"].as_py() and ends["max"].as_py() <= high):
        return None
    found: Mask = pc.fill_null(pc.or_(pc.less(ticks, low), pc.greater(ticks, high)), False).to_numpy()
    return found


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
        return column.cast(pa.timestamp(column.type.unit)).cast(wanted)
    if pa.types.is_decimal(wanted) and pa.types.is_integer(column.type):
        # By way of a type that has room for every integer: the direct way looks at types only, not at values.
        return column.cast(pa.decimal256(76, wanted.scale)).cast(wanted)
    return column.cast(wanted)


def _casts(value: pa.Array, wanted: pa.DataType) -> bool:
    try:
        _cast(pa.chunked_array([value]), wanted)
    except pa.ArrowInvalid:
        return False
    return True
