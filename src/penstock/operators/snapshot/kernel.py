"""What groups come to at every moment, told at once and corrected where rows begin, end, come or go.

State are the rows that hold at the time up to which all is final or later, with their weights, in runs sorted by a hash
of their group. Between two *boundaries*, moments at which a row begins or ends, a group comes to one result. An epoch
looks up the groups that it touches, and of these tells anew only what lies between the first and the last moment at
which something changes, and the stretch before and behind: what was told goes with weight −1, what holds with +1, and
nothing is said of what is the same. What was told is computed again from the rows before, to the last bit.

Two kinds of boundaries outlive their rows, as *marks*. The last one before the time that is final: there the result
begins that may still be cut short. And the end of that result, should the row go altogether that begins there: what is
final must not be told again, which joining the two would need.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.failing import Failed
from penstock.kernels.fold import frontier_of, matching, tick
from penstock.kernels.hash import hash_keys
from penstock.kernels.index import Mask, Positions, distinct, expand
from penstock.kernels.stateful import DEAD, Circumstances, Held, Orders, Stepped
from penstock.kernels.ticks import Ticks
from penstock.kernels.weights import synced, weighted
from penstock.operators.aggregate.kernel import AggregateKernel
from penstock.operators.distinct.kernel import Piece, alike, first_of_each, flags, pieces_of
from penstock.operators.shared.stock import FOREVER, OWED, Stock, at_weight, moments
from penstock.operators.snapshot.intervals import Line, Stretches, above, nodes_of, touched
from penstock.operators.snapshot.operator import SnapshotAggregate
from penstock.operators.snapshot.told import as_often, but
from penstock.operators.snapshot.zeros import Zeros
from penstock.operators.top.kernel import rows_at, stored_at
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import SYNC, Attribute, Schema
from penstock.plan.weight import NEVER_CAME, WEIGHT, is_weighted, without_weight

#: The slice of state with the boundaries that outlive their rows.
MARKS = 2


class SnapshotKernel:
    """`orders.release[0]` are patterns of groups that are over, or say up to when all is final.

    >>> import penstock as ps
    >>> from penstock.analysis.speculate import speculate
    >>> from penstock.pattern.punctuation import PunctuationSet
    >>> stays = ps.stream("stays", "room string, since int, until int", lifetime=("since", "until"))
    >>> taken = stays.snapshot().group_by("room").agg(n="count(*)")
    >>> (operator,) = speculate([taken.operator], ps.Consistency.middle())
    >>> kernel = SnapshotKernel(operator, "snapshot-1")
    >>> rows = pa.table({"room": ["a", "a"], "since": [1, 4], "until": [9, 6], "_weight": [1, 1]})
    >>> step = kernel.step([rows], [[]], Orders(((),), (PunctuationSet(operator.schema),)))
    >>> [(row["since"], row["until"], row["n"]) for row in step.output.sort_by("since").to_pylist()]
    [(1, 4, 1), (4, 6, 2), (6, 9, 1)]
    """

    #: Its results are final as far as this has come.
    closing: str | None = SYNC

    def __init__(self, operator: SnapshotAggregate, operator_id: str) -> None:
        (below,) = operator.inputs
        self.output_schema, self.keys = operator.schema, operator.keys
        self.of_changes = is_weighted(below)
        self.start, self.end = below.schema.lifetime
        looked_at = {self.start, self.end, *self.keys, *(c for a in operator.aggregations for c in a.columns)}
        names = [n for n in below.schema.names if n in looked_at]
        plain = without_weight(below.schema)
        stored = pa.schema([(n, plain.type_of(n)) for n in names] + [(WEIGHT, pa.int64())])
        self.stock = Stock(stored, self.keys, self.start, self.end)
        self.payload = [n for n in names if n not in (self.start, self.end)]
        self.number = "_interval"
        while self.number in plain:
            self.number += "_"
        numbered = plain.extend([Attribute(self.number, pa.int64())])
        self.groups = AggregateKernel(
            numbered, (self.number, *self.keys), operator.aggregations, operator_id=operator_id, time=self.start
        )
        self.spread: tuple[tuple[str, ...], ...] = (self.keys,)
        self.needed: tuple[tuple[str, ...] | None, ...] = (tuple(n for n in below.schema.names if n in stored.names),)
        self.final = -FOREVER
        self.zero, self.copies = operator.empty == "zero", operator.copies
        self.failed: list[Failed] = []

    def under(self, circumstances: Circumstances) -> Self:
        """The same kernel for an epoch and a bucket, which knows up to when all has been final."""
        other = copy.copy(self)
        other.failed = []
        other.final = -FOREVER if circumstances.closed is None else circumstances.closed + 1
        return other

    @property
    def failed_schema(self) -> Schema:
        return self.groups.input_schema

    def step(self, fresh: Sequence[pa.Table | None], held: Sequence[Sequence[Held]], orders: Orders) -> Stepped:
        """Tell what changes; then forget what has ended."""
        pieces = [Piece.of(run) for run in held[0]]
        changes = [self._nothing]
        if fresh[0] is not None and fresh[0].num_rows:
            arrived = fresh[0]
            arrived = arrived if WEIGHT in arrived.column_names else weighted(arrived, 1)
            changes += self._revised(arrived, pieces)
        if orders.release[0]:
            self._forget(orders.release[0], pieces)
        dropped, marked, added = self.stock.stored(pieces, 0)
        output = synced(pa.concat_tables(changes), self.start, self.end)
        return Stepped(output.select(self.output_schema.names).cast(self.output_schema.arrow), dropped, marked, added)

    @property
    def _nothing(self) -> pa.Table:
        plain = [(a.name, a.type) for a in self.output_schema if a.name not in (SYNC, WEIGHT)]
        return pa.schema([*plain, (WEIGHT, pa.int64())]).empty_table()

    # --- what changes -----------------------------------------------------------------------------------------------

    def _revised(self, arrived: pa.Table, pieces: list[Piece]) -> list[pa.Table]:
        """What the results of the touched groups were where they change, and what they are."""
        rows_of = [p for p in pieces if p.group != MARKS]
        met = self.stock.meet(arrived, rows_of)
        pieces += self.stock.kept(met.after)
        was, now, change = self.stock.revised(met)
        if not change.num_rows:
            return []
        marks = self._marks(change, pieces)
        parts = [change, was, now, marks]
        keys, group = self._grouped(parts)
        cuts = np.cumsum([t.num_rows for t in parts])[:-1]
        of_change, of_was, of_now, of_marks = np.split(group, cuts)
        lonely = ~np.isin(of_marks, of_now)
        if lonely.any() and not self.zero:
            self._forget_marks(change, pieces)
            pieces += self._as_marks(keys.take(pa.array(cuts[-1] + np.flatnonzero(~lonely))), _at(marks)[~lonely])
        same = np.zeros(change.num_rows, dtype=np.int64)
        if self.payload:
            same = alike(change.select(self.payload), hash_keys(change, self.payload))
        changed = touched(
            of_change, same, self.stock.starts(change), self.stock.ends(change), np.asarray(change[WEIGHT])
        )
        where = changed.group
        if not len(where):
            return []  # Rows that have changed their ends among each other: at every moment as many hold as before.
        sides = [self._side(rows, of_rows) for rows, of_rows in ((was, of_was), (now, of_now))]
        groups = np.concatenate([*(np.concatenate([s.group, s.group]) for s in sides), of_marks])
        zeros = [self._zeros(keys, group, side, (of_marks, _at(marks))) for side in sides]
        stretch = changed.widened(groups, np.concatenate([*(s.moments for s in sides), _at(marks)]))
        # The stretch before the first change and the one behind the last may be told otherwise; all else stays.
        sides = [s.within(stretch) for s in sides]
        ends = (changed.low, changed.high, stretch.low, stretch.high)
        line = Line.through(*(s.moments for s in sides), _at(marks), *ends)
        lows, highs, first, last = (line.place(where, at) for at in ends)
        stay = np.concatenate([line.place(of_marks, _at(marks)), first, last])
        bounds = [np.unique(np.concatenate([s.places(line), stay])) for s in sides]
        kept = self._outliving(line, bounds, sides[0], where, lows, highs)
        if len(kept):
            bounds[1] = np.union1d(bounds[1], kept)
            pieces += self._marked(kept, line, keys, group)
        told, silent = self._answers(sides[0], line, bounds[0], (first, last), zeros[0])
        tells, noisy = self._answers(sides[1], line, bounds[1], (first, last), zeros[1])
        self.failed += but(noisy, silent)
        return [as_often(told, self.copies, -1), as_often(tells, self.copies, 1)]

    def _grouped(self, parts: Sequence[pa.Table]) -> tuple[pa.Table, Positions]:
        """The keys of the rows of several tables, and a number for the group of each."""
        if not self.keys:
            rows = sum(t.num_rows for t in parts)
            return pa.table({"__none": pa.nulls(rows)}), np.zeros(rows, dtype=np.int64)
        keys = pa.concat_tables([t.select(self.keys) for t in parts])
        return keys, alike(keys, self.stock.hashes(keys))

    def _side(self, rows: pa.Table, group: Positions) -> _Holding:
        at = at_weight(rows)
        rows = rows.take(pa.array(at))
        return _Holding(rows, group[at], self.stock.starts(rows), self.stock.ends(rows))

    def _zeros(
        self, keys: pa.Table, group: Positions, side: _Holding, marks: tuple[Positions, Ticks]
    ) -> tuple[Zeros, Ticks] | None:
        """What is told where nothing holds, and from when on of each group."""
        if not self.zero:
            return None
        firsts = first_of_each(group)
        found = Zeros(self.groups, keys.take(pa.array(firsts)))
        return found, found.first(len(firsts), (side.group, side.start), marks)

    def _outliving(
        self,
        line: Line,
        bounds: Sequence[Positions],
        before: _Holding,
        where: Positions,
        low: Positions,
        high: Positions,
    ) -> Positions:
        """The boundaries that vanish and must not: what ends there began before the time that is final."""
        old, new = bounds
        edge = line.place(where, np.full(len(where), self.final))
        first = np.searchsorted(old, edge)
        some = (first > 0) & (first < len(old))
        where, low, high, edge, first = where[some], low[some], high[some], edge[some], first[some]
        end, begin = old[first], old[first - 1]
        there = np.searchsorted(new, edge)
        next_ = new[np.minimum(there, len(new) - 1)] if len(new) else np.full(len(end), -1)
        stays = (there < len(new)) & (next_ <= end)
        inside = (line.group(begin) == where) & (line.group(end) == where) & (low <= end) & (end <= high)
        begin, end = begin[inside & ~stays], end[inside & ~stays]
        spans = np.sort(line.place(before.group, before.start)), np.sort(line.place(before.group, before.end))
        # Rows that have begun by then, but for those that have ended.
        begun = np.searchsorted(spans[0], begin, side="right")
        holds = self.zero | (begun > np.searchsorted(spans[1], begin, side="right"))
        found: Positions = end[holds]
        return found

    def _answers(
        self,
        side: _Holding,
        line: Line,
        bounds: Positions,
        stretch: tuple[Positions, Positions],
        zeros: tuple[Zeros, Ticks] | None,
    ) -> tuple[pa.Table, list[Failed]]:
        """The results between the bounds in the stretches, of each group at most one; and where there is none."""
        size = len(bounds)
        low, high = np.searchsorted(bounds, stretch[0]), np.searchsorted(bounds, stretch[1])
        group = line.group(stretch[0])
        mine = np.minimum(np.searchsorted(group, side.group), len(group) - 1)
        first = np.maximum(np.searchsorted(bounds, line.place(side.group, side.start)), low[mine])
        end = np.minimum(np.searchsorted(bounds, line.place(side.group, side.end)), high[mine])
        row, node = nodes_of(first, np.where(group[mine] == side.group, end, first), size)
        if not len(row) and zeros is None:
            nothing = self._nothing.drop_columns([WEIGHT])
            return nothing if self.copies is None else nothing.append_column(self.copies, pa.array([], pa.int64())), []
        noted = side.rows.drop_columns([WEIGHT]).take(pa.array(row)).append_column(self.number, pa.array(node))
        partial = self.groups.partial(noted)
        intervals = np.concatenate([found for _, found in expand(low, high)])
        at, wanted = above(intervals, size)
        nodes = np.asarray(partial[self.number])
        order = np.argsort(nodes, kind="stable")
        there = np.isin(wanted, nodes)
        place = np.searchsorted(nodes[order], wanted)
        parts = partial.take(pa.array(order[place[there]]))
        index = parts.schema.get_field_index(self.number)
        groups = self.groups.noting()
        merged = self.groups.merge([parts.set_column(index, self.number, pa.array(at[there]))])
        if zeros is not None:
            full = np.isin(intervals, at[there])
            nothing = zeros[0].between(line, bounds, intervals, full, zeros[1], self.number)
            merged = pa.concat_tables([merged, nothing])
        found = groups.finalize(merged)
        failed = [Failed(self._timed(f.rows, line, bounds), f.text, f.reasons) for f in groups.failed or ()]
        told = [n for n in self.output_schema.names if n not in (SYNC, WEIGHT)]
        told += [self.copies] if self.copies is not None else []
        return self._timed(found, line, bounds).select(told), failed

    def _timed(self, rows: pa.Table, line: Line, bounds: Positions) -> pa.Table:
        """Rows of intervals, with their lifetimes in place of the numbers of these."""
        number, t = np.asarray(rows[self.number]), self.output_schema.type_of(self.start)
        rows = rows.drop_columns([self.number])
        for name, at in ((self.start, number), (self.end, number + 1)):
            rows = rows.append_column(name, moments(line.tick(bounds[at]), t))
        return rows

    # --- boundaries that outlive their rows ---------------------------------------------------------------------------

    def _marks(self, rows: pa.Table, pieces: Sequence[Piece]) -> pa.Table:
        """The marks of the groups of some rows."""
        wanted = distinct(np.sort(self.stock.hashes(rows)))
        found = ((piece, stored_at(piece, wanted)) for piece in pieces if piece.group == MARKS)
        parts = (rows_at(piece, at, self._marks_schema.names) for piece, at in found if len(at))
        return pa.concat_tables([self._marks_schema.empty_table(), *parts])

    @property
    def _marks_schema(self) -> pa.Schema:
        return pa.schema([*((k, self.stock.schema.field(k).type) for k in self.keys), ("__at", pa.int64())])

    def _marked(self, places: Positions, line: Line, keys: pa.Table, group: Positions) -> list[Piece]:
        """Marks at these places."""
        return self._as_marks(keys.take(pa.array(first_of_each(group)[line.group(places)])), line.tick(places))

    def _as_marks(self, keys: pa.Table, at: Ticks) -> list[Piece]:
        if not len(at):
            return []
        table = pa.table([*(keys[k] for k in self.keys), pa.array(at, pa.int64())], schema=self._marks_schema)
        found = pieces_of(table, self.stock.hashes(table), None)
        for piece in found:
            piece.group = MARKS
        return found

    # --- forgetting ---------------------------------------------------------------------------------------------------

    def _forget(self, release: Sequence[Pattern], pieces: list[Piece]) -> None:
        """Rows that have ended when all up to then is final go, and groups that are over."""
        bound = _frontier(release, self.output_schema.type_of(SYNC))
        over = [p for p in release if frontier_of(p, SYNC) is None]
        if over:
            for piece in pieces:
                chosen = flags(matching(piece.rows, over)) & ~piece.mark(DEAD)
                self._see_off(piece, chosen)
                piece.kill(chosen)
        if bound is None:
            return
        gone = []
        for piece, chosen in self.stock.ended([p for p in pieces if p.group != MARKS], bound, bound):
            self._see_off(piece, chosen)
            gone.append(piece.rows.filter(pa.array(chosen)).select(self.stock.schema.names))
            piece.kill(chosen)
            if piece.group == OWED:
                pieces += self.stock.unfounded(gone[-1], [p for p in pieces if p.group != MARKS])
        if gone:
            self._mark_ends(pa.concat_tables(gone), pieces, bound)

    def _mark_ends(self, gone: pa.Table, pieces: list[Piece], bound: int) -> None:
        """Of the boundaries that were final before, the last of each group that still has rows stays."""
        # Rows that wait for what they were shortened from have never held, nor have those that were taken back.
        left = self.stock.of_keys(gone, [p for p in pieces if p.group != MARKS])
        past = self.stock.holding(pa.concat_tables([gone, left]))
        past = past.filter(pa.array(self.stock.ends(past) <= bound))
        marks = self._marks(gone, pieces)
        parts = [past, left.filter(pc.greater(left[WEIGHT], 0)), marks]
        keys, group = self._grouped(parts)
        of_past, of_left, of_marks = np.split(group, np.cumsum([t.num_rows for t in parts])[:-1])
        self._forget_marks(gone, pieces)
        count = int(group.max()) + 1 if len(group) else 0
        last = np.full(count, -FOREVER)
        set_ = _at(marks)
        np.maximum.at(last, of_past, self.stock.ends(past))
        np.maximum.at(last, of_marks[set_ <= bound], set_[set_ <= bound])
        # Zeros hold for ever.
        alive = np.full(count, self.zero)
        alive[of_left] = True
        # Those of other groups with the same hash are written again, as are those that are not final yet.
        stays = np.flatnonzero(alive & (last > -FOREVER))
        later = np.flatnonzero((set_ > bound) & alive[of_marks])
        which = np.concatenate([stays, of_marks[later]])
        if len(which):
            some = keys.take(pa.array(first_of_each(group)[which]))
            pieces += self._as_marks(some, np.concatenate([last[stays], set_[later]]))

    def _forget_marks(self, rows: pa.Table, pieces: Sequence[Piece]) -> None:
        """The marks of the groups of some rows go."""
        wanted = distinct(np.sort(self.stock.hashes(rows)))
        for piece in pieces:
            if piece.group == MARKS and len(at := stored_at(piece, wanted)):
                piece.set(DEAD, at)

    def _see_off(self, piece: Piece, chosen: Mask) -> None:
        """What was taken back and has not come until now never will."""
        if piece.group == OWED and chosen.any():
            rows = piece.rows.filter(pa.array(chosen))
            times = -np.asarray(rows[WEIGHT])
            left = rows.select(self.stock.identity).take(pa.array(np.repeat(np.arange(len(times)), times)))
            self.failed.append(Failed(left, "", (NEVER_CAME,) * left.num_rows))


class _Holding:
    """The rows of the touched groups, before the epoch or after it, each as often as it holds."""

    def __init__(self, rows: pa.Table, group: Positions, start: Ticks, end: Ticks) -> None:
        self.rows, self.group, self.start, self.end = rows, group, start, end

    @property
    def moments(self) -> Ticks:
        return np.concatenate([self.start, self.end])

    def within(self, stretch: Stretches) -> _Holding:
        """The rows that hold somewhere in the stretches of their groups."""
        some = stretch.meets(self.group, self.start, self.end)
        if some.all():
            return self
        return _Holding(self.rows.filter(pa.array(some)), self.group[some], self.start[some], self.end[some])

    def places(self, line: Line) -> Positions:
        return np.concatenate([line.place(self.group, self.start), line.place(self.group, self.end)])


def _at(marks: pa.Table) -> Ticks:
    return np.asarray(marks.column(marks.num_columns - 1))


def _frontier(release: Iterable[Pattern], t: pa.DataType) -> int | None:
    """The first tick that is not final."""
    found = [frontier_of(p, SYNC) for p in release]
    return max((tick(f[0], t) + f[1] for f in found if f is not None), default=None)
