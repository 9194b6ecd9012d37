"""Sums of floating numbers that do not depend on the order of the numbers.

A binary floating number is an integer times a power of two, and integers add exactly. So each number is cut into
*bins*, 60 bits apart: bin b counts units of 2^(60 b - 12). Every double touches at most two neighbouring bins, and
all doubles between 1e-6 and 2e15 (and most others of that size or below) live in bins 0 and -1, which are two plain
128-bit integer columns that DuckDB sums at almost the speed of a floating sum. What does not fit there, be it huge,
tiny, infinite or not a number, goes into a short list of (bin, units), usually null.

Three columns make a partial sum: `high` (bin 0), `low` (bin -1), `rest` (other bins). Merging adds them bin by bin,
so a total is the same to the last bit under any cut into epochs and any order of merging; a compensated pair of
doubles, twice as fast to merge, cannot promise that: 1e300 + 1e100 + 1 - 1e300 - 1e100 already needs three.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

UNITS = pa.decimal128(38, 0)
REST = pa.list_(pa.struct([("bin", pa.int16()), ("units", UNITS)]))

# Bins that no finite number reaches count the infinities and the not-a-numbers.
_INFINITY, _MINUS_INFINITY, _NAN = 1000, 1001, 1002
_LOWEST_EXPONENT = 60 * -20 - 12  # Below every bin of a double, so that all units become whole numbers.
_BIN = f"{2**60}e0"


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
    x, high, scaled, low = (f'"{name}_{part}"' for part in ("x", "high", "scaled", "low"))
    return (
        (x, f"CAST({argument} AS DOUBLE)"),
        (high, f"TRY_CAST({x} * 4096e0 AS BIGINT)"),
        (scaled, f"({x} * 4096e0 - CAST({high} AS DOUBLE)) * {_BIN}"),
        (low, f"CAST({scaled} AS BIGINT)"),
    )


def partial(name: str) -> tuple[str, str, str]:
    """Aggregates over the columns of `layers`, one for each of `columns`."""
    x, high, scaled, low = (f'"{name}_{part}"' for part in ("x", "high", "scaled", "low"))
    # What is left below bin -1 is still a double: a few low bits of x.
    left = f"CASE WHEN {high} IS NULL THEN {x} ELSE ({scaled} - {low}) * {2.0**-72!r} END"
    odd = f"{x} IS NOT NULL AND ({high} IS NULL OR {scaled} <> {low})"
    return (
        f"CAST(sum({high}) AS DECIMAL(38,0))",
        f"CAST(sum({low}) AS DECIMAL(38,0))",
        _unless_null(f"list({left}) FILTER (WHERE {odd})", lambda numbers: _total(_bins(numbers))),
    )


def merge(name: str) -> tuple[str, str, str]:
    """Aggregates over partial rows, one for each of `columns`."""
    rest = f'"{name}_rest"'
    return (
        f'sum("{name}")',
        f'sum("{name}_low")',
        _unless_null(f"list({rest}) FILTER (WHERE {rest} IS NOT NULL)", lambda lists: _total(f"flatten({lists})")),
    )


def resolve(high: int | None, low: int | None, rest: Sequence[dict[str, Any]]) -> float:
    """The nearest double to a sum of any size. Raises OverflowError if it is finite and too large for a double.

    >>> resolve(4096, None, [{"bin": 16, "units": 3}, {"bin": 16, "units": -3}])
    1.0
    """
    bins = {_INFINITY: 0, _MINUS_INFINITY: 0, _NAN: 0}
    total = 0
    for b, units in ((0, high), (-1, low), *((r["bin"], r["units"]) for r in rest)):
        if b in bins:
            bins[b] += int(units or 0)
        else:
            total += int(units or 0) << (60 * b - 12 - _LOWEST_EXPONENT)
    if bins[_NAN] or (bins[_INFINITY] and bins[_MINUS_INFINITY]):
        return float("nan")
    if bins[_INFINITY] or bins[_MINUS_INFINITY]:
        return float("inf") if bins[_INFINITY] else float("-inf")
    # The quotient of two Python integers is rounded once, subnormal results included.
    return total / (1 << -_LOWEST_EXPONENT)


def values(partials: pa.Table, name: str) -> pa.Array:
    """The sums of a whole table, one double per row. Raises OverflowError as `resolve` does.

    The low bin is first brought within half a unit of the high one, since large parts of opposite sign would cancel
    after they were rounded. The loop runs over groups with extreme numbers only, never over events.
    """
    high, low, rest = (partials.column(column).combine_chunks() for column, _ in columns(name))
    if not len(high):
        return pa.array([], pa.float64())
    (high_top, high_bits), (low_top, low_bits) = _words(high), _words(low)
    remainder = (low_bits & np.uint64(2**60 - 1)).astype(np.int64)
    up = remainder >= 2**59
    carry = low_top * 16 + (low_bits >> np.uint64(60)).astype(np.int64) + up
    whole = high_bits.view(np.int64)
    sums = (whole + carry).astype(np.float64) * 2.0**-12 + (remainder - (up.astype(np.int64) << 60)) * 2.0**-72
    fits = (high_top == whole >> 63) & (np.abs(whole) < 2**62) & (np.abs(low_top) < 2**56)
    missing, odd = _nulls(high), ~_nulls(rest)
    rows = np.flatnonzero(odd | ~(fits | missing))
    if len(rows):
        some = [column.take(pa.array(rows)).to_pylist() for column in (high, low, rest)]
        sums[rows] = [resolve(h, below, r or ()) for h, below, r in zip(*some)]
    return pa.array(sums, mask=missing & ~odd)


def _words(units: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """The upper and lower 64 bits of a decimal column; nulls are zero."""
    whole = pc.fill_null(units, pa.scalar(0, UNITS))
    words = np.frombuffer(whole.buffers()[1], np.int64).reshape(-1, 2)[whole.offset : whole.offset + len(whole)]
    return words[:, 1], np.ascontiguousarray(words[:, 0]).view(np.uint64)


def _nulls(column: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(column.is_null())


def _unless_null(aggregate: str, then: Callable[[str], str]) -> str:
    """SQL: the null that it usually is costs nothing more; list functions over nulls would."""
    return f"CASE WHEN {aggregate} IS NOT NULL THEN {then(aggregate)} END"


def _bins(numbers: str) -> str:
    """SQL: a list of doubles (never zero) as a list of (bin, units). Scaled in two steps, as 2^1080 is no double."""
    kind = f"CASE WHEN isnan(v) THEN {_NAN} WHEN v > 0 THEN {_INFINITY} ELSE {_MINUS_INFINITY} END"
    number = f"CASE WHEN isfinite(v) THEN floor((log2(abs(v)) + 12) / 60) ELSE {kind} END"
    placed = f"list_transform({numbers}, lambda v: {{'v': v, 'bin': CAST({number} AS SMALLINT)}})"
    scaled = "p.v * pow(2e0, -30 * p.bin) * pow(2e0, 12 - 30 * p.bin)"
    scaled = f"CASE WHEN p.bin < {_INFINITY} THEN {scaled} ELSE 1e0 END"
    cut = f"list_transform({placed}, lambda p: {{'bin': p.bin, 'y': {scaled}}})"
    high = "{'bin': c.bin, 'units': CAST(CAST(c.y AS BIGINT) AS DECIMAL(38,0))}"
    below = f"CAST(CAST((c.y - CAST(CAST(c.y AS BIGINT) AS DOUBLE)) * {_BIN} AS BIGINT) AS DECIMAL(38,0))"
    low = f"{{'bin': CAST(c.bin - 1 AS SMALLINT), 'units': {below}}}"
    return f"flatten(list_transform({cut}, lambda c: [{high}, {low}]))"


def _total(bins: str) -> str:
    """SQL: a list of (bin, units) with each bin once, in order, empty bins left out."""
    numbers = f"list_sort(list_distinct(list_transform({bins}, lambda e: e.bin)))"
    units = f"list_sum(list_transform(list_filter({bins}, lambda e: e.bin = b), lambda e: e.units))"
    return f"list_filter(list_transform({numbers}, lambda b: {{'bin': b, 'units': {units}}}), lambda t: t.units <> 0)"
