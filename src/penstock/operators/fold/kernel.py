"""The table as it is now, part by part.

State is that of `settle`: the rows that hold, in runs sorted by the hash of what tells them apart. A part is a range of
hashes within a bucket, so its rows lie side by side in every run. Where the table is laid out by attributes (`by`), a
part is what a bucket has of the same values there, and once punctuation says that such a part is complete its rows are
forgotten: it is never written again.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Self

import numpy as np
import pyarrow as pa

from penstock.kernels.fold import matching
from penstock.kernels.hash import Hashes, hash_keys
from penstock.kernels.index import HASH, expand, whole
from penstock.kernels.stateful import DEAD, Circumstances, Held, Orders, Stepped
from penstock.operators.distinct.kernel import Piece, first_of_each, flags
from penstock.operators.settle.kernel import HoldingKernel
from penstock.operators.top.kernel import rows_at
from penstock.pattern.schema import Schema
from penstock.plan.weight import PART, WEIGHT

#: A bucket has this many bits of parts, where they are ranges of hashes.
BITS = 4


class FoldKernel(HoldingKernel):
    """All rows of the parts that have changed. `orders.release[0]` are patterns of parts that are complete.

    >>> from penstock.pattern.punctuation import PunctuationSet
    >>> s = Schema.parse("k string, n int, _weight bigint")
    >>> kernel = FoldKernel(s, ("k",), ())
    >>> rows = pa.table({"k": ["a", "a", "b"], "n": [1, 1, 7], "_weight": [1, -1, 1]}, schema=s.arrow)
    >>> nothing = Orders(((),), (PunctuationSet(s),))
    >>> kernel.step([rows], [[]], nothing).output.sort_by("_weight").select(["n", "_weight"]).to_pydict()
    {'n': [1, 7, 7], '_weight': [0, 0, 1]}
    """

    def __init__(self, below: Schema, keys: tuple[str, ...] | None, by: tuple[str, ...]) -> None:
        super().__init__(below, keys)
        self.by = by
        self.first = 0

    def under(self, circumstances: Circumstances) -> Self:
        other = copy.copy(self)
        other.first = circumstances.bucket if self.by else circumstances.bucket << BITS
        return other

    def step(self, fresh: Sequence[pa.Table | None], held: Sequence[Sequence[Held]], orders: Orders) -> Stepped:
        """Put the changes to what holds; tell the parts that they touch; then forget those that are complete."""
        pieces = [Piece.of(run) for run in held[0]]
        arrived = fresh[0] if fresh[0] is not None else self.stored.empty_table()
        now = self.now(arrived, pieces)
        output = self._told(arrived.select(self.stored.names), now, pieces)
        if release := orders.release[0]:
            self.released(release, pieces)
            now = now.filter(pa.array(~flags(matching(now, release))))
        return self.stepped(output, now, pieces)

    def _told(self, arrived: pa.Table, now: pa.Table, pieces: Sequence[Piece]) -> pa.Table:
        """The rows of the parts that something has arrived for, and of each one row that stands for the part."""
        pieces = pieces if arrived.num_rows else ()
        place = self._places(arrived)
        touched, number = np.unique(place, return_inverse=True)
        marks = arrived.take(pa.array(first_of_each(number)))
        zero = pa.array(np.zeros(len(touched), dtype=np.int64))
        marks = marks.set_column(marks.schema.get_field_index(WEIGHT), WEIGHT, zero)
        rows = pa.concat_tables([marks, now, *(self._beside(piece, touched) for piece in pieces)])
        part = np.zeros(rows.num_rows, dtype=np.int64) if self.by else self._places(rows).astype(np.int64)
        return rows.append_column(PART, pa.array(part + self.first))

    def _beside(self, piece: Piece, touched: Hashes) -> pa.Table:
        """What is stored of these parts beside that which has changed."""
        if self.by:
            at = np.flatnonzero(np.isin(self._places(piece.rows), touched))
        else:
            hashes, shift = np.asarray(whole(piece.rows[HASH])), np.uint64(64 - BITS)
            begin, last = (touched << shift), (touched << shift) | ((np.uint64(1) << shift) - np.uint64(1))
            found = expand(np.searchsorted(hashes, begin), np.searchsorted(hashes, last, side="right"))
            at = np.concatenate([np.zeros(0, dtype=np.int64), *(at for _, at in found)])
        return rows_at(piece, at[~piece.mark(DEAD)[at]], self.stored.names)

    def _places(self, rows: pa.Table) -> Hashes:
        """A number for the part of each row. If by chance two have the same, the other is told again as well."""
        return hash_keys(rows, self.by) if self.by else self.hashes(rows) >> np.uint64(64 - BITS)
