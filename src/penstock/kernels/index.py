"""Runs as indexes: rows sorted by the hash of their key, and by time where hashes are equal.

Two sorted runs are joined by looking up the smaller in the larger. So a small delta against a large stored run costs
about its own size, and of a mapped run only what is looked at is read. Where a band of time limits the partners, the
order by time within a key bounds the candidates to those inside it, however often the key occurs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.hash import Hashes, hash_keys

#: The first column of every stored run of a join.
HASH = "__hash"
#: Pairs that are looked at together; bounds the memory for candidates, not for results.
CHUNK = 1 << 21

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Ticks = npt.NDArray[Any]

_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
#: Ranges of candidates longer than this are narrowed by time before they are spelled out.
_SHORT = 4
_LONG = 512


def whole(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece, without a copy if it is one."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def pick(rows: pa.Table, name: str, positions: Positions) -> pa.Array:
    """Some values of a column; a run that is mapped is not read for the others."""
    return pc.take(whole(rows.column(name)), pa.array(positions), boundscheck=False)


def ticks_of(column: pa.ChunkedArray) -> Ticks:
    """Times without nulls as integers of their own width, without a copy."""
    array = whole(column)
    if pa.types.is_temporal(array.type):
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    return np.asarray(array.to_numpy(zero_copy_only=False))


def distinct(ordered: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The different values of a sorted array; `np.unique` would hash them, which is far slower."""
    return ordered[np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))] if len(ordered) else ordered


def order_of(hashes: Hashes, ticks: Ticks | None = None) -> Positions:
    """How to sort by hash, then time.

    Sorted by their first 32 bits, hashes are all but sorted. Then only rows are sorted again that begin like one out of
    place; a key that repeats is not out of place as long as its rows come in order of time.
    """
    return _settled(by_bits(hashes, 32, 64), hashes, ticks)


def merged_order(hashes: Hashes, ticks: Ticks | None = None) -> Positions:
    """The same for a few sorted runs, one behind the other: what lies in order already is only merged.

    >>> merged_order(np.array([1, 5, 9, 2, 5], np.uint64), np.array([0, 8, 0, 0, 7])).tolist()
    [0, 3, 4, 1, 2]
    """
    return _settled(np.argsort(hashes, kind="stable"), hashes, ticks)


def _settled(order: Positions, hashes: Hashes, ticks: Ticks | None) -> Positions:
    """The order where rows that begin alike are in order, too; it is changed in place."""
    ordered = hashes[order]
    wrong = ordered[1:] < ordered[:-1]
    if ticks is not None:
        times = ticks[order]
        wrong |= (times[1:] < times[:-1]) & (ordered[1:] == ordered[:-1])
    if not bool(wrong.any()):
        return order
    begins = ordered >> np.uint64(32)
    theirs = distinct(begins[1:][wrong])
    first, last = np.searchsorted(begins, theirs, side="left"), np.searchsorted(begins, theirs, side="right")
    for _, places in expand(first, last):
        order[places] = _sorted_again(order[places], hashes, ticks)
    return order


def by_bits(values: npt.NDArray[np.uint64], low: int, high: int) -> Positions:
    """How to sort by some bits: 16 at a time, which NumPy sorts in linear time, is faster than comparing."""
    order: Positions | None = None
    for shift in range(low, high, 16):
        digits = (values >> np.uint64(shift)).astype(np.uint16)
        order = np.argsort(digits, kind="stable") if order is None else order[np.argsort(digits[order], kind="stable")]
    return np.arange(len(values)) if order is None else order


def _sorted_again(some: Positions, hashes: Hashes, ticks: Ticks | None) -> Positions:
    """Some positions by hash, then time. Sorting one column of integers is faster than sorting by two."""
    some = some[np.argsort(hashes[some], kind="stable")]
    if ticks is None:
        return some
    ordered, times = hashes[some], ticks[some].astype(np.int64)
    rank = np.concatenate([[0], np.cumsum(ordered[1:] != ordered[:-1])])
    least, most = int(times.min()), int(times.max())
    bits = (most - least).bit_length()
    whole_bits = int(rank[-1]).bit_length() + bits
    if whole_bits > 63:
        return some[np.lexsort((times, rank))]
    return some[by_bits(((rank << bits) | (times - least)).view(np.uint64), 0, whole_bits)]


def build(table: pa.Table, keys: Sequence[str], time: str | None = None) -> pa.Table:
    """The table sorted by the hash of its keys, which becomes the first column, then by time.

    >>> build(pa.table({"k": [3, 1, 3], "t": [5, 4, 2]}), ["k"], "t").drop_columns([HASH]).to_pydict()
    {'k': [3, 3, 1], 't': [2, 5, 4]}
    """
    hashes = hash_keys(table, keys)
    order = order_of(hashes, None if time is None else ticks_of(table.column(time)))
    columns = [pc.take(whole(c), pa.array(order), boundscheck=False) for c in table.columns]
    return pa.table([pa.array(hashes[order]), *columns], names=[HASH, *table.column_names])


def ranges(needles: Hashes, hay: Hashes) -> tuple[Positions, Positions, Positions]:
    """Which needles occur in the hay, and from where to where. Both are sorted."""
    if not len(needles) or not len(hay):
        none = np.zeros(0, dtype=np.int64)
        return none, none, none
    begin = np.searchsorted(hay, needles)
    found = np.flatnonzero(hay[np.minimum(begin, len(hay) - 1)] == needles)
    begin, wanted = begin[found], needles[found]
    end = begin + 1
    # Most keys occur once or a few times: a second search is only for those that go on.
    more = np.flatnonzero((end < len(hay)) & (hay[np.minimum(end, len(hay) - 1)] == wanted))
    if len(more):
        end[more] = np.searchsorted(hay, wanted[more], side="right")
    return found, begin, end


def expand(begin: Positions, end: Positions, chunk: int = CHUNK) -> Iterator[tuple[Positions, Positions]]:
    """(number of the range, position in it) for all positions of all ranges, in pieces of about `chunk`."""
    counts = end - begin
    if len(counts) <= chunk and bool((counts == 1).all()):
        if len(counts):
            yield np.arange(len(counts)), begin
        return
    total = np.cumsum(counts)
    if not total[-1]:
        return
    cuts = np.searchsorted(total, np.arange(chunk, total[-1] + chunk, chunk), side="left") + 1
    first = 0
    for last in distinct(np.minimum(cuts, len(total))):
        size = counts[first:last]
        which = np.repeat(np.arange(first, last), size)
        before = np.cumsum(size) - size
        yield which, np.arange(len(which)) + np.repeat(begin[first:last] - before, size)
        first = int(last)


def probe(left: Hashes, right: Hashes) -> tuple[Positions, Positions]:
    """The positions of all pairs with equal hashes; both sides sorted.

    >>> probe(np.array([1, 4, 4], np.uint64), np.array([2, 4, 4, 9], np.uint64))
    (array([1, 1, 2, 2]), array([1, 2, 1, 2]))
    """
    swapped = len(left) > len(right)
    found, begin, end = ranges(right, left) if swapped else ranges(left, right)
    pieces = [(found[which], at) for which, at in expand(begin, end)]
    a = np.concatenate([p[0] for p in pieces]) if pieces else np.zeros(0, dtype=np.int64)
    b = np.concatenate([p[1] for p in pieces]) if pieces else np.zeros(0, dtype=np.int64)
    return (b, a) if swapped else (a, b)


def shifted(ticks: Ticks, by: int) -> Ticks:
    """ticks + by, held at the ends of the domain."""
    wide = ticks.astype(np.int64)
    if by >= 0:
        return np.minimum(wide, max(_MOST - by, _LEAST)) + min(by, _MOST)
    return np.maximum(wide, min(_LEAST - by, _MOST)) + max(by, _LEAST)


def within(earlier: Ticks, later: Ticks, low: int | None, high: int | None) -> Mask:
    """Where `low ≤ later − earlier ≤ high`; exact even where the difference exceeds 64 bits."""
    a, b = earlier.astype(np.int64, copy=False), later.astype(np.int64, copy=False)
    fits = np.ones(len(a), dtype=np.bool_)
    if low is None and high is None:
        return fits
    difference = b - a
    if low is not None:
        fits &= difference >= min(max(low, _LEAST), _MOST)
    if high is not None:
        fits &= difference <= min(max(high, _LEAST), _MOST)
    if len(a) and (int(b.max()) - int(a.min()) > _MOST or int(b.min()) - int(a.max()) < _LEAST):
        wrapped = ((b ^ a) & (b ^ difference)) < 0
        fits[wrapped] = (b > a)[wrapped] if high is None else (b < a)[wrapped] if low is None else False
    return fits


def _bisect(ticks: Ticks, begin: Positions, end: Positions, bounds: Ticks, behind: bool) -> Positions:
    """Per range, the first position whose tick reaches (`behind`: exceeds) the bound."""
    low, high = begin.copy(), end.copy()
    still = np.flatnonzero(low < high)
    while len(still):
        middle = (low[still] + high[still]) >> 1
        before = ticks[middle] <= bounds[still] if behind else ticks[middle] < bounds[still]
        low[still[before]] = middle[before] + 1
        high[still[~before]] = middle[~before]
        still = still[low[still] < high[still]]
    return low


def narrow(
    ticks: Ticks, begin: Positions, end: Positions, times: Ticks, low: int | None, high: int | None
) -> tuple[Positions, Positions]:
    """The ranges cut down to ticks in [time + low, time + high], where they are long. Never too narrow."""
    length = end - begin
    if not bool((length > _SHORT).any()):
        return begin, end
    begin, end = begin.copy(), end.copy()
    some = np.flatnonzero((length > _SHORT) & (length <= _LONG))
    if low is not None:
        begin[some] = _bisect(ticks, begin[some], end[some], shifted(times[some], low), behind=False)
    if high is not None:
        end[some] = _bisect(ticks, begin[some], end[some], shifted(times[some], high), behind=True)
    # The few very long ranges one by one: they are those of hot keys, each with many needles in order of time.
    many = np.flatnonzero(length > _LONG)
    starts = np.flatnonzero(np.diff(begin[many], prepend=-1))
    for needles in np.split(many, starts[1:]) if len(many) else ():
        first, last = int(begin[needles[0]]), int(end[needles[0]])
        inside = ticks[first:last]
        if low is not None:
            begin[needles] = first + np.searchsorted(inside, shifted(times[needles], low), side="left")
        if high is not None:
            end[needles] = first + np.searchsorted(inside, shifted(times[needles], high), side="right")
    return begin, end


def same(a: pa.Array, b: pa.Array, null_safe: bool) -> Mask:
    """Where two key columns are equal: NaN equals NaN, null equals null only if `null_safe`."""
    if a.type != b.type:
        a, b = a.cast(pa.int64()), b.cast(pa.int64())
    equal = pc.equal(a, b)
    if pa.types.is_floating(a.type):
        equal = pc.or_(equal, pc.and_(pc.is_nan(a), pc.is_nan(b)))
    result = np.asarray(pc.fill_null(equal, False) if equal.null_count else equal)
    if null_safe and a.null_count and b.null_count:
        result = result | np.asarray(pc.and_(a.is_null(), b.is_null()))
    return result


def sift(table: pa.Table | None, schema: pa.Schema, must: Iterable[str]) -> tuple[pa.Table, pa.Table]:
    """The columns of a schema: rows with a value in all of the given attributes, and rows without."""
    if table is None or not table.num_rows:
        return schema.empty_table(), schema.empty_table()
    rows = table.select(schema.names).cast(schema)
    nulls = [np.asarray(rows.column(n).is_null()) for n in dict.fromkeys(must) if rows.column(n).null_count]
    if not nulls:
        return rows, schema.empty_table()
    loose = np.logical_or.reduce(nulls)
    return rows.take(pa.array(np.flatnonzero(~loose))), rows.take(pa.array(np.flatnonzero(loose)))
