"""One epoch of an aggregate: fold new partials in, close what is complete, keep the rest.

Pure: state comes in as tables and goes out as instructions. Stored runs are sorted by the closing attribute, so a
frontier ("everything below x is complete") takes a prefix of each and leaves the remainder where it lies. Cost thus
follows what arrives and what closes. Closers of other kinds (a key is complete, a conjunction) rewrite only the
runs in which they find something.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.order import code_order
from penstock.kernels.ticks import Ticks
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import Range

#: In so many pieces a table is as good as in one.
_FEW = 64


class Folding(Protocol):
    """What `fold` needs of an aggregate kernel."""

    def merge(self, tables: Sequence[pa.Table]) -> pa.Table: ...
    def finalize(self, partials: pa.Table) -> pa.Table: ...


@dataclass(frozen=True)
class Folded:
    """What happened: results, and what is to become of each stored run."""

    output: pa.Table
    rest: pa.Table | None
    dropped: tuple[str, ...] = ()
    skipped: tuple[tuple[str, int], ...] = ()


def frontier_of(closer: Pattern, closing: str | None) -> tuple[Any, bool] | None:
    """(bound, inclusive) if the closer says no more than "everything up to the bound", else None."""
    if closing is None or closer.restricted != (closing,):
        return None
    restriction = closer[closing]
    if isinstance(restriction, Range) and restriction.low is None and restriction.high is not None:
        return restriction.high, restriction.high_closed
    return None


def ticks(column: pa.ChunkedArray | pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A sorted time or integer column as integers, without copying if it is one piece."""
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    return np.asarray(column.cast(pa.int64()))


def tick(value: Any, t: pa.DataType) -> int:
    """A bound as the same kind of integer."""
    if pa.types.is_date32(t):
        return int(pa.scalar(value, t).cast(pa.int32()).as_py())
    return int(pa.scalar(value, t).cast(pa.int64()).as_py())


def is_tickable(t: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(t) or pa.types.is_date32(t) or pa.types.is_integer(t))


def span_of(table: pa.Table, time: str | None) -> tuple[int | None, int | None]:
    """The least and the greatest tick of an attribute; None where nothing bounds it, as with a row that has no time."""
    if time is None or not table.num_rows or not _has_ticks(table[time]):
        return None, None
    found = ticks(table[time])
    return int(found.min()), int(found.max())


def sort_by(table: pa.Table, closing: str | None) -> pa.Table:
    """Sorted by the closing attribute, nulls last, in one piece."""
    if closing is None or table.num_rows < 2:
        return table.combine_chunks()
    column = table[closing]
    if is_tickable(column.type) and not column.null_count:
        values = ticks(column)
        if bool(np.all(values[:-1] <= values[1:])):
            return table.combine_chunks()
        order = code_order(values.view(np.uint64) - values.min().view(np.uint64))
        return table.combine_chunks().take(pa.array(order))
    return table.take(pc.sort_indices(table, [(closing, "ascending")])).combine_chunks()


def prefix_length(table: pa.Table, closing: str, bound: Any, inclusive: bool) -> int:
    """How many rows of a sorted table lie at or below the bound."""
    column = table[closing]
    if not is_tickable(column.type) or column.null_count:
        mask = pc.less_equal(column, bound) if inclusive else pc.less(column, bound)
        return int(pc.sum(mask).as_py() or 0)
    side: Literal["left", "right"] = "right" if inclusive else "left"
    return int(np.searchsorted(ticks(column), np.int64(tick(bound, column.type)), side=side))


def matching(table: pa.Table, closers: Sequence[Pattern]) -> pa.BooleanArray:
    """The rows that some closer matches."""
    mask: Any = pa.array(np.zeros(table.num_rows, dtype=bool))
    for closer in closers:
        mask = pc.or_(mask, closer.matches(table))
    return mask


def fold(
    kernel: Folding,
    delta: Sequence[pa.Table],
    stored: Sequence[tuple[str, pa.Table]],
    closers: Sequence[Pattern],
    closing: str | None,
) -> Folded:
    """Fold `delta` into state and close the groups that `closers` match.

    Each table of `delta`, and each run, has one row for a group. `stored` are those runs in which a closer may find
    something; runs that cannot be touched need not be given.
    """
    frontiers = [f for c in closers if (f := frontier_of(c, closing))]
    others = [c for c in closers if frontier_of(c, closing) is None]
    done: list[pa.Table] = []
    rest: list[pa.Table] = []
    dropped: list[str] = []
    skipped: list[tuple[str, int]] = []
    for name, table in stored:
        cut = max((prefix_length(table, closing, *f) for f in frontiers), default=0) if closing else 0
        if cut:
            done.append(table.slice(0, cut))
        remaining = table.slice(cut)
        if others and remaining.num_rows:
            mask = matching(remaining, others)
            if pc.any(mask).as_py():
                done.append(remaining.filter(mask))
                rest.append(remaining.filter(pc.invert(mask)))
                dropped.append(name)
                continue
        if cut == table.num_rows:
            dropped.append(name)
        elif cut:
            skipped.append((name, cut))
    fresh = together(kernel, delta, closing) if delta else None
    if fresh is not None and fresh.num_rows:
        sorted_ = closing is not None and _is_sorted(fresh, closing)
        cut = max((prefix_length(fresh, closing, *f) for f in frontiers), default=0) if closing and sorted_ else 0
        done.append(fresh.slice(0, cut))
        remaining = fresh.slice(cut)
        if (patterns := others if sorted_ else closers) and remaining.num_rows:
            mask = matching(remaining, patterns)
            done.append(remaining.filter(mask))
            remaining = remaining.filter(pc.invert(mask))
        rest.append(remaining)
    closed = [t for t in done if t.num_rows]
    output = kernel.finalize(together(kernel, closed, closing))
    left = [t for t in rest if t.num_rows]
    new = sort_by(together(kernel, left, closing), closing) if left else None
    return Folded(output, new, tuple(dropped), tuple(skipped))


def together(kernel: Folding, tables: Sequence[pa.Table], closing: str | None) -> pa.Table:
    """One row per group from tables that have one each: rows are merged only where tables share a window.

    Tables that are sorted by it are otherwise laid one behind the other in slices, and nothing is copied.
    """
    if len(tables) == 1:
        return tables[0]
    if not tables or closing is None or not all(_has_ticks(t[closing]) for t in tables):
        return kernel.merge(tables)
    tables = [t if _is_sorted(t, closing) else sort_by(t, closing) for t in tables]
    found = _stretches(tables, closing)
    values, counts = np.unique(found.values, return_counts=True)
    shared = np.isin(found.values, values[counts > 1])
    if shared.all():
        return kernel.merge(tables)
    if shared.any():
        merged = kernel.merge([tables[i].slice(a, b - a) for i, a, b in found.only(shared).joined()])
        tables.append(sort_by(merged, closing))
        more = _stretches(tables[-1:], closing)
        more.table[:] = len(tables) - 1
        found = _Stretches(*(np.concatenate(pair) for pair in zip(found.only(~shared), more)))
    slices = [tables[i].slice(a, b - a) for i, a, b in found.only(np.argsort(found.values)).joined()]
    table = pa.concat_tables(slices)
    return table if len(slices) <= _FEW else table.combine_chunks()


class _Stretches(NamedTuple):
    """Where in sorted tables each value of the closing attribute is."""

    values: Ticks
    table: Ticks
    first: Ticks
    end: Ticks

    def only(self, some: Any) -> _Stretches:
        return _Stretches(*(column[some] for column in self))

    def joined(self) -> Iterator[tuple[int, int, int]]:
        """Table, first and end of the stretches, successive ones in one."""
        breaks = (self.table[1:] != self.table[:-1]) | (self.first[1:] != self.end[:-1])
        at = np.flatnonzero(np.concatenate([[True], breaks]))
        last = np.append(at[1:], len(self.values)) - 1
        return zip(self.table[at].tolist(), self.first[at].tolist(), self.end[last].tolist())


def _stretches(tables: Sequence[pa.Table], closing: str) -> _Stretches:
    found = []
    for i, table in enumerate(tables):
        values = ticks(table[closing])
        first = np.flatnonzero(np.concatenate([np.ones(min(1, len(values)), bool), values[1:] != values[:-1]]))
        found.append((values[first], np.full(len(first), i), first, np.append(first[1:], len(values))))
    return _Stretches(*(np.concatenate(columns) for columns in zip(*found)))


def _is_sorted(table: pa.Table, closing: str) -> bool:
    if not _has_ticks(table[closing]):
        return False
    values = ticks(table[closing])
    return bool(np.all(values[:-1] <= values[1:]))


def _has_ticks(column: pa.ChunkedArray) -> bool:
    return is_tickable(column.type) and not column.null_count
