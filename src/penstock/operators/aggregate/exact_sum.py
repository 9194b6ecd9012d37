"""Sums of floating numbers that do not depend on the order of the numbers.

A binary floating number is an integer times a power of two, and integers add exactly. So to add, each number is cut
into *bins*: the high bin counts units of 2^-12, the low bin units of 2^-72. All doubles between 1e-6 and 2e15, and most
smaller ones, are two whole numbers in these bins. What does not fit there, be it huge, tiny, infinite or not a number,
goes into a list, usually null.

Between additions a sum is kept as doubles: the nearest one, `low`, which is what is missing from that, and `rest`, the
list. The exact sum of all three is meant. A number that is alone in its group is its own sum and needs no bins, and two
doubles hold what 106 bits can. Merging cuts them into bins again and joins the lists, so a total is the same to the
last bit under any cut into epochs and any order of merging. Adding pairs of doubles themselves could not promise that:
1e300 + 1e100 + 1 - 1e300 - 1e100 already needs three.
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
    return ((name, pa.float64()), (f"{name}_low", pa.float64()), (f"{name}_rest", REST))


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
    """Aggregates over the columns of `layers`, one for each of `columns`: two bins and a list, which `packed` packs."""
    _, high, _, low = _derived(name)
    left, odd = _left(name)
    return (
        f"CAST(sum({high}) AS DECIMAL(38,0))",
        f"CAST(sum({low}) AS DECIMAL(38,0))",
        f"list({left}) FILTER (WHERE {odd})",
    )


def merge_layers(name: str) -> tuple[tuple[str, str], ...]:
    """As `layers`, for partial rows: both doubles are cut into bins."""
    both = (layers(part, f'"{part}"') for part in (name, f"{name}_low"))
    return tuple(pair for depth in zip(*both) for pair in depth)


def merge(name: str) -> tuple[str, str, str]:
    """Aggregates over partial rows and `merge_layers`, one for each of `columns`, as `partial` has them."""
    (_, high, _, low), (_, high_too, _, low_too) = _derived(name), _derived(f"{name}_low")
    lists = [f"list({left}) FILTER (WHERE {odd})" for left, odd in (_left(name), _left(f"{name}_low"))]
    rest = f'"{name}_rest"'

    def total(one: str, other: str) -> str:
        both = f"COALESCE(sum({one}), 0) + COALESCE(sum({other}), 0)"
        return f'CAST(CASE WHEN count("{name}") > 0 THEN {both} END AS DECIMAL(38,0))'

    lists.append(f"flatten(list({rest}) FILTER (WHERE {rest} IS NOT NULL))")
    return total(high, high_too), total(low, low_too), f"flatten([{', '.join(lists)}])"


def merge_bins(name: str) -> tuple[str, str, str]:
    """Aggregates over rows of bins, which have not been packed."""
    high, low, rest = (f'"{column}"' for column, _ in columns(name))
    return (f"sum({high})", f"sum({low})", f"flatten(list({rest}) FILTER (WHERE {rest} IS NOT NULL))")


def packed(partials: pa.Table, name: str) -> pa.Table:
    """Bins as doubles; a table that has these already stays as it is."""
    if not pa.types.is_decimal(partials.schema.field(name).type):
        return partials
    high, low, rest = (partials.column(column).combine_chunks() for column, _ in columns(name))
    (high_top, high_bits), (low_top, low_bits) = _words(high), _words(low)
    whole = high_bits.view(np.int64)
    units, up = _carried(low_bits)
    total = whole + low_top * 16 + up
    sums, lows, third = as_doubles(total, units)
    fits = (high_top == whole >> 63) & (np.abs(whole) < 2**61) & (np.abs(low_top) < 2**56)
    listed = np.asarray(pc.fill_null(pc.list_value_length(rest), 0)) > 0
    missing = np.asarray(high.is_null()) & ~listed
    further = {int(i): [float(third[i])] for i in np.flatnonzero(third)}
    for i in np.flatnonzero(~fits & ~missing).tolist():
        exact = (int(high[i].as_py() or 0) << (_SCALE - 12)) + (int(low[i].as_py() or 0) << (_SCALE - 72))
        parts = [*_cut(exact), 0.0, 0.0]
        sums[i], lows[i], further[i] = parts[0], parts[1], [p for p in parts[2:] if p]
    if further or (listed != ~np.asarray(rest.is_null())).any():
        lists = [None] * len(rest) if not listed.any() else rest.to_pylist()
        for i, parts in further.items():
            lists[i] = [*(lists[i] or ()), *parts]
        rest = pa.array([found or None for found in lists], REST)
    made = (pa.array(sums, mask=missing), pa.array(lows, mask=missing), rest.cast(REST))
    for (column, type_), values in zip(columns(name), made):
        partials = partials.set_column(partials.schema.get_field_index(column), pa.field(column, type_), values)
    return partials


def summed(
    numbers: npt.NDArray[np.float64],
    starts: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
    further: tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]] = (np.zeros(0, np.int64), np.zeros(0)),
) -> tuple[pa.Array, pa.Array, pa.Array] | None:
    """The sums of successive numbers, from each of `starts` on so many; None if they are too large to be added here.

    `further` are sums, by position, and numbers that go into their lists.
    """
    sums = numbers[starts] + 0.0  # Makes -0.0 the same as 0.0.
    lows = np.zeros(len(sums))
    several = sizes > 1
    if several.any():
        some = sizes[several]
        x = numbers[np.repeat(several, sizes)]
        at = np.cumsum(some) - some
        with np.errstate(over="ignore", invalid="ignore"):
            high = np.rint(x * 4096.0)
            fits = np.abs(high) < 2.0**51 * 4096.0
            high[~fits] = 0.0
            scaled = np.where(fits, (x * 4096.0 - high) * 2.0**60, 0.0)
        low = scaled.astype(np.int64)
        below = scaled - low
        if float(np.abs(high).max()) * int(some.max()) >= 2.0**61:
            return None
        # A sum of whole low bins would need more than 64 bits.
        tops = np.add.reduceat(low >> 30, at)
        bits = np.add.reduceat(low & (2**30 - 1), at)
        tops += bits >> 30
        carry = (tops + 2**29) >> 30
        total = np.add.reduceat(high.astype(np.int64), at) + carry
        units = ((tops - (carry << 30)) << 30) + (bits & (2**30 - 1))
        sums[several], lows[several], third = as_doubles(total, units)
        odd = ~fits | (below != 0)
        if odd.any() or third.any():
            groups = np.flatnonzero(several)
            left = np.where(fits, below * 2.0**-72, x)[odd]
            owners = (further[0], np.repeat(groups, some)[odd], groups[third != 0])
            further = np.concatenate(owners), np.concatenate([further[1], left, third[third != 0]])
    rest = _lists(len(sums), *further) if len(further[0]) else pa.nulls(len(sums), REST)
    return pa.array(sums), pa.array(lows), rest


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
    if max(map(abs, numbers)) > 1e290:  # So large that fsum might overflow on the way.
        return _cut(sum(map(_whole, numbers)))
    short: list[float] = []
    # Each step finds what all the steps before have missed; fsum is exact, then rounded.
    while found := math.fsum([*numbers, *(-s for s in short)]):
        short.append(found)
    return short


def resolve(nearest: float | None, low: float | None, rest: Sequence[float]) -> float:
    """The nearest double to a sum of any size. Raises OverflowError if it is finite and too large for a double.

    >>> resolve(1.0, 0.0, [1e300, 1e100, -1e300, -1e100])
    1.0
    """
    numbers = [nearest or 0.0, low or 0.0, *rest]
    if not all(map(math.isfinite, numbers)):
        return _of_infinities(numbers)
    return _nearest(sum(map(_whole, numbers)))


def values(partials: pa.Table, name: str) -> pa.Array:
    """The sums of a whole table, one double per row. Raises OverflowError as `resolve` does.

    The loop runs over groups with extreme numbers only, never over events.
    """
    if not partials.num_rows:
        return pa.array([], pa.float64())
    nearest, rest = (partials.column(c).combine_chunks() for c in (name, f"{name}_rest"))
    if rest.null_count == len(rest):
        return nearest
    rows = _extreme(partials, name)
    sums = nearest.to_numpy(zero_copy_only=False).copy()
    sums[rows] = [resolve(*parts) for parts in _parts(partials, name, rows)]
    missing = np.asarray(nearest.is_null())
    missing[rows] = False
    return pa.array(sums, mask=missing)


def too_large(partials: pa.Table, name: str) -> npt.NDArray[np.bool_]:
    """Which sums of a table are too large for a double."""
    rows = _extreme(partials, name)
    found = np.zeros(partials.num_rows, dtype=bool)
    for row, parts in zip(rows, _parts(partials, name, rows)):
        try:
            resolve(*parts)
        except OverflowError:
            found[row] = True
    return found


def _extreme(partials: pa.Table, name: str) -> npt.NDArray[np.int64]:
    """The rows whose sums have to be resolved from all their parts."""
    return np.flatnonzero(np.asarray(partials.column(f"{name}_rest").is_valid()))


def _parts(
    partials: pa.Table, name: str, rows: npt.NDArray[np.int64]
) -> list[tuple[float | None, float | None, Sequence[float]]]:
    nearest, low, rest = (partials.column(c).take(pa.array(rows)).to_pylist() for c, _ in columns(name))
    return [(n, below, r or ()) for n, below, r in zip(nearest, low, rest)]


def _carried(bits: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The lower 64 bits of low bins, within half a unit of the high one, and what is carried to that."""
    remainder = (bits & np.uint64(2**60 - 1)).astype(np.int64)
    up = remainder >= 2**59
    return remainder - (up.astype(np.int64) << 60), (bits >> np.uint64(60)).astype(np.int64) + up


def as_doubles(
    high: npt.NDArray[np.int64], low: npt.NDArray[np.int64], units: tuple[float, float] = (2.0**-12, 2.0**-72)
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Bins as three doubles with the same exact sum. Where the third is 0, the first is the nearest to it.

    Each part is a double exactly, and `two_sum` loses nothing.
    """
    upper, fine = (high >> 30) << 30, (low >> 30) << 30
    parts = [bits.astype(np.float64) for bits in (upper, high - upper, fine, low - fine)]
    first, second = two_sum(parts[0] * units[0], parts[1] * units[0])
    third, fourth = two_sum(parts[2] * units[1], parts[3] * units[1])
    middle, lower = two_sum(second, third)
    lower, least = two_sum(lower, fourth)
    middle, lower = two_sum(middle, lower)
    nearest, middle = two_sum(first, middle)
    middle, lower = two_sum(middle, lower)
    nearest, middle = two_sum(nearest, middle)
    middle, lower = two_sum(middle, lower)
    # `least` is what 160 bits do not hold: never anything of whole numbers as small as these.
    return nearest, middle, lower + least


def two_sum(
    a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The nearest double to each sum, and the error of that."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _lists(rows: int, owner: npt.NDArray[np.int64], numbers: npt.NDArray[np.float64]) -> pa.Array:
    """A list for each row with the numbers that it owns; null for those without."""
    order = np.argsort(owner, kind="stable")
    counts = np.bincount(owner, minlength=rows)
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array(numbers[order]), mask=pa.array(counts == 0))


def _cut(exact: int) -> list[float]:
    """A few doubles whose exact sum is so many units of 2^-1074."""
    found: list[float] = []
    while exact:
        found.append(math.copysign(_LARGEST, exact) if abs(exact) > _whole(_LARGEST) else _nearest(exact))
        exact -= _whole(found[-1])
    return found


def _left(name: str) -> tuple[str, str]:
    """What is left of a number below the low bin, still a double (a few low bits), and whether there is any."""
    x, high, scaled, low = _derived(name)
    left = f"CASE WHEN {high} IS NULL THEN {x} ELSE ({scaled} - {low}) * {2.0**-72!r} END"
    return left, f"{x} IS NOT NULL AND ({high} IS NULL OR {scaled} <> {low})"


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
