"""Duplicate elimination: each row once, at its first appearance.

State are the rows seen, in runs sorted by a hash of the whole row (`__hash`), so an epoch looks up its own rows by
binary search and leaves the rest of the state alone. Equal hashes are checked for equal rows: nulls are alike, NaN is
NaN, 0.0 is -0.0.

A punctuation says that matching rows never come again, so they need not be remembered. A frontier of time drops whole
runs by the bounds kept beside them; a run that it cuts is rewritten only when it lies behind half of the run's time,
so a slow frontier does not rewrite a large run in every epoch. Until then such rows are stored, but no answer counts
them. Other patterns mark rows dead at once.

`Piece` and `tidied` keep any set of runs small: dead rows go when they outnumber the others, and the smallest runs are
merged when there are more than eight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.fold import frontier_of, matching, span_of, tick, ticks
from penstock.kernels.hash import Hashes, hash_keys
from penstock.kernels.index import HASH, Mask, Positions, merged_order, order_of, pick, probe, same, whole
from penstock.kernels.stateful import DEAD, Answer, Fresh, Held, Orders, Stepped
from penstock.kernels.tiers import large, tier
from penstock.operators.distinct.operator import Distinct
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet

#: More runs than this are merged.
MOST_RUNS = 8

Span = tuple[int | None, int | None]


class DistinctKernel:
    """Each row once; `orders.release[0]` are patterns of rows that never come again.

    >>> from penstock.pattern.schema import Schema
    >>> schema = Schema.parse("trip int, stop string")
    >>> kernel = DistinctKernel(Distinct((), schema), "distinct-1")
    >>> rows = pa.table({"trip": [7, 8, 7], "stop": ["a", "a", "a"]}, schema=schema.arrow)
    >>> nothing = Orders(release=((),), settled=(PunctuationSet(schema),))
    >>> step = kernel.step([rows], [[]], nothing)
    >>> step.output.to_pydict()
    {'trip': [7, 8], 'stop': ['a', 'a']}
    >>> kernel.step([rows], [[Held("run", step.added[0].rows)]], nothing).output.num_rows
    0
    """

    def __init__(self, operator: Distinct, operator_id: str) -> None:
        self.operator_id = operator_id
        self.schema = operator.schema
        self.time = self.schema.times[0] if self.schema.times else None
        self.spread: tuple[tuple[str, ...], ...] = (self.schema.names,)
        self.needed: tuple[tuple[str, ...] | None, ...] = (None,)

    def step(self, fresh: Sequence[pa.Table | None], held: Sequence[Sequence[Held]], orders: Orders) -> Stepped:
        """The rows not seen before, in order of arrival."""
        release, settled = orders.release[0], orders.settled[0]
        rows = fresh[0] if fresh[0] is not None else self.schema.arrow.empty_table()
        new, hashes = self._new(rows.select(self.schema.names), held[0])
        pieces = [Piece.of(run) for run in held[0]]
        released = self._released(pieces, release, settled) if release else 0
        remembered = np.flatnonzero(~flags(matching(new, (*release, *settled)))) if len(settled) or release else None
        pieces += self._pieces(new, hashes, remembered)
        dropped, marked, added, kept = tidied(pieces, 0, by_hash, lambda table: span_of(table, self.time))
        asked = orders.ask[0] if orders.ask else ()
        return Stepped(
            output=new,
            dropped=dropped,
            marked=marked,
            added=added,
            answers=(counted([p.live for p in kept] if asked else (), asked, self.time, settled),),
            counts={"duplicates": rows.num_rows - new.num_rows, "released": released},
        )

    def _new(self, rows: pa.Table, held: Sequence[Held]) -> tuple[pa.Table, Hashes]:
        if not rows.num_rows:
            return rows, np.empty(0, np.uint64)
        hashes = hash_keys(rows, self.schema.names)
        first = np.sort(first_of_each(alike(rows, hashes)))
        if len(first) < rows.num_rows:
            rows, hashes = rows.take(pa.array(first)), hashes[first]
        seen = np.zeros(rows.num_rows, dtype=bool)
        order = order_of(hashes)
        for run in held:
            mine, theirs = probe(hashes[order], np.asarray(whole(run.rows[HASH])))
            mine = order[mine]
            seen[mine[equal_rows(rows, mine, run.rows, theirs, self.schema.names)]] = True
        if seen.any():
            rows, hashes = rows.filter(pa.array(~seen)), hashes[~seen]
        return rows.combine_chunks(), hashes

    def _pieces(self, rows: pa.Table, hashes: Hashes, chosen: Positions | None) -> list[Piece]:
        """What is to be remembered."""
        if chosen is None:
            return pieces_of(rows, hashes, self.time)
        return pieces_of(rows.take(pa.array(chosen)), hashes[chosen], self.time)

    def _released(self, pieces: list[Piece], release: Sequence[Pattern], settled: PunctuationSet) -> int:
        count = 0
        # Of all frontiers so far, since a run that an earlier one cut may not have been rewritten.
        bound = _bound((*release, *settled), self.time)
        others = [p for p in release if _bound((p,), self.time) is None]
        for piece in pieces:
            if bound is not None and piece.low is not None and piece.high is not None:
                assert self.time is not None
                if piece.high < bound:
                    count += piece.kill(np.ones(piece.rows.num_rows, dtype=bool))
                elif piece.low < bound and 2 * (bound - piece.low) > piece.high - piece.low:
                    count += piece.kill(ticks(piece.rows[self.time]) < bound)
                    piece.rewrite = True
            if others:
                count += piece.kill(flags(matching(piece.rows, others)))
        return count


def _bound(patterns: Iterable[Pattern], time: str | None) -> int | None:
    """The first tick that is not yet over according to frontiers of time among the patterns."""
    found = [
        tick(bound, p.schema.type_of(time)) + inclusive
        for p in patterns
        if time is not None
        for bound, inclusive in filter(None, [frontier_of(p, time)])
    ]
    return max(found, default=None)


@dataclass
class Piece:
    """A run at work: a stored one under its name, or one to be. Marks are looked at only where they are needed."""

    rows: pa.Table
    low: int | None = None
    high: int | None = None
    group: int = 0
    name: str | None = None
    marks: dict[str, Mask] = field(default_factory=dict)
    stored: pa.Table | None = None
    changed: bool = False
    rewrite: bool = False

    @classmethod
    def of(cls, run: Held) -> Piece:
        return cls(run.rows, run.low, run.high, run.group, run.name, stored=run.marks)

    def mark(self, name: str) -> Mask:
        """The marks under a name, to be read; change them by `kill` or `set`."""
        if name not in self.marks:
            if self.stored is not None and name in self.stored.column_names:
                self.marks[name] = flags(self.stored[name])
            else:
                self.marks[name] = np.zeros(self.rows.num_rows, dtype=bool)
        return self.marks[name]

    def set(self, name: str, where: Mask | Positions) -> None:
        flagged = self.mark(name).copy()
        flagged[where] = True
        self.marks[name], self.changed = flagged, True

    def kill(self, where: Mask) -> int:
        """Mark rows dead; how many were not before."""
        fresh = where & ~self.mark(DEAD)
        count = int(np.count_nonzero(fresh))
        if count:
            self.set(DEAD, fresh)
        return count

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys([*(self.stored.column_names if self.stored is not None else ()), *self.marks]))

    @property
    def live(self) -> pa.Table:
        dead = self.mark(DEAD)
        return self.rows.filter(pa.array(~dead)) if dead.any() else self.rows


def pieces_of(rows: pa.Table, hashes: Hashes, time: str | None) -> list[Piece]:
    """Rows to be stored, sorted by hash. Those without a time have their own run, which no frontier drops."""
    order = order_of(hashes)
    table = rows.take(pa.array(order)).add_column(0, HASH, pa.array(hashes[order]))
    if time is None or not table[time].null_count:
        parts = [table]
    else:
        untimed = pc.is_null(table[time])
        parts = [table.filter(pc.invert(untimed)), table.filter(untimed)]
    return [Piece(p.combine_chunks(), *span_of(p, time)) for p in parts if p.num_rows]


def tidied(
    pieces: Iterable[Piece], port: int, order: Callable[[pa.Table], Positions], span: Callable[[pa.Table], Span]
) -> tuple[tuple[str, ...], tuple[tuple[str, pa.Table], ...], tuple[Fresh, ...], list[Piece]]:
    """What to drop, to mark and to add so that these pieces are stored in few runs; and the pieces then stored.

    Runs of one group are merged, those with and without bounds of time apart.
    """
    dropped: list[str] = []
    classes: dict[tuple[int, bool], list[Piece]] = {}
    for piece in pieces:
        size = piece.rows.num_rows
        dead = int(np.count_nonzero(piece.mark(DEAD))) if piece.changed else 0
        if dead == size:
            dropped += [piece.name] if piece.name is not None else []
            continue
        if 2 * dead > size or (dead and (piece.rewrite or piece.name is None)):
            dropped += [piece.name] if piece.name is not None else []
            piece = _joined([piece], None, span)
        classes.setdefault((piece.group, piece.low is None), []).append(piece)
    kept: list[Piece] = []
    for together in classes.values():
        if merged := merging(together):
            chosen = {id(p) for p in merged}
            dropped += [p.name for p in merged if p.name is not None]
            together = [p for p in together if id(p) not in chosen]
            one = _joined(merged, order, span)
            together += [one] if one.rows.num_rows else []
        kept += together
    marked = tuple((p.name, _table(p)) for p in kept if p.name is not None and p.changed)
    added = tuple(
        Fresh(port, p.rows, p.group, p.low, p.high, _table(p) if p.names else None) for p in kept if p.name is None
    )
    return tuple(dropped), marked, added, kept


def merging(pieces: Sequence[Piece]) -> list[Piece]:
    """Which of some pieces to merge, if they are too many."""
    sizes = [p.rows.num_rows for p in pieces]
    new = sum(n for n, p in zip(sizes, pieces) if p.name is None)
    return [pieces[i] for i in tier(sizes, MOST_RUNS, large(sizes, new))]


def _table(piece: Piece) -> pa.Table:
    return pa.table({name: pa.array(piece.mark(name)) for name in piece.names})


def _joined(
    pieces: Sequence[Piece], order: Callable[[pa.Table], Positions] | None, span: Callable[[pa.Table], Span]
) -> Piece:
    """One piece of the live rows of several, with their other marks."""
    alive = [~p.mark(DEAD) for p in pieces]
    rows = pa.concat_tables([p.rows.filter(pa.array(a)) for p, a in zip(pieces, alive)]).combine_chunks()
    names = [n for n in dict.fromkeys(n for p in pieces for n in p.names) if n != DEAD]
    marks = {n: np.concatenate([p.mark(n)[a] for p, a in zip(pieces, alive)]) for n in names}
    if order is not None:
        sorted_ = order(rows)
        rows, marks = rows.take(pa.array(sorted_)), {n: m[sorted_] for n, m in marks.items()}
    return Piece(rows, *span(rows), group=pieces[0].group, marks=marks)


def by_hash(table: pa.Table) -> Positions:
    return merged_order(np.asarray(whole(table[HASH])))


def counted(
    tables: Iterable[pa.Table], asked: Sequence[Pattern], time: str | None, settled: PunctuationSet | None = None
) -> tuple[Answer, ...]:
    """How many rows match each pattern, and the latest of their ticks; rows that are settled do not count."""
    kept = [t.filter(pc.invert(settled.matches(t))) if settled else t for t in tables]
    answers = []
    for pattern in asked:
        found = [t.filter(pattern.matches(t)) for t in kept]
        latest = [pc.max(t[time]) for t in found if time is not None and t.num_rows]
        known = [int(ticks(pa.array([v.as_py()], v.type))[0]) for v in latest if v.is_valid]
        answers.append(Answer(sum(t.num_rows for t in found), max(known, default=None)))
    return tuple(answers)


def flags(mask: pa.Array | pa.ChunkedArray) -> Mask:
    return np.asarray(mask if isinstance(mask, pa.ChunkedArray) else mask.to_numpy(zero_copy_only=False), dtype=bool)


def equal_rows(a: pa.Table, i: Positions, b: pa.Table, j: Positions, names: Sequence[str]) -> Mask:
    """Whether row i[k] of one table equals row j[k] of another in the named columns, nulls and NaN alike."""
    result = np.ones(len(i), dtype=bool)
    for name in names if len(i) else ():
        result &= same(pick(a, name, i), pick(b, name, j), null_safe=True)
    return result


def alike(rows: pa.Table, hashes: Hashes, exact: bool = False) -> Positions:
    """A number for each row, the same for rows that are equal and for no others; numbers count from 0.

    `exact` says that equal hashes mean equal rows, so there is nothing to compare.
    """
    order = order_of(hashes)
    again = hashes[order[1:]] == hashes[order[:-1]]
    pairs = np.flatnonzero(again)
    names = rows.column_names
    if not exact and not equal_rows(rows, order[pairs], rows, order[pairs + 1], names).all():
        # Different rows under one hash: so rare that sorting everything does not matter.
        return ranks(rows, [(n, False) for n in names])
    result = np.zeros(len(hashes), dtype=np.int64)
    result[order[1:]] = np.cumsum(~again)
    return result


def ranks(table: pa.Table, by: Sequence[tuple[str, bool]]) -> Positions:
    """The rank of each row, from 0 without gaps, the same for equal rows; nulls are equal and so is NaN.

    >>> ranks(pa.table({"a": ["x", None, "x", "b"]}), [("a", True)]).tolist()
    [0, 2, 0, 1]
    """
    result: Positions | None = None
    for name, down in by:
        found = pc.rank(table[name], sort_keys="descending" if down else "ascending", tiebreaker="dense")
        rank = np.asarray(found).astype(np.int64) - 1
        if result is not None and len(rank):
            rank = np.unique(result * (int(rank.max()) + 1) + rank, return_inverse=True)[1].astype(np.int64)
        result = rank
    return np.zeros(table.num_rows, dtype=np.int64) if result is None else result


def first_of_each(group: Positions) -> Positions:
    """Where each of the numbers 0, 1, … appears first.

    >>> first_of_each(np.array([1, 0, 1])).tolist()
    [1, 0]
    """
    first = np.zeros(int(group.max()) + 1 if len(group) else 0, dtype=np.int64)
    first[group[::-1]] = np.arange(len(group) - 1, -1, -1)
    return first
