"""Rows with lifetimes as state: which are held, which a change meets, and which have had their time.

Rows are stored with their weights, in runs sorted by a hash of some attributes (`__hash`), so an epoch looks up those
that what arrives has to do with, by binary search. Rows that hold lie in one slice (`HELD`) and those that were taken
back before they came in another (`OWED`): these are few, so that all of them can be looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.fold import span_of, ticks
from penstock.kernels.hash import Hashes, hash_keys
from penstock.kernels.index import Mask, Positions, distinct
from penstock.kernels.stateful import DEAD, Fresh
from penstock.kernels.ticks import Ticks
from penstock.kernels.weights import net
from penstock.operators.distinct.kernel import Piece, alike, by_hash, pieces_of, tidied
from penstock.operators.top.kernel import rows_at, stored_at
from penstock.pattern.schema import SYNC
from penstock.plan.weight import WEIGHT

#: The slices of state.
HELD, OWED = 0, 1
#: The tick of an end that is none.
FOREVER = int(np.iinfo(np.int64).max)


class Met(NamedTuple):
    """What a change meets: the rows of its keys that it leaves alone, those it replaces, and what replaces them."""

    others: pa.Table
    before: pa.Table
    after: pa.Table


class Stock:
    """Rows of one input. `keys` decide where they lie, `end` is the attribute with the end of their lifetimes."""

    def __init__(self, schema: pa.Schema, keys: tuple[str, ...], start: str, end: str) -> None:
        self.schema, self.keys, self.start, self.end = schema, keys, start, end
        self.identity = [n for n in schema.names if n != WEIGHT]
        #: What a row and those have in common that it was shortened to.
        self.family = [n for n in self.identity if n != end]

    def meet(self, arrived: pa.Table, pieces: Sequence[Piece]) -> Met:
        """Look up what is held of the keys that arrived. What is replaced is marked dead; the new is not stored yet."""
        nothing = self.schema.empty_table()
        arrived = net([arrived.select(self.schema.names).cast(self.schema)])
        if not arrived.num_rows:
            return Met(nothing, nothing, nothing)
        wanted = distinct(np.sort(self.hashes(arrived)))
        mine = hash_keys(arrived, self.identity)
        begins = self.starts(arrived)
        others, before = [nothing], [nothing]
        for piece in pieces:
            at = stored_at(piece, wanted)
            if len(at):
                rows = rows_at(piece, at, self.schema.names)
                # Most begin at another moment. Should two rows have one hash by chance, the other is written again.
                touched = np.isin(self.starts(rows), begins)
                some = np.flatnonzero(touched)
                touched[some] = np.isin(hash_keys(rows.take(pa.array(some)), self.identity), mine)
                piece.set(DEAD, at[touched])
                before.append(rows.filter(pa.array(touched)))
                others.append(rows.filter(pa.array(~touched)))
        replaced = pa.concat_tables(before)
        return Met(pa.concat_tables(others), replaced, net([replaced, arrived]))

    def revised(self, met: Met) -> tuple[pa.Table, pa.Table, pa.Table]:
        """What held of the keys that arrived, what holds now, and the difference."""
        was, now = (self.holding(pa.concat_tables([met.others, t])) for t in (met.before, met.after))
        plain = all(not t.num_rows or pc.min(t[WEIGHT]).as_py() > 0 for t in met)
        return was, now, net([met.after, negated(met.before)] if plain else [now, negated(was)])

    def holding(self, rows: pa.Table) -> pa.Table:
        """The rows that hold, as often as they do.

        Where retractions came before what they are about, ends are known that are yet to be linked. Of rows that say
        the same and begin together as many hold as weights add up to: those that end first, since a row that is known
        to be shortened will be.
        """
        weights = np.asarray(rows[WEIGHT])
        if not (weights < 0).any():
            return rows
        family = alike(rows.select(self.family), hash_keys(rows, self.family))
        order = np.lexsort((self.ends(rows), family))
        family, come = family[order], np.maximum(weights[order], 0)
        many = np.zeros(int(family.max()) + 1, dtype=np.int64)
        np.add.at(many, family, weights[order])
        sums = np.cumsum(come)
        first = np.flatnonzero(np.diff(family, prepend=-1))
        before = sums - come - np.repeat(sums[first] - come[first], np.diff(first, append=len(family)))
        held = np.minimum(come, np.maximum(many[family] - before, 0))
        some = held > 0
        return self._weighed(rows.take(pa.array(order[some])), held[some])

    def _weighed(self, rows: pa.Table, weights: Ticks) -> pa.Table:
        return rows.set_column(rows.schema.get_field_index(WEIGHT), WEIGHT, pa.array(weights, pa.int64()))

    def unfounded(self, gone: pa.Table, pieces: Sequence[Piece]) -> list[Piece]:
        """Forget what rows were shortened to that never came: what is stored instead of the rows of their keys."""
        rows = self.of_keys(gone, pieces)
        rows = rows.filter(pa.array(np.isin(hash_keys(rows, self.family), hash_keys(gone, self.family))))
        without = net([gone, rows, negated(self.holding(pa.concat_tables([gone, rows])))])
        excess = without.filter(pc.greater(without[WEIGHT], 0))
        return self.kept(self.meet(negated(excess), pieces).after) if excess.num_rows else []

    def of_keys(self, rows: pa.Table, pieces: Sequence[Piece]) -> pa.Table:
        """What is held of the keys of some rows."""
        return self.of_hashes(distinct(np.sort(self.hashes(rows))), pieces)

    def of_hashes(self, wanted: Hashes, pieces: Sequence[Piece]) -> pa.Table:
        """What is held under some hashes, which are sorted."""
        found = [(piece, stored_at(piece, wanted)) for piece in pieces]
        parts = (rows_at(piece, at, self.schema.names) for piece, at in found if len(at))
        return pa.concat_tables([self.schema.empty_table(), *parts])

    def kept(self, rows: pa.Table) -> list[Piece]:
        """Rows to be stored. Those without an end lie apart, so that the others are passed over by their ends."""
        weights = np.asarray(rows[WEIGHT])
        found = []
        for group, chosen in ((HELD, weights > 0), (OWED, weights < 0)):
            if chosen.any():
                some = rows.filter(pa.array(chosen))
                for piece in pieces_of(some, self.hashes(some), self.end):
                    piece.group = group
                    found.append(piece)
        return found

    def ended(self, pieces: Sequence[Piece], bound: int, begun: int | None) -> Iterator[tuple[Piece, Mask]]:
        """Rows that have ended before a tick, or just then: no change can reach them any more.

        One that was taken back before it came may still come as what a longer one is shortened to, until its end has
        passed; one without an end, until its start has: before the tick `begun`.
        """
        for piece in pieces:
            if piece.low is not None and piece.low <= bound:
                ends = ticks(piece.rows[self.end])
                found = ends <= bound if piece.group == HELD else ends < bound
            elif piece.low is None and piece.group == OWED and begun is not None:
                found = ticks(piece.rows[self.start]) < begun
            else:
                continue
            if (found := found & ~piece.mark(DEAD)).any():
                yield piece, found

    def stored(
        self, pieces: Sequence[Piece], port: int
    ) -> tuple[tuple[str, ...], tuple[tuple[str, pa.Table], ...], tuple[Fresh, ...]]:
        """What to drop, to mark and to add so that these pieces are stored."""
        dropped, marked, added, _ = tidied(pieces, port, by_hash, lambda table: span_of(table, self.end))
        return dropped, marked, added

    def hashes(self, rows: pa.Table) -> Hashes:
        return hash_keys(rows, self.keys) if self.keys else np.zeros(rows.num_rows, dtype=np.uint64)

    def ends(self, rows: pa.Table) -> Ticks:
        return ends_of(rows[self.end])

    def starts(self, rows: pa.Table) -> Ticks:
        return starts_of(rows[self.start])


def starts_of(column: pa.ChunkedArray) -> Ticks:
    """The ticks of starts."""
    return ticks(column)


def ends_of(column: pa.ChunkedArray) -> Ticks:
    """The ticks of ends; of one that is none, the last there is."""
    return np.where(_null(column), FOREVER, ticks(pc.fill_null(column, _zero(column.type))))


def by_last_moment(rows: pa.Table, start: str, end: str) -> pa.Table:
    """The rows with the last moment at which each holds in the place of when its change matters.

    A row that has ended by then when all is final can no longer change; one that never ends, always can.
    """
    ends = ends_of(rows[end])
    last = moments(np.where(ends == FOREVER, FOREVER, ends - 1), rows[start].type)
    return rows.set_column(rows.schema.get_field_index(SYNC), SYNC, last)


def moments(found: Ticks, t: pa.DataType) -> pa.Array:
    """Ticks as a column; the last there is, is null."""
    width = pa.int32() if t.bit_width == 32 else pa.int64() if t.bit_width == 64 else t
    values = pa.array(np.where(found == FOREVER, 0, found), pa.int64(), mask=found == FOREVER)
    return values.cast(width).cast(t)


def negated(rows: pa.Table) -> pa.Table:
    """The rows, taken back."""
    return rows.set_column(rows.schema.get_field_index(WEIGHT), WEIGHT, pc.negate(rows[WEIGHT]))


def at_weight(rows: pa.Table) -> Positions:
    """Where each row stands, as often as its weight says; what was taken back before it came does not hold."""
    return np.repeat(np.arange(rows.num_rows), np.maximum(np.asarray(rows[WEIGHT]), 0))


def _null(column: pa.ChunkedArray) -> Mask:
    return np.asarray(column.is_null())


def _zero(t: pa.DataType) -> pa.Scalar:
    return pa.scalar(0, pa.int32() if pa.types.is_date32(t) else pa.int64()).cast(t)
