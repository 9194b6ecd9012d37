"""Events held back until orders name them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.fold import matching, span_of, ticks
from penstock.kernels.index import Positions
from penstock.kernels.stateful import DEAD, Held, Orders, Stepped
from penstock.operators.align.operator import Align
from penstock.operators.distinct.kernel import Piece, flags, tidied
from penstock.operators.top.kernel import Complete


class AlignKernel:
    """`orders.release[0]` are patterns of events that leave; those without a time have nothing to wait for.

    >>> from penstock.pattern.pattern import Pattern
    >>> from penstock.pattern.punctuation import PunctuationSet
    >>> from penstock.pattern.schema import Schema
    >>> schema = Schema.parse("t int", "t")
    >>> kernel = AlignKernel(Align((), schema, time="t", slack=0, block=0), "align-1")
    >>> rows = pa.table({"t": [3, 8, None]}, schema=schema.arrow)
    >>> orders = Orders(((Pattern.parse("[< 5]", schema),),), (PunctuationSet(schema),))
    >>> step = kernel.step([rows], [[]], orders)
    >>> step.output["t"].to_pylist(), step.added[0].rows["t"].to_pylist()
    ([3, None], [8])
    """

    def __init__(self, operator: Align, operator_id: str) -> None:
        self.schema, self.time = operator.schema, operator.time
        self.spread: tuple[tuple[str, ...], ...] = (operator.schema.names,)
        self.needed: tuple[tuple[str, ...] | None, ...] = (None,)

    def step(self, fresh: Sequence[pa.Table | None], held: Sequence[Sequence[Held]], orders: Orders) -> Stepped:
        """Let go of what the orders name, and keep the rest."""
        rows = fresh[0] if fresh[0] is not None else self.schema.arrow.empty_table()
        rows = rows.select(self.schema.names)
        pieces = [Piece.of(run) for run in held[0]]
        leaving: list[pa.Table] = []
        if orders.release[0]:
            over = Complete(orders.release[0], self.schema, self.schema.names, self.time)
            for piece in pieces:
                found = over.find(piece)
                if found is not None and (found := found & ~piece.mark(DEAD)).any():
                    leaving.append(piece.rows.filter(pa.array(found)))
                    piece.kill(found)
        now = flags(pc.or_(matching(rows, orders.release[0]), pc.is_null(rows[self.time])))
        leaving.append(rows.filter(pa.array(now)))
        kept = rows.filter(pa.array(~now)).combine_chunks()
        pieces += [Piece(kept, *span_of(kept, self.time))] if kept.num_rows else []
        dropped, marked, added, _ = tidied(pieces, 0, self._by_time, lambda table: span_of(table, self.time))
        output = pa.concat_tables(leaving).combine_chunks()
        return Stepped(output, dropped, marked, added)

    def _by_time(self, table: pa.Table) -> Positions:
        return np.argsort(ticks(table[self.time]), kind="stable")
