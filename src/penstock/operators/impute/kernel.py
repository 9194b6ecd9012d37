"""A queue before an expensive function: rows wait in order of arrival, and so many of them have their turn in an epoch.

State is a list of runs in order of arrival; `group` of a run is its place in that list. Rows leave from the front of
the first run, which is told by a number beside it, so taking a few rows from a long queue rewrites nothing. Rows that
are preferred leave from anywhere: they are marked dead, and a run is rewritten when more than half of it is gone. When
there are many runs, the last of them are merged, each at most as large as those behind it together.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pyarrow as pa

from penstock.kernels.fold import frontier_of, is_tickable, matching, span_of, tick, ticks
from penstock.kernels.index import Mask
from penstock.kernels.stateful import DEAD, Answer, Circumstances, Fresh, Held, Orders, Stepped
from penstock.operators.distinct.kernel import MOST_RUNS, flags
from penstock.operators.impute.operator import Impute
from penstock.operators.join.ended_keys import values_in
from penstock.operators.map.kernel import apply_function
from penstock.pattern.pattern import Pattern


class QueueKernel:
    """Takes the first rows, or the first of those that are preferred, and gives them to the function.

    >>> from penstock.operators.source.operator import Source
    >>> from penstock.pattern.punctuation import PunctuationSet
    >>> from penstock.pattern.schema import Schema
    >>> schema = Schema.parse("n int")
    >>> kernel = QueueKernel(Impute((Source((), schema),), schema, function=lambda rows: rows, budget=2), "impute-1")
    >>> nothing = Orders(release=((),), settled=(PunctuationSet(schema),))
    >>> step = kernel.step([pa.table({"n": [5, 6, 7]}, schema=schema.arrow)], [[]], nothing)
    >>> step.output["n"].to_pylist(), step.added[0].rows["n"].to_pylist(), dict(step.counts)
    ([5, 6], [7], {'processed': 2, 'queued': 1})
    """

    def __init__(self, operator: Impute, operator_id: str) -> None:
        self.operator, self.operator_id = operator, operator_id
        self.schema = operator.inputs[0].schema
        self.time = self.schema.times[0] if self.schema.times else None
        self.most = operator.budget
        self.preferred: tuple[Pattern, ...] = ()
        #: Any row may go anywhere: the function has no need of its neighbours.
        self.spread: tuple[tuple[str, ...], ...] = (self.schema.names,)
        self.needed: tuple[tuple[str, ...] | None, ...] = (None,)

    def under(self, circumstances: Circumstances) -> Self:
        """The same kernel with its share of the budget: every task comes to the same numbers."""
        c = circumstances
        most = 0 if c.rehearsal else shares(self.most, c.waiting(), c.epoch)[c.bucket]
        return self.taking(most).preferring(c.told.preferred)

    def taking(self, most: int) -> Self:
        """The same kernel for a bucket and an epoch in which so many rows have their turn."""
        other = copy.copy(self)
        other.most = most
        return other

    def preferring(self, patterns: Sequence[Pattern]) -> Self:
        """The same kernel with rows that go before the others: those that match one of the patterns."""
        other = copy.copy(self)
        other.preferred = tuple(patterns)
        return other

    def step(self, fresh: Sequence[pa.Table | None], held: Sequence[Sequence[Held]], orders: Orders) -> Stepped:
        """Let those that arrived queue up, and those whose turn it is leave through the function."""
        line = [Waiting.of(run) for run in sorted(held[0], key=lambda run: run.group)]
        if fresh[0] is not None and fresh[0].num_rows:
            rows = fresh[0].select(self.schema.names)
            line.append(Waiting(rows, line[-1].group + 1 if line else 0, None, *span_of(rows, self.time)))
        taken = self._taken(line)
        dropped, marked, skipped, added, kept = tidied(line)
        asked = orders.ask[0] if orders.ask else ()
        output = apply_function(self.operator, self.operator_id, taken) if taken.num_rows else None
        return Stepped(
            output=self.operator.schema.arrow.empty_table() if output is None else output,
            dropped=dropped,
            marked=marked,
            skipped=skipped,
            added=added,
            answers=(tuple(self._answer(pattern, kept) for pattern in asked),),
            counts={"processed": taken.num_rows, "queued": sum(map(len, kept))},
        )

    def _taken(self, line: Sequence[Waiting]) -> pa.Table:
        parts: list[pa.Table] = []
        room = self.most
        for choosing in ([self.preferred] if self.preferred else []) + [()]:
            for run in line:
                if not room:
                    break
                part = run.pick(choosing, room) if choosing else run.first(room)
                parts += [part] if part.num_rows else []
                room -= part.num_rows
        if not parts:
            return self.schema.arrow.empty_table()
        return pa.concat_tables(parts).select(self.schema.names).combine_chunks()

    def _answer(self, pattern: Pattern, line: Sequence[Waiting]) -> Answer:
        """How many rows of those that still wait match; how far down they reach, or which listed values they have."""
        if not pattern.restricted:
            return Answer(sum(map(len, line)))
        name = pattern.restricted[0]
        t = self.schema.type_of(name)
        if is_tickable(t) and (frontier := frontier_of(pattern, name)) is not None:
            return self._reach(name, tick(frontier[0], t) + frontier[1], line)
        values = None
        if len(pattern.restricted) == 1 and not pa.types.is_floating(t):
            values = values_in(pattern[name], t)
        rows, left = 0, set[Any]()
        for run in line:
            looked = run.live(pattern.restricted)
            mask = pattern.matches(looked)
            if count := int(np.count_nonzero(flags(mask))):
                rows += count
                left.update(looked[name].filter(mask).unique().to_pylist() if values is not None else ())
        # If values are not told apart as the pattern does, nothing is said of single ones.
        return Answer(rows, left=frozenset(left) if values is not None and left <= values else None)

    def _reach(self, name: str, end: int, line: Sequence[Waiting]) -> Answer:
        """How many rows lie before a tick, and the first of them.

        It is asked in every epoch, so runs are judged by their bounds as far as these tell: of many runs, only those
        are looked at that may have the first row, or that the tick divides.
        """
        rows, least = 0, None
        whole: list[Waiting] = []
        for run in line:
            if name == self.time and run.low is not None and run.high is not None and not run.low < end <= run.high:
                if run.low < end:
                    rows += len(run)
                    whole.append(run)
                continue
            found = ticks(run.live([name])[name].drop_null())
            found = found[found < end]
            if len(found):
                rows += len(found)
                least = min(int(found.min()), int(found[0]) if least is None else least)
        for run in sorted(whole, key=lambda run: run.low or 0):
            if least is not None and run.low is not None and least <= run.low:
                break
            first = int(ticks(run.live([name])[name]).min())
            least = first if least is None else min(first, least)
        return Answer(rows, least=least)


@dataclass
class Waiting:
    """A run at work: a stored one under its name, or one to be. `gone` tells rows that have left from anywhere.

    As long as rows have left from the front only, `start` is how many, and nobody looks at each of them.
    """

    rows: pa.Table
    group: int
    name: str | None = None
    low: int | None = None
    high: int | None = None
    gone: Mask | None = None
    start: int = 0
    changed: bool = field(default=False, init=False)

    @classmethod
    def of(cls, run: Held) -> Waiting:
        dead = None if run.marks is None or DEAD not in run.marks.column_names else flags(run.marks[DEAD])
        return cls(run.rows, run.group, run.name, run.low, run.high, dead)

    def __len__(self) -> int:
        """How many still wait."""
        size: int = self.rows.num_rows
        return size - self.start if self.gone is None else size - int(np.count_nonzero(self.gone))

    def first(self, most: int) -> pa.Table:
        """Take rows from the front."""
        if self.gone is None:
            part = self.rows.slice(self.start, most)
            self.start += part.num_rows
            return part
        return self._leave(np.flatnonzero(~self.gone)[:most])

    def pick(self, patterns: Sequence[Pattern], most: int) -> pa.Table:
        """Take the first rows that match; before any were taken from the front."""
        hit = flags(matching(self.rows, patterns))
        return self._leave(np.flatnonzero(hit if self.gone is None else hit & ~self.gone)[:most])

    def _leave(self, at: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Table:
        if len(at):
            self.gone = np.zeros(self.rows.num_rows, dtype=bool) if self.gone is None else self.gone.copy()
            self.gone[at] = True
            self.changed = True
        return self.rows.take(pa.array(at))

    def live(self, names: Sequence[str] | None = None) -> pa.Table:
        """Those that still wait."""
        rows = self.rows if names is None else self.rows.select(list(names))
        return rows.slice(self.start) if self.gone is None else rows.filter(pa.array(~self.gone))

    @property
    def worn(self) -> bool:
        """Whether it is to be written anew: most of it has left, or it was never written."""
        return self.name is None or (self.gone is not None and 2 * len(self) < self.rows.num_rows)


Tidied = tuple[
    tuple[str, ...],
    tuple[tuple[str, pa.Table], ...],
    tuple[tuple[str, int], ...],
    tuple[Fresh, ...],
    list[Waiting],
]


def tidied(line: Sequence[Waiting]) -> Tidied:
    """What to drop, to mark, to skip and to add so that the line is stored in few runs; and the runs then stored."""
    dropped = [run.name for run in line if run.name is not None and (not len(run) or run.worn)]
    kept = [run for run in line if len(run)]
    last: list[Waiting] = []
    if len(kept) > MOST_RUNS:
        size = 0
        while kept and (len(last) < 2 or len(kept[-1]) <= size):
            last.insert(0, kept.pop())
            size += len(last[0])
        dropped += [run.name for run in last if run.name is not None and not run.worn]
        kept.append(_joined(last))
    marked = tuple(
        (run.name, pa.table({DEAD: pa.array(run.gone)}))
        for run in kept
        if run.name is not None and run.changed and not run.worn
    )
    skipped = tuple((run.name, run.start) for run in kept if run.name is not None and run.start)
    added = tuple(Fresh(0, run.live().combine_chunks(), run.group, run.low, run.high) for run in kept if run.worn)
    return tuple(dropped), marked, skipped, added, kept


def _joined(runs: Sequence[Waiting]) -> Waiting:
    """Neighbours as one run, in their order. Bounds of time may be wider than what has not left yet."""
    lows, highs = [run.low for run in runs], [run.high for run in runs]
    bounded = [(low, high) for low, high in zip(lows, highs) if low is not None and high is not None]
    low, high = (min(b[0] for b in bounded), max(b[1] for b in bounded)) if len(bounded) == len(runs) else (None, None)
    rows = pa.concat_tables([run.live() for run in runs]).combine_chunks()
    return Waiting(rows, runs[0].group, None, low, high)


def shares(budget: int, waiting: Sequence[int], turn: int) -> list[int]:
    """How many rows of each bucket have their turn in an epoch, together no more than the budget.

    First those that waited before it, alike for every bucket, and what one does not need goes to the others; what is
    left then is for the rows that arrive, of which no bucket knows how many others get. Where it does not come out
    even, buckets take turns.

    >>> shares(10, [8, 1, 0], turn=0), shares(10, [3, 1, 0], turn=0), shares(1, [5, 5], turn=1)
    ([9, 1, 0], [5, 3, 2], [0, 1])
    """
    count = len(waiting)
    order = [(turn + k) % count for k in range(count)]
    given = [0] * count
    room = budget
    while room and (needy := [b for b in order if given[b] < waiting[b]]):
        each = max(1, room // len(needy))
        for bucket in needy[:room]:
            part = min(each, waiting[bucket] - given[bucket])
            given[bucket] += part
            room -= part
    each, more = divmod(room, count)
    return [given[b] + each + (order.index(b) < more) for b in range(count)]
