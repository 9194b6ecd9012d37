"""Sorting a stream: exactly, as far as punctuation completes the order, or with a bounded buffer (BSort).

Exact: rows lie in runs sorted by the attributes of the order and then by `__seq`, the number of their arrival. The
patterns to release cover a prefix of the order, so in each run what leaves is a prefix too, found by a search that
looks at a few rows. Only what leaves is sorted together. Taken prefixes are marked dead; a run is rewritten when more
than half of it is gone. `group` of a run is the number of the next arrival after its last one.

BSort with slack n: a buffer of n + 1 rows gives up its least row whenever it is full, of equal ones the earliest.
Rows that are at most n places late come out in order. The buffer is the state, in order of arrival.

Nulls and NaN come last in either direction, NaN first of them.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.fold import is_tickable, matching, span_of, ticks
from penstock.kernels.index import Positions
from penstock.kernels.stateful import DEAD, Fresh, Held, Orders, Stepped
from penstock.operators.distinct.kernel import Piece, counted, merging
from penstock.operators.order_by.operator import OrderBy
from penstock.pattern.pattern import Pattern

#: The number of a row's arrival.
SEQ = "__seq"
#: Rows looked at in one round of the search for the end of a prefix.
_PROBES = 64


class OrderKernel:
    """Rows in order. `orders.release[0]` are patterns that together cover a prefix of the order.

    >>> from penstock.pattern.punctuation import PunctuationSet
    >>> from penstock.pattern.schema import Schema
    >>> schema = Schema.parse("t int")
    >>> kernel = OrderKernel(OrderBy((), schema, by=(("t", False),)), "order-1")
    >>> below = Pattern.parse("[< 4]", schema)
    >>> orders = Orders(release=((below,),), settled=(PunctuationSet(schema, (below,)),))
    >>> step = kernel.step([pa.table({"t": [3, 9, 1, 5]}, schema=schema.arrow)], [[]], orders)
    >>> step.output["t"].to_pylist(), step.added[0].rows["t"].to_pylist()
    ([1, 3], [5, 9])
    """

    def __init__(self, operator: OrderBy, operator_id: str) -> None:
        self.operator_id = operator_id
        self.schema = operator.schema
        self.by = operator.by
        self.slack = operator.slack
        self.time = self.schema.times[0] if self.schema.times else None
        self.spread: tuple[tuple[str, ...], ...] = ((),)
        self.needed: tuple[tuple[str, ...] | None, ...] = (None,)

    def step(self, fresh: Sequence[pa.Table | None], held: Sequence[Sequence[Held]], orders: Orders) -> Stepped:
        """What can leave, in order."""
        rows = fresh[0] if fresh[0] is not None else self.schema.arrow.empty_table()
        rows = rows.select(self.schema.names)
        return self._exact(rows, held[0], orders) if self.slack is None else self._approximate(rows, held[0], orders)

    def _exact(self, rows: pa.Table, held: Sequence[Held], orders: Orders) -> Stepped:
        release = orders.release[0]
        arrived = max((run.group for run in held), default=0)
        leaving: list[pa.Table] = []
        staying: list[Piece] = []
        dropped: list[str] = []
        marked: list[tuple[str, pa.Table]] = []
        gone: dict[str, int] = {}
        for run in held:
            size, start = run.rows.num_rows, _taken(run.marks)
            end = reach(run.rows, start, release)
            leaving += [run.rows.slice(start, end - start)] if end > start else []
            if 2 * end > size:
                dropped.append(run.name)
                rest = run.rows.slice(end)
                staying += [Piece(rest, *span_of(rest, self.time), run.group)] if end < size else []
            else:
                staying.append(Piece.of(run))
                gone[run.name] = end
                if end > start:
                    marked.append((run.name, pa.table({DEAD: pa.array(np.arange(size) < end)})))
        if rows.num_rows:
            numbered = rows.append_column(SEQ, pa.array(np.arange(arrived, arrived + rows.num_rows)))
            arrived += rows.num_rows
            numbered = numbered.take(pa.array(sorting(numbered, self.by)))
            # `settled` too: a row of an earlier promise, if one slips through, has nothing to wait for.
            end = reach(numbered, 0, (*release, *orders.settled[0]))
            leaving += [numbered.slice(0, end)] if end else []
            rest = numbered.slice(end)
            staying += [Piece(rest, *span_of(rest, self.time), arrived)] if rest.num_rows else []
        if small := merging(staying):
            chosen = {id(p) for p in small}
            names = [p.name for p in small if p.name is not None]
            dropped += names
            marked = [(n, m) for n, m in marked if n not in names]
            together = self._merged([p.rows.slice(gone.get(p.name or "", 0)) for p in small])
            staying = [p for p in staying if id(p) not in chosen]
            staying.append(Piece(together, *span_of(together, self.time), max(p.group for p in small)))
        output = self._merged(leaving) if leaving else None
        asked = orders.ask[0] if orders.ask else ()
        kept = [p.rows.slice(gone.get(p.name or "", 0)) for p in staying]
        return Stepped(
            output=self.schema.arrow.empty_table() if output is None else output.select(self.schema.names),
            dropped=tuple(dropped),
            marked=tuple(marked),
            added=tuple(Fresh(0, p.rows.combine_chunks(), p.group, p.low, p.high) for p in staying if p.name is None),
            answers=(counted(kept if asked else (), asked, self.time),),
            counts={"released": output.num_rows if output is not None else 0},
        )

    def _merged(self, runs: Sequence[pa.Table]) -> pa.Table:
        """Sorted runs as one, in the order of the attributes and, where these are equal, of arrival."""
        table = pa.concat_tables(runs).combine_chunks()
        if len(runs) == 1:
            return table
        return table.take(pa.array(sorting(table, (*self.by, (SEQ, False))))).combine_chunks()

    def _approximate(self, rows: pa.Table, held: Sequence[Held], orders: Orders) -> Stepped:
        assert self.slack is not None
        ended = any(not p.restricted for p in orders.release[0])
        buffer = [run.rows for run in held]
        asked = orders.ask[0] if orders.ask else ()
        if not rows.num_rows and not ended:
            kept = counted(buffer if asked else (), asked, self.time)
            return Stepped(output=self.schema.arrow.empty_table(), answers=(kept,))
        table = pa.concat_tables([*buffer, rows]).combine_chunks()
        leaving, waiting = bsort(sorting(table, self.by), self.slack)
        if ended:
            leaving, waiting = np.concatenate([leaving, waiting]), waiting[:0]
        rest = table.take(pa.array(np.sort(waiting))).combine_chunks()
        return Stepped(
            output=table.take(pa.array(leaving)),
            dropped=tuple(run.name for run in held),
            added=(Fresh(0, rest, 0, *span_of(rest, self.time)),) if rest.num_rows else (),
            answers=(counted((rest,) if asked else (), asked, self.time),),
            counts={"released": len(leaving)},
        )


def bsort(order: Positions, slack: int) -> tuple[Positions, Positions]:
    """What BSort makes of rows of which `order` lists the positions from least to greatest.

    Positions in the order in which they leave, and those left in the buffer from least to greatest.

    >>> values = np.array([1, 2, 3, 5, 4, 6, 7, 9, 10, 8])
    >>> left, waiting = bsort(np.argsort(values), 1)
    >>> values[left].tolist(), values[waiting].tolist()
    ([1, 2, 3, 4, 5, 6, 7, 9, 8], [10])
    """
    count = len(order)
    out = max(count - slack, 0)
    # The k-th least leaves when row k + slack arrives, if it is there by then. If all are, the order is exact.
    if bool(np.all(order[:out] <= np.arange(out) + slack)):
        return order[:out], order[out:]
    rank = np.empty(count, dtype=np.int64)
    rank[order] = np.arange(count)
    arriving = rank.tolist()
    heap = arriving[:slack]
    heapq.heapify(heap)
    # One step per row, on plain integers: what leaves depends on every row before, so there is no array form of it.
    left = [heapq.heappushpop(heap, r) for r in arriving[slack:]]
    return order[np.asarray(left, dtype=np.int64)], order[np.sort(np.asarray(heap, dtype=np.int64))]


def sorting(table: pa.Table, by: Sequence[tuple[str, bool]]) -> Positions:
    """The positions of rows in order, equal ones as they lie; `by` lists (attribute, descending)."""
    if all(is_tickable(table[n].type) and not down and not table[n].null_count for n, down in by):
        first = ticks(table[by[0][0]])
        if len(by) == 1:
            done = bool(np.all(first[:-1] <= first[1:]))
            return np.arange(len(first)) if done else np.argsort(first, kind="stable")
        return np.lexsort([ticks(table[n]) for n, _ in reversed(by)])
    keys = [(n, "descending" if down else "ascending") for n, down in by]
    return np.asarray(pc.sort_indices(table, sort_keys=keys)).astype(np.int64)


def reach(rows: pa.Table, start: int, patterns: Sequence[Pattern]) -> int:
    """Where the rows end that match one of the patterns, given that these are a prefix of the sorted rows.

    >>> from penstock.pattern.schema import Schema
    >>> reach(pa.table({"t": range(1000)}), 0, [Pattern.parse("[< 700]", Schema.parse("t bigint"))])
    700
    """
    if not patterns or start >= rows.num_rows:
        return start
    names = list(dict.fromkeys(n for p in patterns for n in p.restricted))
    if any(not p.restricted for p in patterns):
        return int(rows.num_rows)
    looked = rows.select(names)
    low, high = start, rows.num_rows
    while low < high:
        probes = np.unique(np.linspace(low, high - 1, min(_PROBES, high - low)).astype(np.int64))
        hit = np.asarray(matching(looked.take(pa.array(probes)), patterns).to_numpy(zero_copy_only=False))
        met = int(np.argmin(hit)) if not hit.all() else len(hit)
        if met < len(probes):
            high = int(probes[met])
        if met:
            low = int(probes[met - 1]) + 1
    return low


def _taken(marks: pa.Table | None) -> int:
    """How many rows have left: the length of the prefix marked dead, by binary search."""
    low, high = 0, 0 if marks is None else marks.num_rows
    while marks is not None and low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if marks[DEAD][middle].as_py() else (low, middle)
    return low
