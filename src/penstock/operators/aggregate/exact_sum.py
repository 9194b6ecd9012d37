"""Sums of floating numbers that do not depend on the order of the numbers.

A binary floating number is an integer times a power of two, and integers add exactly. So each number is cut into
*bins*: the high bin counts units of 2^-12, the low bin units of 2^-72. All doubles between 1e-6 and 2e15, and most
smaller ones, are two whole numbers in these bins, in two columns of 128-bit integers that DuckDB sums almost as fast
as doubles. What does not fit there, be it huge, tiny, infinite or not a number, goes into a list, usually null.

Three columns make a partial sum: `high`, `low`, and `rest`, a list of doubles whose exact sum is meant. Merging adds
the bins and joins the lists, so a total is the same to the last bit under any cut into epochs and any order of
merging. A compensated pair of doubles cannot promise that: 1e300 + 1e100 + 1 - 1e300 - 1e100 already needs three.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

UNITS = pa.decimal128(38, 0)
REST = pa.list_(pa.float64())

_LARGEST = np.finfo(np.float64).max
_SCALE = 1074  # Every double is a whole number of 2^-1074.
_LONG = 8  # Lists beyond this length are compacted; a sum of two magnitudes needs about two doubles.


def columns(name: str) -> tuple[tuple[str, pa.DataType], ...]:
    """The columns that hold the partial sum called `name`.

    >>> [column for column, _ in columns("__p0")]
    ['__p0', '__p0_low', '__p0_rest']
    """
    return ((name, UNITS), (f"{name}_low", UNITS), (f"{name}_rest", REST))


def layers(name: str, argument: str) -> tuple[tuple[str, str], ...]:
    """Derived input columns, each needing the ones before it: nested selects, because DuckDB would otherwise compute
    the shared parts of the three aggregates again for each.

    A cast to BIGINT fails softly (null) for what lies beyond 2^51 or is not finite; the difference and its scaling
    by a power of two are exact.
    """
    x, high, scaled, low = _derived(name)
    return (
        (x, f"CAST({argument} AS DOUBLE)"),
        (high, f"TRY_CAST({x} * 4096e0 AS BIGINT)"),
        (scaled, f"({x} * 4096e0 - CAST({high} AS DOUBLE)) * {2**60}e0"),
        (low, f"CAST({scaled} AS BIGINT)"),
    )


def partial(name: str) -> tuple[str, str, str]:
    """Aggregates over the columns of `layers`, one for each of `columns`."""
    x, high, scaled, low = _derived(name)
    # What is left below the low bin is still a double: a few low bits of x.
    left = f"CASE WHEN {high} IS NULL THEN {x} ELSE ({scaled} - {low}) * {2.0**-72!r} END"
    odd = f"{x} IS NOT NULL AND ({high} IS NULL OR {scaled} <> {low})"
    return (
        f"CAST(sum({high}) AS DECIMAL(38,0))",
        f"CAST(sum({low}) AS DECIMAL(38,0))",
        f"list({left}) FILTER (WHERE {odd})",
    )


def merge(name: str) -> tuple[str, str, str]:
    """Aggregates over partial rows, one for each of `columns`."""
    high, low, rest = (f'"{column}"' for column, _ in columns(name))
    return (f"sum({high})", f"sum({low})", f"flatten(list({rest}) FILTER (WHERE {rest} IS NOT NULL))")


def compact(partials: pa.Table, name: str) -> pa.Table:
    """The same sums with short lists: without this, state would grow with the extreme numbers seen."""
    column = f"{name}_rest"
    rest = partials.column(column).combine_chunks()
    if rest.null_count == len(rest):
        return partials
    long = np.flatnonzero(np.asarray(pc.fill_null(pc.greater(pc.list_value_length(rest), _LONG), False)))
    if not len(long):
        return partials
    short = pa.array([shortened(numbers) for numbers in rest.take(pa.array(long)).to_pylist()], REST)
    place = np.arange(len(rest))
    place[long] = len(rest) + np.arange(len(long))
    joined = pa.concat_arrays([rest, short]).take(pa.array(place))
    return partials.set_column(partials.schema.get_field_index(column), partials.schema.field(column), joined)


def shortened(numbers: Sequence[float]) -> list[float]:
    """A few doubles with the same exact sum.

    >>> shortened([1e300, 1.0, 1e300, 1e-300, -1e300])
    [1e+300, 1.0, 1e-300]
    """
    if not all(map(math.isfinite, numbers)):
        return [_of_infinities(numbers)]
    short: list[float] = []
    left = sum(map(_whole, numbers)) if max(map(abs, numbers)) > 1e290 else None
    while left is None or left:
        if left is None:
            # Each step finds what all the steps before have missed; fsum is exact, then rounded.
            found = math.fsum([*numbers, *(-s for s in short)])
            if not found:
                return short
        else:
            # Numbers so large that fsum might overflow on the way.
            found = math.copysign(_LARGEST, left) if abs(left) > _whole(_LARGEST) else _nearest(left)
            left -= _whole(found)
        short.append(found)
    return short


def resolve(high: int | None, low: int | None, rest: Sequence[float]) -> float:
    """The nearest double to a sum of any size. Raises OverflowError if it is finite and too large for a double.

    >>> resolve(4096, None, [1e300, 1e100, -1e300, -1e100])
    1.0
    """
    if not all(map(math.isfinite, rest)):
        return _of_infinities(rest)
    bins = (int(high or 0) << (_SCALE - 12)) + (int(low or 0) << (_SCALE - 72))
    return _nearest(bins + sum(map(_whole, rest)))


def values(partials: pa.Table, name: str) -> pa.Array:
    """The sums of a whole table, one double per row. Raises OverflowError as `resolve` does.

    The low bin is first brought within half a unit of the high one, since large parts of opposite sign would cancel
    after they were rounded. The loop runs over groups with extreme numbers only, never over events.
    """
    if not partials.num_rows:
        return pa.array([], pa.float64())
    sums, missing, extreme = _from_bins(partials, name)
    rows = np.flatnonzero(extreme)
    if len(rows):
        sums[rows] = [resolve(*parts) for parts in _parts(partials, name, rows)]
    return pa.array(sums, mask=missing)


def too_large(partials: pa.Table, name: str) -> npt.NDArray[np.bool_]:
    """Which sums of a table are too large for a double."""
    _, _, extreme = _from_bins(partials, name)
    rows = np.flatnonzero(extreme)
    for row, parts in zip(rows, _parts(partials, name, rows)):
        try:
            resolve(*parts)
            extreme[row] = False
        except OverflowError:
            pass
    return extreme


def _from_bins(
    partials: pa.Table, name: str
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """The sums as far as two bins hold them; which are missing, and which have to be resolved from all their parts."""
    high, low, rest = (partials.column(column).combine_chunks() for column, _ in columns(name))
    (high_top, high_bits), (low_top, low_bits) = _words(high), _words(low)
    remainder = (low_bits & np.uint64(2**60 - 1)).astype(np.int64)
    up = remainder >= 2**59
    carry = low_top * 16 + (low_bits >> np.uint64(60)).astype(np.int64) + up
    whole = high_bits.view(np.int64)
    sums = (whole + carry).astype(np.float64) * 2.0**-12 + (remainder - (up.astype(np.int64) << 60)) * 2.0**-72
    fits = (high_top == whole >> 63) & (np.abs(whole) < 2**62) & (np.abs(low_top) < 2**56)
    missing, odd = _nulls(high), ~_nulls(rest)
    return sums, missing & ~odd, odd | ~(fits | missing)


def _parts(
    partials: pa.Table, name: str, rows: npt.NDArray[np.int64]
) -> list[tuple[int | None, int | None, Sequence[float]]]:
    high, low, rest = (partials.column(c).take(pa.array(rows)).to_pylist() for c, _ in columns(name))
    return [(h, below, r or ()) for h, below, r in zip(high, low, rest)]


def _derived(name: str) -> tuple[str, str, str, str]:
    return f'"{name}_x"', f'"{name}_high"', f'"{name}_scaled"', f'"{name}_bits"'


def _whole(number: float) -> int:
    """A finite double in units of 2^-1074."""
    numerator, denominator = number.as_integer_ratio()
    return numerator * ((1 << _SCALE) // denominator)


def _nearest(units: int) -> float:
    """The nearest double, rounded once, subnormal numbers included: so Python divides integers."""
    return units / (1 << _SCALE)


def _of_infinities(numbers: Sequence[float]) -> float:
    """The sum of numbers some of which are not finite."""
    return sum(n for n in numbers if not math.isfinite(n))


def _words(units: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """The upper and lower 64 bits of a decimal column; nulls are zero."""
    whole = pc.fill_null(units, pa.scalar(0, UNITS))
    words = np.frombuffer(whole.buffers()[1], np.int64).reshape(-1, 2)[whole.offset : whole.offset + len(whole)]
    return words[:, 1], np.ascontiguousarray(words[:, 0]).view(np.uint64)


def _nulls(column: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(column.is_null())
