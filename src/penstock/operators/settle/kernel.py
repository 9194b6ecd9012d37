"""The rows that hold, and may still change.

State is what holds, with weights, in runs sorted by a hash of what tells the rows apart (`__hash`): an epoch looks up
the rows of what it touches by binary search, puts its changes to them, and leaves the rest of the state alone. A
punctuation says of which rows nothing more comes. Those leave, each as often as its weight says.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.kernels.fold import matching, span_of
from penstock.kernels.hash import Hashes, hash_keys
from penstock.kernels.index import Mask, distinct
from penstock.kernels.stateful import DEAD, Held, Orders, Stepped
from penstock.kernels.weights import net, spelled_out
from penstock.operators.distinct.kernel import Piece, by_hash, flags, pieces_of, tidied
from penstock.operators.top.kernel import Complete, rows_at, stored_at
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import SYNC, Schema
from penstock.plan.weight import without_weight


class HoldingKernel:
    """What operators have in common that keep the rows that hold. `keys` tell them apart; None if nothing does."""

    def __init__(self, below: Schema, keys: tuple[str, ...] | None) -> None:
        self.stored = below.arrow
        self.plain = without_weight(below)
        whole_rows = tuple(n for n in self.plain.names if not pa.types.is_nested(self.plain.type_of(n)) and n != SYNC)
        self.keys = whole_rows if keys is None else keys
        self.time = self.plain.times[0] if self.plain.times else None
        self.spread: tuple[tuple[str, ...], ...] = (self.keys,)
        self.needed: tuple[tuple[str, ...] | None, ...] = (None,)

    def now(self, arrived: pa.Table | None, pieces: Sequence[Piece]) -> pa.Table:
        """What holds of that to which changes have arrived. What held of it is marked dead."""
        if arrived is None or not arrived.num_rows:
            return self.stored.empty_table()
        wanted = distinct(np.sort(self.hashes(arrived)))
        found = [arrived.select(self.stored.names)]
        for piece in pieces:
            at = stored_at(piece, wanted)
            if len(at):
                found.append(rows_at(piece, at, self.stored.names))
                piece.set(DEAD, at)
        return net(found)

    def released(self, release: Sequence[Pattern], pieces: Sequence[Piece]) -> list[pa.Table]:
        """The rows that match, which are marked dead."""
        over = Complete(release, self.plain, self.keys, self.time) if self.keys else None
        found: list[pa.Table] = []
        for piece in pieces:
            mask: Mask | None = flags(matching(piece.rows, release)) if over is None else over.find(piece)
            if mask is not None and (mask := mask & ~piece.mark(DEAD)).any():
                found.append(piece.rows.filter(pa.array(mask)).select(self.stored.names))
                piece.kill(mask)
        return found

    def stepped(self, output: pa.Table, now: pa.Table, pieces: list[Piece]) -> Stepped:
        """The end of a step: what holds is stored."""
        pieces += pieces_of(now, self.hashes(now), self.time)
        dropped, marked, added, _ = tidied(pieces, 0, by_hash, lambda table: span_of(table, self.time))
        return Stepped(output, dropped, marked, added)

    def hashes(self, rows: pa.Table) -> Hashes:
        return hash_keys(rows, self.keys) if self.keys else np.zeros(rows.num_rows, dtype=np.uint64)


class SettleKernel(HoldingKernel):
    """`orders.release[0]` are patterns of rows that can no longer change.

    >>> from penstock.pattern.punctuation import PunctuationSet
    >>> s = Schema.parse("k string, n int, _weight bigint")
    >>> kernel = SettleKernel(s, ("k",))
    >>> rows = pa.table({"k": ["a", "b", "a", "a"], "n": [1, 1, 1, 2], "_weight": [1, 2, -1, 1]}, schema=s.arrow)
    >>> final = Pattern.parse("[{'a', 'b'}, *]", kernel.plain)
    >>> kernel.step([rows], [[]], Orders(((final,),), (PunctuationSet(kernel.plain),))).output.sort_by("k").to_pydict()
    {'k': ['a', 'b', 'b'], 'n': [2, 1, 1]}
    """

    def step(self, fresh: Sequence[pa.Table | None], held: Sequence[Sequence[Held]], orders: Orders) -> Stepped:
        """Put the changes to what holds; then let go of what is final."""
        pieces = [Piece.of(run) for run in held[0]]
        now = self.now(fresh[0], pieces)
        final = [self.stored.empty_table()]
        if release := orders.release[0]:
            ready = flags(matching(now, release))
            final += [now.filter(pa.array(ready)), *self.released(release, pieces)]
            now = now.filter(pa.array(~ready))
        return self.stepped(spelled_out(pa.concat_tables(final)), now, pieces)
