"""Groups that tell at once what they come to, and take it back when they change.

State is what is known of each group that can still change, in runs sorted by a hash of the group (`__hash`): of events
that stay, one partial row; of rows that can be taken back the same where all parts of it are counts and sums, from
which they are taken away; otherwise all that hold, with their weights, since a maximum that is taken back leaves the
question what the next one is. An epoch looks up the groups that it touches by binary search and
leaves the rest of the state alone: what they came to before is told with weight −1, what they come to now with +1, and
nothing of a group that comes to the same.

What was told before is not stored. It is computed again from the same rows, so it is the same to the last bit.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from penstock.kernels.failing import Failed
from penstock.kernels.fold import matching, span_of
from penstock.kernels.hash import Hashes, hash_keys
from penstock.kernels.index import Mask, distinct, order_of
from penstock.kernels.stateful import DEAD, Held, Orders, Stepped
from penstock.kernels.weights import net, repeated, weighted
from penstock.operators.aggregate.folding import GroupKernel
from penstock.operators.aggregate.kernel import AggregateKernel
from penstock.operators.distinct.kernel import Piece, by_hash, equal_rows, flags, pieces_of, tidied
from penstock.operators.revised_aggregate.weighing import WeighingKernel
from penstock.operators.top.kernel import Complete, rows_at, stored_at
from penstock.pattern.schema import Schema
from penstock.plan.weight import NEVER_CAME, WEIGHT


class RevisingKernel(GroupKernel):
    """What both kinds have in common. `orders.release[0]` are patterns of groups that are complete."""

    #: The columns of state, beside the hash.
    stored: pa.Schema

    def __init__(self, groups: AggregateKernel, spread: tuple[str, ...]) -> None:
        super().__init__(groups, spread)
        #: By these attributes the groups are looked up that an epoch touches.
        self.by = groups.grouping
        self.told_schema = pa.schema([*self.output_schema.arrow, (WEIGHT, pa.int64())])

    @abstractmethod
    def together(self, rows: Sequence[pa.Table]) -> pa.Table:
        """What is known of groups from several tables, as it is stored."""

    @abstractmethod
    def answers(self, groups: AggregateKernel, rows: pa.Table) -> pa.Table:
        """The results of the groups of which this is known."""

    def holding(self, rows: pa.Table) -> pa.Table:
        """What is known of those groups that there still are."""
        return rows

    def see_off(self, rows: pa.Table, chosen: Mask) -> None:
        """Take note of what is known of groups that are complete, before it goes."""
        return

    @property
    def nothing(self) -> pa.Table:
        return self.told_schema.empty_table()

    def step(self, fresh: Sequence[pa.Table | None], held: Sequence[Sequence[Held]], orders: Orders) -> Stepped:
        """Take in what arrived and tell what has changed; then forget the groups that are complete."""
        pieces = [Piece.of(run) for run in held[0]]
        release = orders.release[0]
        changes, now = self.nothing, self.stored.empty_table()
        if fresh[0] is not None and fresh[0].num_rows:
            changes, now = self._revised(fresh[0], pieces)
        if release:
            over = Complete(release, self.output_schema, self.by, self.closing)
            for piece in pieces:
                if (found := over.find(piece)) is not None:
                    self.see_off(piece.rows, found & ~piece.mark(DEAD))
                    piece.kill(found)
            ready = flags(matching(now, release))
            self.see_off(now, ready)
            now = now.filter(pa.array(~ready))
        pieces += pieces_of(now, self._hashes(now), self._time)
        dropped, marked, added, _ = tidied(pieces, 0, by_hash, lambda table: span_of(table, self._time))
        return Stepped(changes, dropped, marked, added)

    def _revised(self, arrived: pa.Table, pieces: Sequence[Piece]) -> tuple[pa.Table, pa.Table]:
        """What changes for the groups that arrived, and what is now known of them; what was known is marked dead."""
        arrived = self.together([arrived])
        before = pa.concat_tables([self.stored.empty_table(), *self._taken(arrived, pieces)])
        now = self.holding(self.together([before, arrived]) if before.num_rows else arrived)
        # A group that has no answer was not told, so it is not taken back; it is noted when that begins.
        silent, noisy = self.groups.noting(), self.groups.noting()
        told, tells = self.answers(silent, before), self.answers(noisy, now)
        if self.groups.failed is not None and noisy.failed:
            known = {str(row) for f in silent.failed or () for row in f.rows.to_pylist()}
            self.groups.failed += [_but(f, known) for f in noisy.failed]
        if not told.num_rows:
            return weighted(tells, 1), now
        return net([weighted(told, -1), weighted(tells, 1)]), now

    def _taken(self, arrived: pa.Table, pieces: Sequence[Piece]) -> Iterator[pa.Table]:
        """What state knows of the groups that arrived, and does not any more."""
        keys = self.by
        hashes = self._hashes(arrived)
        wanted = distinct(np.sort(hashes))
        for piece in pieces:
            at = stored_at(piece, wanted)
            if not len(at):
                continue
            rows = rows_at(piece, at, self.stored.names)
            if keys and (other := self._others(rows, arrived)).any():
                at, rows = at[~other], rows.filter(pa.array(~other))
            piece.set(DEAD, at)
            yield rows

    def _others(self, rows: pa.Table, arrived: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Stored rows of another group that has the same hash by chance."""
        keys = self.by
        mine, theirs = self._hashes(rows), self._hashes(arrived)
        first = order_of(theirs)
        at = first[np.searchsorted(theirs[first], mine)]
        other = ~equal_rows(rows, np.arange(rows.num_rows), arrived, at, keys)
        if other.any():
            # Whether any of those that arrived is its group: so rare that it does not matter how long it takes.
            known = {tuple(map(str, r.values())) for r in arrived.select(keys).to_pylist()}
            values = rows.select(keys).to_pylist()
            for i in np.flatnonzero(other):
                other[i] = tuple(map(str, values[i].values())) not in known
        return other

    def _hashes(self, rows: pa.Table) -> Hashes:
        return hash_keys(rows, self.by) if self.by else np.zeros(rows.num_rows, dtype=np.uint64)

    @property
    def _time(self) -> str | None:
        """The attribute by whose bounds whole runs are passed over."""
        return self.closing if self.closing in self.output_schema.times else None


def _but(failed: Failed, known: set[str]) -> Failed:
    """Without the groups that are known to fail."""
    new = [i for i, row in enumerate(failed.rows.to_pylist()) if str(row) not in known]
    if len(new) == len(failed.reasons):
        return failed  # The only group of all has no columns, and rows without columns that are taken are none.
    return Failed(failed.rows.take(new), failed.text, tuple(failed.reasons[i] for i in new))


class GrowingKernel(RevisingKernel):
    """Of events that stay. One partial row for each group.

    >>> from penstock.pattern.punctuation import PunctuationSet
    >>> from penstock.pattern.schema import Schema
    >>> from penstock.sql.aggregation import Aggregation
    >>> s = Schema.parse("k string, x int")
    >>> kernel = GrowingKernel(AggregateKernel(s, ["k"], [Aggregation.parse("n", "sum(x)", s)]), ("k",))
    >>> rows = kernel.groups.partial(pa.table({"k": ["a", "b"], "x": [5, 6]}, schema=s.arrow))
    >>> nothing = Orders(((),), (PunctuationSet(s),))
    >>> first = kernel.step([rows], [[]], nothing)
    >>> first.output.sort_by("k").to_pydict()
    {'k': ['a', 'b'], 'n': [5, 6], '_weight': [1, 1]}
    >>> kernel.step([rows.slice(0, 1)], [[Held("run", first.added[0].rows)]], nothing).output.num_rows
    2
    """

    def __init__(self, groups: AggregateKernel, spread: tuple[str, ...]) -> None:
        super().__init__(groups, spread)
        self.stored = groups.partial_schema

    def together(self, rows: Sequence[pa.Table]) -> pa.Table:
        return self.groups.merge(rows)

    def answers(self, groups: AggregateKernel, rows: pa.Table) -> pa.Table:
        return groups.finalize(rows)


class AddingKernel(GrowingKernel):
    """Of rows that can be taken back, which leave nothing. One partial row for each group."""

    def __init__(self, groups: WeighingKernel, spread: tuple[str, ...]) -> None:
        super().__init__(groups, spread)
        self.weighing = groups

    def holding(self, rows: pa.Table) -> pa.Table:
        return self.weighing.holding(rows)


class ChangingKernel(RevisingKernel):
    """Of rows that can be taken back. All of a group that hold, with their weights."""

    def __init__(self, groups: AggregateKernel, spread: tuple[str, ...]) -> None:
        super().__init__(groups, spread)
        names = [n for n in groups.input_schema.names if n in groups.needed or n in groups.grouping]
        self.needed = ((*names, WEIGHT),)
        self.stored = pa.schema([(n, groups.input_schema.type_of(n)) for n in names] + [(WEIGHT, pa.int64())])

    def together(self, rows: Sequence[pa.Table]) -> pa.Table:
        return net([t.select(self.stored.names).cast(self.stored) for t in rows])

    def answers(self, groups: AggregateKernel, rows: pa.Table) -> pa.Table:
        return groups.finalize(groups.partial(repeated(rows)))

    @property
    def failed_schema(self) -> Schema:
        names = [n for n in self.stored.names if n != WEIGHT]
        return self.groups.input_schema.select(names) if names else super().failed_schema

    def see_off(self, rows: pa.Table, chosen: Mask) -> None:
        """What was taken back and has not come until now never will."""
        weights = np.asarray(rows[WEIGHT])
        owed = np.flatnonzero(chosen & (weights < 0))
        if len(owed) and self.groups.failed is not None:
            left = rows.select(self.stored.names).take(pa.array(np.repeat(owed, -weights[owed])))
            self.groups.failed.append(Failed(left, "", (NEVER_CAME,) * left.num_rows))
