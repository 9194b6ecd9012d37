"""Groups by a table with a cell for each that there can be.

Where windows and keys are whole numbers from a small range, or few texts, the number of a group says where its counts
and sums are: nothing is hashed, and nothing is sorted. Events of a window lie together in a stream, so its cells stay
in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.hash import whole_numbers
from penstock.kernels.index import Positions
from penstock.kernels.order import Codes
from penstock.operators.aggregate.bins import Bins
from penstock.sql.partial import Partial

#: Events that are looked at together, so that what is computed of them stays in the cache.
_BLOCK = 1 << 15
_ROOM = 2**62


class Cells:
    """Events by the number of their group, below `size`."""

    def __init__(self, codes: Codes, size: int) -> None:
        self.codes = codes.view(np.int64)
        self.size = size
        self.counts = np.bincount(self.codes, minlength=size)
        #: The cells with any event, which are the groups, in order.
        self.taken: Positions = np.flatnonzero(self.counts > 0)

    @cached_property
    def some(self) -> Positions:
        """The position of some event of each group."""
        found = np.empty(self.size, np.int64)
        found[self.codes] = np.arange(len(self.codes))
        return found[self.taken]

    def aggregated(self, p: Partial, argument: pa.Array | None) -> Sequence[pa.Array] | None:
        """The columns of a partial; None if some number is too large."""
        if argument is None:
            return (pa.array(self.counts[self.taken]),)
        function = p.plain[0] if p.plain is not None else ""
        if function == "count":
            counted = np.bincount(self.codes, weights=np.asarray(argument), minlength=self.size)
            return (pa.array(counted[self.taken].astype(np.int64)),)
        return self._float_sum(argument) if p.is_float_sum else self._whole(function, argument, p.type)

    def _whole(self, function: str, argument: pa.Array, t: pa.DataType) -> Sequence[pa.Array] | None:
        """The sum, the least or the greatest of whole numbers."""
        if not (pa.types.is_integer(argument.type) if function == "sum" else argument.type == t):
            return None
        missing = self._missing(argument)
        values = whole_numbers(pa.chunked_array([argument])).view(np.int64)
        worst = {"sum": 0, "min": 2**63 - 1, "max": -(2**63)}[function]
        if function == "sum":
            top = max(int(values.max(initial=0)), -int(values.min(initial=0)))
            if top * int(self.counts.max(initial=0)) >= _ROOM:
                return None
        elif argument.null_count:
            values = np.where(np.asarray(argument.is_valid()), values, worst)
        cells = np.full(self.size, worst, np.int64)
        {"sum": np.add, "min": np.minimum, "max": np.maximum}[function].at(cells, self.codes, values)
        found = cells[self.taken]
        if missing is not None:
            found[missing] = 0
        narrow = pa.int32() if pa.types.is_date32(t) else pa.int64()
        return (pa.array(found, narrow, mask=missing).cast(t),)

    def _float_sum(self, argument: pa.Array) -> Sequence[pa.Array] | None:
        missing = self._missing(argument)
        numbers = np.asarray(argument if missing is None else pc.fill_null(argument, 0.0))
        bins = Bins.for_numbers(numbers, int(self.counts.max(initial=0)))
        if bins is None:
            return None
        high, low = np.zeros(self.size, np.int64), np.zeros(self.size, np.int64)
        odd: list[tuple[Positions, npt.NDArray[np.float64]]] = []
        for first in range(0, len(numbers), _BLOCK):
            codes = self.codes[first : first + _BLOCK]
            upper, lower, at, left = bins.of(numbers[first : first + _BLOCK])
            np.add.at(high, codes, upper)
            np.add.at(low, codes, lower)
            if len(at):
                odd.append((codes[at], left))
        made = bins.packed(high[self.taken], low[self.taken], [(np.searchsorted(self.taken, c), n) for c, n in odd])
        if made is None or missing is None:
            return made
        return tuple(pc.if_else(pa.array(missing), pa.scalar(None, column.type), column) for column in made)

    def _missing(self, argument: pa.Array) -> npt.NDArray[np.bool_] | None:
        """The groups of which no event has a value; None if none lacks any."""
        if not argument.null_count:
            return None
        valid = np.bincount(self.codes[np.asarray(argument.is_valid())], minlength=self.size)
        found: npt.NDArray[np.bool_] = valid[self.taken] == 0
        return found
