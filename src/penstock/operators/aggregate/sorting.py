"""Groups without a hash table: by a table of cells where few groups are possible (see `cells`), or else by sorting.

A hash table with nearly as many groups as events misses the cache with every one of them; sorting by digits does not.
And what comes out is sorted by the window, as state is, so that parcels and runs can be cut and put together in slices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.hash import whole_numbers
from penstock.kernels.index import Positions, whole
from penstock.kernels.order import Codes, code_order, codes_of, numbered, sortable
from penstock.operators.aggregate import exact_sum
from penstock.operators.aggregate.cells import Cells
from penstock.operators.aggregate.listing import NUMBER
from penstock.sql.partial import Partial

_ROOM = 2**62
#: A table of so many cells is always worth it, and one with so many for each event.
_CELLS, _CELLS_FOR_EACH = 1 << 12, 2


@dataclass(frozen=True)
class Sorting:
    """What is grouped by, the window or pane before the keys, and the partials of a group."""

    keys: tuple[str, ...]
    partials: tuple[Partial, ...]

    @classmethod
    def over(cls, keys: Sequence[tuple[str, pa.DataType]], partials: Sequence[Partial]) -> Self | None:
        """None if there is nothing to sort by, or a partial is of another kind."""
        if not keys or not all(sortable(t) for _, t in keys) or not all(_is_plain(p) for p in partials):
            return None
        return cls(tuple(k for k, _ in keys), tuple(partials))

    def of(self, rows: pa.Table, *, sort: bool = True) -> pa.Table | None:
        """The groups of events, sorted; None if some number is too large. Events in no window are in no group.

        Unless they are to be sorted, None too if a table with a cell for each would be too large.
        """
        if self.keys[0] == NUMBER and rows[NUMBER].null_count:
            rows = rows.filter(rows[NUMBER].is_valid())
        columns = {name: whole(rows[name]) for name in rows.column_names}
        codes, size = numbered([columns[k] for k in self.keys])
        if size <= max(_CELLS, _CELLS_FOR_EACH * len(codes)):
            cells = Cells(codes, size)
            if (
                made := self._made(columns, cells.some, lambda p: cells.aggregated(p, columns.get(p.column)))
            ) is not None:
                return made
        return (
            self._sorted(columns, codes, lambda groups, p: groups.aggregated(p, columns.get(p.column)))
            if sort
            else None
        )

    def merged(self, partials: pa.Table) -> pa.Table | None:
        """One row per group from partial rows, sorted; None if some number is too large."""
        columns = {name: whole(partials[name]) for name in partials.column_names}

        def merge(groups: _Groups, p: Partial) -> Sequence[pa.Array] | None:
            if p.is_float_sum:
                return groups.merged_sum(*(columns[c] for c, _ in exact_sum.columns(p.column)))
            function = p.plain[0] if p.plain is not None else ""
            column = columns[p.column]
            if pa.types.is_decimal(column.type):
                try:
                    column = column.cast(pa.int64())
                except pa.ArrowInvalid:
                    return None
            return groups.reduced("sum" if function == "count" else function, column, p.type)

        return self._sorted(columns, codes_of([columns[k] for k in self.keys]), merge)

    def _sorted(
        self, columns: dict[str, pa.Array], codes: Codes, of: Callable[[_Groups, Partial], Sequence[pa.Array] | None]
    ) -> pa.Table | None:
        order = code_order(codes)
        ordered = codes[order]
        changes = ordered[1:] != ordered[:-1]
        starts = np.flatnonzero(np.concatenate([np.ones(min(1, len(ordered)), bool), changes]))
        groups = _Groups(order, starts, np.diff(starts, append=len(order)))
        return self._made(columns, order[starts], lambda p: of(groups, p))

    def _made(
        self, columns: dict[str, pa.Array], some: Positions, of: Callable[[Partial], Sequence[pa.Array] | None]
    ) -> pa.Table | None:
        """Groups, each with the keys of some row of it, and its partials; None if one of these is too large."""
        made = {k: columns[k].take(pa.array(some)) for k in self.keys}
        for p in self.partials:
            found = of(p)
            if found is None:
                return None
            made.update(zip([c for c, _ in exact_sum.columns(p.column)] if p.is_float_sum else [p.column], found))
        return pa.table(made)


@dataclass(frozen=True)
class _Groups:
    """The rows of groups: in this order, from each of `starts` on so many."""

    order: Positions
    starts: Positions
    sizes: Positions

    def aggregated(self, p: Partial, argument: pa.Array | None) -> Sequence[pa.Array] | None:
        """The columns of a partial; None if some number is too large."""
        if argument is None:
            return (pa.array(self.sizes),)
        function = p.plain[0] if p.plain is not None else ""
        if function == "count":
            return (pa.array(self._reduced(np.add, np.asarray(argument).astype(np.int64))),)
        return self._float_sum(argument) if p.is_float_sum else self.reduced(function, argument, p.type)

    def reduced(self, function: str, argument: pa.Array, t: pa.DataType) -> Sequence[pa.Array] | None:
        """The sum, the least or the greatest of whole numbers."""
        if not (pa.types.is_integer(argument.type) if function == "sum" else argument.type == t):
            return None
        missing = self._missing(argument)
        values = whole_numbers(pa.chunked_array([argument])).view(np.int64)
        if function == "sum":
            top = max(int(values.max(initial=0)), -int(values.min(initial=0)))
            if top * int(self.sizes.max(initial=0)) >= _ROOM:
                return None
            return (pa.array(self._reduced(np.add, values), mask=missing).cast(t),)
        reduce, worst = (np.minimum, 2**63 - 1) if function == "min" else (np.maximum, -(2**63))
        if argument.null_count:
            values = np.where(np.asarray(argument.is_valid()), values, worst)
        found = self._reduced(reduce, values)
        found = found if missing is None else np.where(missing, 0, found)
        narrow = pa.int32() if pa.types.is_date32(t) else pa.int64()
        return (pa.array(found, narrow, mask=missing).cast(t),)

    def merged_sum(self, nearest: pa.Array, low: pa.Array, rest: pa.Array) -> Sequence[pa.Array] | None:
        """The sums of doubles of partial rows."""
        missing = self._missing(nearest)
        both = (np.asarray(pc.fill_null(part, 0.0) if part.null_count else part)[self.order] for part in (nearest, low))
        owners, numbers = np.zeros(0, np.int64), np.zeros(0)
        if rest.null_count < len(rest):
            rows = np.flatnonzero(np.asarray(rest.is_valid())[self.order])
            lists = rest.take(pa.array(self.order[rows]))
            group = np.searchsorted(self.starts, rows, side="right") - 1
            owners = np.repeat(group, np.asarray(pc.list_value_length(lists)))
            numbers = np.asarray(pc.list_flatten(lists))
        pairs = np.column_stack(list(both)).ravel()
        return _unless(missing, exact_sum.summed(pairs, 2 * self.starts, 2 * self.sizes, (owners, numbers)))

    def _float_sum(self, argument: pa.Array) -> Sequence[pa.Array] | None:
        missing = self._missing(argument)
        numbers = np.asarray(argument if missing is None else pc.fill_null(argument, 0.0))
        return _unless(missing, exact_sum.summed(numbers[self.order], self.starts, self.sizes))

    def _missing(self, argument: pa.Array) -> npt.NDArray[np.bool_] | None:
        """The groups of which no event has a value; None if all have."""
        if not argument.null_count:
            return None
        found: npt.NDArray[np.bool_] = self._reduced(np.add, np.asarray(argument.is_valid()).astype(np.int64)) == 0
        return found

    def _reduced(self, reduce: np.ufunc, values: npt.NDArray[Any]) -> Positions:
        if not len(self.starts):
            return np.zeros(0, np.int64)
        found: Positions = reduce.reduceat(values[self.order], self.starts)
        return found


def _unless(missing: npt.NDArray[np.bool_] | None, columns: Sequence[pa.Array] | None) -> Sequence[pa.Array] | None:
    if columns is None or missing is None:
        return columns
    return tuple(pc.if_else(pa.array(missing), pa.scalar(None, column.type), column) for column in columns)


def _is_plain(p: Partial) -> bool:
    if p.plain is None:
        return False
    function, _ = p.plain
    if function in ("min", "max"):
        unsigned = pa.types.is_unsigned_integer(p.type)
        whole = pa.types.is_integer(p.type) or pa.types.is_timestamp(p.type) or pa.types.is_date32(p.type)
        return bool(whole and not unsigned)
    return True
