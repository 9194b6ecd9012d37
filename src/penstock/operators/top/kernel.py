"""The best n rows of each group, kept until the group is complete.

State are the best rows so far, at most n of a group, in runs sorted by a hash of the grouping attributes. An epoch
looks up the groups of its own rows by binary search and leaves the others alone: of theirs and the stored ones the
best n stay, the rest is marked dead. Sorting whole rows is needed only among those that are equal in the first
attribute of the order at the place where n rows are full.

When a group is full, no row can enter that is worse than the last of the n by the first attribute of the order. Those
upstream are told so: `not [speed < 40]`, or `not [segment = 7, speed < 40]` where there are groups, whenever it
tightens. It changes no result, whatever they do about it:

    Let f be the feedback, issued when the n rows H of group g were held, and let r be a later row of g that matches f.
    r is worse than each row of H by the first attribute alone: strictly, so how ties are broken does not matter; and
    not null, which no pattern matches. (NaN, which may match, is worse than every number either way.) A row of H leaves
    the state in two ways. It may make room for a better one: then there are still n rows of g better than r. Or g is
    given out when punctuation says that it is complete: then r does not come, or the punctuation would be false. So
    when g is given out, r is not among the best n, with or without r in the input; and since r was never held, nothing
    else was pushed out by it. The same holds for any set of such rows, so for every way to drop some of them. (A group
    that is purged because nobody wants it is never given out again, so of that nothing is to be shown.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.duck import query
from penstock.kernels.fold import frontier_of, is_tickable, matching, span_of, tick, ticks
from penstock.kernels.hash import Hashes, hash_keys
from penstock.kernels.index import HASH, Mask, Positions, distinct, expand, order_of, pick, ranges, whole
from penstock.kernels.release import Selection
from penstock.kernels.sorted_run import SortedRun
from penstock.kernels.stateful import DEAD, Held, Orders, Stepped
from penstock.operators.distinct.kernel import Piece, alike, by_hash, tidied
from penstock.operators.top.operator import Top
from penstock.pattern.feedback import Feedback, Intent
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import equal, greater, less

#: Groups that one epoch of one bucket issues feedback for at most: those with the most arrivals.
MOST_ISSUED = 64

_GROUP = "__group"
#: So many rows are sorted before a query would be under way.
_FEW = 20_000
#: The places of null and NaN in an order: behind everything else.
_NULL, _NAN = np.iinfo(np.int64).max, np.iinfo(np.int64).max - 1


class TopKernel:
    """The best rows of each group. `orders.release[0]` are patterns over `per`: groups that are complete.

    >>> from penstock.pattern.punctuation import PunctuationSet
    >>> from penstock.pattern.schema import Schema
    >>> schema = Schema.parse("segment int, speed double")
    >>> kernel = TopKernel(Top((), schema, count=2, by=(("speed", True),), per=("segment",)), "top-1")
    >>> rows = pa.table({"segment": [7, 7, 8, 7], "speed": [40.0, 60.0, 10.0, 50.0]}, schema=schema.arrow)
    >>> done = Pattern.parse("[7, *]", schema)
    >>> step = kernel.step([rows], [[]], Orders(((),), (PunctuationSet(schema),)))
    >>> print(step.output.num_rows, step.added[0].rows.num_rows, *step.issued)
    0 3 not [7, < 50.0]
    >>> held = [Held("run", step.added[0].rows)]
    >>> kernel.step([None], [held], Orders(((done,),), (PunctuationSet(schema),))).output["speed"].to_pylist()
    [60.0, 50.0]
    """

    def __init__(self, operator: Top, operator_id: str) -> None:
        self.operator_id = operator_id
        self.schema, self.count, self.per = operator.schema, operator.count, operator.per
        self.order = operator.order
        self.talks = operator.switches.propagate
        #: The attribute by whose bounds whole runs are passed over: time first.
        ticking = [n for n in self.per if is_tickable(self.schema.type_of(n))]
        self.closing = next((n for n in ticking if n in self.schema.times), ticking[0] if ticking else None)
        self.spread: tuple[tuple[str, ...], ...] = (self.per,)
        self.needed: tuple[tuple[str, ...] | None, ...] = (None,)

    def shrink(self, rows: pa.Table) -> pa.Table:
        """The best n of each group among rows that arrive together; no other can be among the best n of all."""
        if rows.num_rows <= self.count:
            return rows
        group = self._groups(rows, hash_keys(rows, self.per))
        chosen, _ = best(rows, group, self.order, self.count)
        return rows if len(chosen) == rows.num_rows else rows.take(pa.array(chosen))

    def step(self, fresh: Sequence[pa.Table | None], held: Sequence[Sequence[Held]], orders: Orders) -> Stepped:
        """Take in what is good enough, then give out the groups that are complete."""
        arrived = fresh[0] if fresh[0] is not None else self.schema.arrow.empty_table()
        pieces = [Piece.of(run) for run in held[0]]
        new, hashes, issued, pruned = self._taken(arrived.select(self.schema.names), pieces)
        release = orders.release[0]
        leaving: list[pa.Table] = []
        if release:
            over = Complete(release, self.schema, self.per, self.closing)
            for piece in pieces:
                found = over.find(piece)
                if found is not None and (found := found & ~piece.mark(DEAD)).any():
                    leaving.append(piece.rows.filter(pa.array(found)).select(self.schema.names))
                    piece.kill(found)
            mask = np.asarray(matching(new, release).to_numpy(zero_copy_only=False), dtype=bool)
            leaving.append(new.filter(pa.array(mask)))
            new, hashes = new.filter(pa.array(~mask)), hashes[~mask]
            # What is said of a group that is complete is of no more use.
            issued = tuple(f for f in issued if not any(p.contains(f.pattern) for p in release))
        pieces += self._pieces(new, hashes)
        dropped, marked, added, _ = tidied(pieces, 0, by_hash, lambda table: span_of(table, self.closing))
        output = self._sorted(leaving)
        return Stepped(
            output=output,
            dropped=dropped,
            marked=marked,
            added=added,
            counts={"pruned": pruned, "released": output.num_rows},
            issued=issued,
        )

    def _taken(self, rows: pa.Table, pieces: Sequence[Piece]) -> tuple[pa.Table, Hashes, tuple[Feedback, ...], int]:
        """The rows that are now among the best, with their hashes; stored ones that no longer are get marked."""
        hashes = hash_keys(rows, self.per)
        if not rows.num_rows:
            return rows, hashes, (), 0
        wanted = distinct(np.sort(hashes))
        stored = [(piece, at) for piece in pieces if len(at := stored_at(piece, wanted))]
        table = pa.concat_tables([rows, *(rows_at(piece, at, self.schema.names) for piece, at in stored)])
        theirs = [np.asarray(whole(piece.rows[HASH]))[at] for piece, at in stored]
        group = self._groups(table, np.concatenate([hashes, *theirs]))
        chosen, key = best(table, group, self.order, self.count)
        kept = np.zeros(table.num_rows, dtype=bool)
        kept[chosen] = True
        first = rows.num_rows
        for piece, at in stored:
            lost = at[~kept[first : first + len(at)]]
            first += len(at)
            if len(lost):
                piece.set(DEAD, lost)
        issued = self._issued(table, group, key, kept, rows.num_rows)
        mine = kept[: rows.num_rows]
        return rows.filter(pa.array(mine)), hashes[mine], issued, table.num_rows - len(chosen)

    def _groups(self, table: pa.Table, hashes: Hashes) -> Positions:
        """A number for the group of each row, from 0."""
        if not self.per:
            return np.zeros(table.num_rows, dtype=np.int64)
        return alike(table.select(self.per), hashes)

    def _issued(
        self, table: pa.Table, group: Positions, key: Positions, kept: Mask, arrived: int
    ) -> tuple[Feedback, ...]:
        """What can no longer enter a group that is full, where that is more than could be said before."""
        if not self.order or not self.talks:
            return ()
        groups = int(group.max()) + 1
        after = _Fill.of(group, key, np.flatnonzero(kept), groups)
        before = _Fill.of(group, key, np.arange(arrived, table.num_rows), groups)
        full = after.size == self.count
        told = np.flatnonzero(full & ((before.size < self.count) | (after.worst < before.worst)))
        if len(told) > MOST_ISSUED:
            busy = np.bincount(group[:arrived], minlength=groups)[told]
            told = told[np.argsort(-busy, kind="stable")[:MOST_ISSUED]]
        (name, down), names = self.order[0], [*self.per, self.order[0][0]]
        values = pa.table({n: pick(table, n, after.at[told]) for n in names}).to_pylist()
        patterns = (
            Pattern.by_name(
                self.schema, {n: (less if down else greater)(v) if n == name else equal(v) for n, v in row.items()}
            )
            for row in values
            if not any(_is_unnamed(v) for v in row.values())
        )
        return tuple(Feedback(Intent.ASSUMED, p) for p in patterns if not p.is_empty)

    def _pieces(self, rows: pa.Table, hashes: Hashes) -> list[Piece]:
        """Rows to be stored, sorted by hash; those without a time in a run of their own, which no frontier reaches."""
        order = order_of(hashes)
        table = rows.take(pa.array(order)).add_column(0, HASH, pa.array(hashes[order]))
        parts = [table]
        if self.closing is not None and table[self.closing].null_count:
            untimed = pc.is_null(table[self.closing])
            parts = [table.filter(pc.invert(untimed)), table.filter(untimed)]
        return [Piece(p.combine_chunks(), *span_of(p, self.closing)) for p in parts if p.num_rows]

    def _sorted(self, leaving: Sequence[pa.Table]) -> pa.Table:
        """Group by group, the best first."""
        table = pa.concat_tables([self.schema.arrow.empty_table(), *leaving])
        if table.num_rows < 2:
            return table
        return table.take(pc.sort_indices(table, sort_keys=_sort_keys([*((n, False) for n in self.per), *self.order])))


@dataclass(frozen=True)
class _Fill:
    """Of each group: how many rows of it there are, the place of the worst in the order, and where that row is."""

    size: Positions
    worst: Positions
    at: Positions

    @classmethod
    def of(cls, group: Positions, key: Positions, among: Positions, groups: int) -> _Fill:
        size = np.bincount(group[among], minlength=groups)
        arranged = among[np.lexsort((key[among], group[among]))]
        last = np.cumsum(size) - 1
        at = np.zeros(groups, dtype=np.int64)
        some = size > 0
        at[some] = arranged[last[some]]
        return cls(size, key[at], at)


class Complete:
    """The rows of groups that are complete: by the bounds of runs where time tells, by hash where values are listed."""

    def __init__(self, release: Iterable[Pattern], schema: Any, per: tuple[str, ...], closing: str | None) -> None:
        self.closing = closing
        self.everything = any(not p.restricted for p in release)
        frontiers = [(p, frontier_of(p, closing)) for p in release]
        t = schema.type_of(closing) if closing is not None else None
        self.bound = max((tick(f[0], t) + f[1] for _, f in frontiers if f is not None), default=None)
        others = [p for p, f in frontiers if f is None]
        self.others = Selection(others, schema, per, None) if others and not self.everything else None

    def find(self, piece: Piece) -> Mask | None:
        size = piece.rows.num_rows
        if self.everything:
            return np.ones(size, dtype=bool)
        found = self.others.find(SortedRun(piece.rows, None)) if self.others is not None else None
        if self.bound is None or piece.low is None or piece.high is None or piece.low >= self.bound:
            return found
        assert self.closing is not None
        past = np.ones(size, dtype=bool) if piece.high < self.bound else ticks(piece.rows[self.closing]) < self.bound
        return past if found is None else past | found


def best(
    table: pa.Table, group: Positions, order: Sequence[tuple[str, bool]], count: int
) -> tuple[Positions, Positions]:
    """The positions of the best rows of each group, ascending; and for all rows their place by the first attribute.

    >>> table = pa.table({"v": [3, None, 5, 5, 5], "w": [0, 0, 3, 1, 2]})
    >>> best(table, np.array([0, 0, 1, 1, 1]), [("v", True), ("w", False)], 2)[0].tolist()
    [0, 1, 3, 4]
    """
    key = places(table[order[0][0]], order[0][1]) if order else np.zeros(table.num_rows, dtype=np.int64)
    size = np.bincount(group)
    over = size > count
    if not over.any():
        return np.arange(table.num_rows), key
    limit = _limits(group, key, size, count)
    crowded = over[group]
    kept = ~crowded | (key < limit[group])
    room = count - np.bincount(group[kept], minlength=len(size))
    tied = np.flatnonzero(crowded & (key == limit[group]))
    tied = tied[_arranged(table, tied, group, order[1:])]
    # Now group by group, each from the best: as many as there is room for.
    fewer = np.bincount(group[tied], minlength=len(size))
    rank = np.arange(len(tied)) - (np.cumsum(fewer) - fewer)[group[tied]]
    kept[tied[rank < room[group[tied]]]] = True
    return np.flatnonzero(kept), key


def _limits(group: Positions, key: Positions, size: Positions, count: int) -> Positions:
    """The key of the last row that is surely needed, for each group that has more rows than that."""
    limit = np.zeros(len(size), dtype=np.int64)
    if len(size) == 1:
        limit[0] = np.partition(key, count - 1)[count - 1]
    elif len(key) <= _FEW:
        over = size > count
        limit[over] = key[np.lexsort((key, group))[(np.cumsum(size) - size)[over] + count - 1]]
    else:
        # Heaps of n: several times faster than sorting everything.
        sql = f"SELECT g, list_last(min(k, {count})) AS k FROM keyed GROUP BY g HAVING count(*) > {count}"
        found = query(sql, keyed=pa.table({"g": group, "k": key}))
        limit[np.asarray(found["g"])] = np.asarray(found["k"])
    return limit


def _arranged(table: pa.Table, rows: Positions, group: Positions, order: Sequence[tuple[str, bool]]) -> Positions:
    """How to sort some rows by group, then by the order."""
    columns = {_GROUP: pa.array(group[rows]), **{n: pick(table, n, rows) for n, _ in order}}
    found = pc.sort_indices(pa.table(columns), sort_keys=_sort_keys([(_GROUP, False), *order]))
    return np.asarray(found).astype(np.int64)


def _sort_keys(order: Iterable[tuple[str, bool]]) -> list[tuple[str, str]]:
    return [(name, "descending" if down else "ascending") for name, down in order]


def places(column: pa.ChunkedArray, down: bool) -> Positions:
    """A number for each value that grows along the order: equal for equal values; then come NaN and null.

    >>> places(pa.chunked_array([[1.5, None, -2.0, float("nan"), 0.0, -0.0]]), True).argsort(kind="stable").tolist()
    [0, 4, 5, 2, 3, 1]
    """
    array = whole(column)
    null = np.asarray(array.is_null())
    special = null
    if pa.types.is_floating(array.type):
        values = np.asarray(pc.fill_null(array.cast(pa.float64()), 0.0)) + 0.0  # Makes -0.0 the same as 0.0.
        special = null | np.isnan(values)
        bits = values.view(np.int64)
        key = np.where(bits < 0, bits ^ np.int64(np.iinfo(np.int64).max), bits)
    elif is_tickable(array.type) or pa.types.is_boolean(array.type):
        plain = array.cast(pa.int32()) if pa.types.is_date32(array.type) else array
        key = np.array(pc.fill_null(plain.cast(pa.int64()), 0))
    else:
        key = _ranked(array)
    key = ~key if down else key
    if special.any():
        known = key[~special]
        if len(known) and known.max() >= _NAN:
            key = ~_ranked(array) if down else _ranked(array)
        key[special & ~null], key[null] = _NAN, _NULL
    return key


def _ranked(array: pa.Array) -> Positions:
    return np.array(pc.rank(array, sort_keys="ascending", tiebreaker="dense"), dtype=np.int64)


def stored_at(piece: Piece, wanted: Hashes) -> Positions:
    """The live rows of a piece whose hash is one of the wanted, which are sorted."""
    _, begin, end = ranges(wanted, np.asarray(whole(piece.rows[HASH])))
    parts = [at for _, at in expand(begin, end)]
    at = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
    return at[~piece.mark(DEAD)[at]]


def rows_at(piece: Piece, at: Positions, names: Sequence[str]) -> pa.Table:
    return pa.table([pick(piece.rows, n, at) for n in names], names=list(names))


def _is_unnamed(value: Any) -> bool:
    """Null and NaN, which no restriction can name."""
    return value is None or (isinstance(value, float) and math.isnan(value))
