"""Several inputs joined at once on one key: one state per input and none for intermediate results.

New rows of an input first ask every other input for partners, the one with the fewest expected first, and those that
find none are out before anything is combined. What is left is spelled out, and events of the other inputs are checked
against each other's windows. A combination is found once: at the last of its inputs that brought a new row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.hash import is_exact
from penstock.kernels.index import Mask, Positions, Ticks, distinct, expand, ranges, sift, within
from penstock.kernels.release import Selection, answer, cut, tidy
from penstock.kernels.sorted_run import Rule, SortedRun, meet
from penstock.kernels.stateful import DEAD, Circumstances, Held, Laziness, Orders, Stepped
from penstock.operators.multijoin.operator import MultiJoin
from penstock.pattern.pattern import Pattern

#: New rows that are looked up to estimate how many partners an input has for them.
_SAMPLE = 512


class MultiJoinKernel:
    """One epoch of a multi-way join.

    >>> from penstock.operators.join.operator import Taken
    >>> from penstock.operators.source.operator import Source
    >>> from penstock.pattern.punctuation import PunctuationSet
    >>> from penstock.pattern.schema import Schema
    >>> s = [Schema.parse(f"k int, {name} string") for name in "abc"]
    >>> columns = (Taken("k", ((0, "k"),)), *(Taken(name, ((i, name),)) for i, name in enumerate("abc")))
    >>> out = Schema.parse("k int, a string, b string, c string")
    >>> join = MultiJoin(tuple(Source((), x) for x in s), out, keys=(("k",),) * 3, columns=columns,
    ...     times=(None,) * 3, windows=(None,) * 3)
    >>> rows = [pa.table([[1, 2], [f"{x}1", f"{x}2"]], schema=y.arrow) for x, y in zip("abc", s)]
    >>> step = MultiJoinKernel(join, "join").step([*rows[:2], rows[2].slice(1)], [(), (), ()],
    ...     Orders(((), (), ()), tuple(map(PunctuationSet, s))))
    >>> step.output.to_pylist()
    [{'k': 2, 'a': 'a2', 'b': 'b2', 'c': 'c2'}]
    """

    def __init__(self, join: MultiJoin, operator_id: str, laziness: Laziness | None = None) -> None:
        self.join, self.operator_id, self.laziness = join, operator_id, laziness or Laziness()
        self.ports = range(len(join.inputs))
        self.spread: tuple[tuple[str, ...], ...] = join.keys
        self.output_schema: pa.Schema = join.schema.arrow
        schemas = [i.schema for i in join.inputs]
        exact = all(is_exact([s.type_of(k) for k in keys]) for s, keys in zip(schemas, join.keys))
        #: How two inputs meet: an event of the second lies from its window before to the window of the first behind.
        self._rules = {(i, j): self._rule(i, j, exact) for i in self.ports for j in self.ports if i != j}
        self.times = tuple(
            join.times[i] if any(r.timed for (a, _), r in self._rules.items() if a == i) else None for i in self.ports
        )
        self.needed: tuple[tuple[str, ...] | None, ...] = tuple(self._needed(i) for i in self.ports)
        self._schemas = [pa.schema([s.arrow.field(n) for n in self._names(i)]) for i, s in enumerate(schemas)]

    def _rule(self, i: int, j: int, exact: bool) -> Rule:
        keys = tuple(zip(self.join.keys[i], self.join.keys[j], strict=True))
        if self.join.times[i] is None or self.join.times[j] is None:
            return Rule(keys, exact=exact)
        before, behind = self.join.windows[j], self.join.windows[i]
        return Rule(keys, None if before is None else -before, behind, exact=exact)

    def _needed(self, port: int) -> tuple[str, ...]:
        used = {*self.join.keys[port], self.times[port]}
        used |= {a for column in self.join.columns for side, a in column.origins if side == port}
        return tuple(n for n in self.join.inputs[port].schema.names if n in used)

    def _names(self, port: int) -> tuple[str, ...]:
        return self.needed[port] or ()

    def under(self, circumstances: Circumstances) -> Self:
        """This kernel, as lazy as is wanted."""
        if circumstances.told.laziness == self.laziness:
            return self
        other = copy(self)
        other.laziness = circumstances.told.laziness
        return other

    def step(
        self,
        fresh: Sequence[pa.Table | None],
        held: Sequence[Sequence[Held]],
        orders: Orders,
        order: Sequence[Sequence[int]] | None = None,
    ) -> Stepped:
        """Combine what arrived with what is stored and with itself, then let go of what the orders name.

        `order[i]` lists the other inputs as new rows of input i should ask them; by default as a sample suggests.
        """
        counts = dict.fromkeys(("matched", "stored", "released", "passed", "dropped"), 0)
        sides = [
            _Side([SortedRun.of(h, self.times[i]) for h in held[i]], self._arrived(i, fresh[i]), self.times[i])
            for i in self.ports
        ]
        output: list[pa.Table] = []
        for i in self.ports:
            asked = order[i] if order is not None else self._order(i, sides)
            for found in self._combined(i, sides, asked, counts):
                counts["matched"] += len(found[i])
                for j, refs in found.items():
                    sides[j].meets(refs)
                output.append(self._joined(sides, found))
        runs = [
            [*self._release(i, side.stored, orders, counts), *self._kept(i, side.new, side.met, orders, counts)]
            for i, side in enumerate(sides)
        ]
        answers = tuple(
            tuple(answer(p, runs[i], self.join.keys[i], self.times[i]) for p in asked)
            for i, asked in enumerate(orders.ask)
        )
        results = pa.concat_tables(output) if output else self.output_schema.empty_table()
        return Stepped(results, *tidy(runs, self.laziness, [(DEAD,)] * len(runs)), answers, counts)

    def _arrived(self, port: int, table: pa.Table | None) -> SortedRun:
        """The new rows; without a key, or a time where it matters, a row belongs to nothing."""
        keys, time = self.join.keys[port], self.times[port]
        rows, _ = sift(table, self._schemas[port], keys if time is None else (*keys, time))
        return SortedRun.arrived(rows, keys, time)

    def _sources(self, i: int, j: int, sides: Sequence[_Side]) -> list[tuple[int, SortedRun]]:
        """The runs of input j that new rows of input i are to meet, with the number of their first row."""
        runs = list(zip(sides[j].starts.tolist(), sides[j].runs))
        return [(start, run) for start, run in (runs if j < i else runs[:-1]) if len(run)]

    def _order(self, i: int, sides: Sequence[_Side]) -> list[int]:
        """The other inputs, those first that a sample of the new rows finds the fewest partners in."""
        hashes = sides[i].new.hashes
        sample = hashes[:: max(len(hashes) // _SAMPLE, 1)]

        def expected(j: int) -> int:
            found = (ranges(sample, run.hashes) for _, run in self._sources(i, j, sides))
            return sum(int((end - begin).sum()) for _, begin, end in found)

        others = [j for j in self.ports if j != i]
        return sorted(others, key=expected) if len(hashes) else others

    def _combined(
        self, i: int, sides: Sequence[_Side], order: Sequence[int], counts: dict[str, int]
    ) -> Iterator[dict[int, Positions]]:
        """All results with a new row of input i, as row numbers per input, in pieces."""
        alive = np.arange(len(sides[i].new))
        partners: dict[int, tuple[Positions, Positions]] = {}
        for j in order:
            if not len(alive):
                return
            pieces = [
                (li, ri + start)
                for start, run in self._sources(i, j, sides)
                for li, ri in meet(sides[i].new, run, self._rules[i, j], alive)
            ]
            mine = np.concatenate([p[0] for p in pieces]) if pieces else np.zeros(0, dtype=np.int64)
            theirs = np.concatenate([p[1] for p in pieces]) if pieces else np.zeros(0, dtype=np.int64)
            by_row = np.argsort(mine, kind="stable")
            partners[j] = mine[by_row], theirs[by_row]
            counts[f"probes:{i}:{j}"] = len(alive)
            counts[f"matches:{i}:{j}"] = len(mine)
            alive = distinct(partners[j][0])
        yield from self._spelled(i, sides, order, partners, alive, {})

    def _spelled(
        self,
        i: int,
        sides: Sequence[_Side],
        order: Sequence[int],
        partners: Mapping[int, tuple[Positions, Positions]],
        rows: Positions,
        bound: dict[int, Positions],
    ) -> Iterator[dict[int, Positions]]:
        """Extend combinations by the partners that their new row has in the next input."""
        if not len(rows):
            return
        if not order:
            yield {i: rows + sides[i].starts[-2], **bound}
            return
        j, rest = order[0], order[1:]
        mine, theirs = partners[j]
        begin, end = np.searchsorted(mine, rows, side="left"), np.searchsorted(mine, rows, side="right")
        for which, at in expand(begin, end):
            chosen = {k: refs[which] for k, refs in bound.items()} | {j: theirs[at]}
            keep: Mask | None = None
            for k in bound:
                rule = self._rules[k, j]
                if rule.timed:
                    fits = within(sides[k].ticks(chosen[k]), sides[j].ticks(chosen[j]), rule.low, rule.high)
                    keep = fits if keep is None else keep & fits
            extended = rows[which]
            if keep is not None and not bool(keep.all()):
                extended, chosen = extended[keep], {k: refs[keep] for k, refs in chosen.items()}
            yield from self._spelled(i, sides, rest, partners, extended, chosen)

    def _joined(self, sides: Sequence[_Side], found: Mapping[int, Positions]) -> pa.Table:
        arrays = []
        for column, field in zip(self.join.columns, self.output_schema):
            parts = [sides[j].gather(name, found[j]) for j, name in column.origins]
            parts = [p if p.type == field.type else p.cast(field.type) for p in parts]
            arrays.append(pc.coalesce(*parts) if len(parts) > 1 and parts[0].null_count else parts[0])
        return pa.Table.from_arrays(arrays, schema=self.output_schema)

    def _release(
        self, port: int, runs: Sequence[SortedRun], orders: Orders, counts: dict[str, int]
    ) -> Sequence[SortedRun]:
        selection = self._selection(port, orders.release[port])
        for run in runs if selection else ():
            if (gone := selection.find(run)) is not None:
                gone = gone & ~run.flags(DEAD) if run.has(DEAD) else gone
                counts["released"] += int(np.count_nonzero(gone))
                if gone.any():
                    run.mark(DEAD, gone)
        return runs

    def _kept(self, port: int, run: SortedRun, met: Mask, orders: Orders, counts: dict[str, int]) -> list[SortedRun]:
        """The new rows to be stored, without those that nobody will ask for."""
        passing = self._selection(port, orders.settled[port].patterns).find(run)
        kept = run
        if passing is not None:
            counts["passed"] += int(np.count_nonzero(passing))
            counts["dropped"] += int(np.count_nonzero(passing & ~met))
            kept = run.part(np.flatnonzero(~passing), 0)
        counts["stored"] += len(kept)
        return cut(kept, self._slice(port))

    def _slice(self, port: int) -> int | None:
        """Half the time that a row can wait for partners; None if that has no end."""
        reach = [(r.low, r.high) for (i, _), r in self._rules.items() if i == port and r.timed]
        if self.times[port] is None or any(low is None or high is None for low, high in reach):
            return None
        return max((max(high or 0 for _, high in reach) - min(low or 0 for low, _ in reach)) // 2, 1)

    def _selection(self, port: int, patterns: Sequence[Pattern]) -> Selection:
        known = set(self._names(port))
        usable = [p for p in patterns if known.issuperset(p.restricted)]
        return Selection(usable, self.join.inputs[port].schema, self.join.keys[port], self.times[port])


class _Side:
    """The rows of one input, stored and new, numbered through."""

    def __init__(self, stored: list[SortedRun], new: SortedRun, time: str | None) -> None:
        self.stored, self.new, self.time = stored, new, time
        self.runs = [*stored, new]
        self.starts: Positions = np.cumsum([0, *map(len, self.runs)])
        self.met: Mask = np.zeros(len(new), dtype=np.bool_)

    @cached_property
    def _first_new(self) -> int:
        return int(self.starts[-2])

    def meets(self, refs: Positions) -> None:
        """Note which new rows are part of a result."""
        self.met[refs[refs >= self._first_new] - self._first_new] = True

    def _placed(self, refs: Positions) -> Iterator[tuple[SortedRun, Positions, Positions]]:
        """Per run that is referred to: the run, where in the references, and where in the run."""
        which = np.searchsorted(self.starts, refs, side="right") - 1
        for number in np.flatnonzero(np.bincount(which, minlength=len(self.runs))):
            at = np.flatnonzero(which == number)
            yield self.runs[number], at, refs[at] - self.starts[number]

    def gather(self, name: str, refs: Positions) -> pa.Array:
        """The values of a column in rows of any run."""
        placed = list(self._placed(refs))
        pieces = [run.pick(name, rows) for run, _, rows in placed]
        if len(pieces) == 1:
            return pieces[0]
        back = np.empty(len(refs), dtype=np.int64)
        back[np.concatenate([at for _, at, _ in placed])] = np.arange(len(refs))
        return pc.take(pa.concat_arrays(pieces), pa.array(back))

    def ticks(self, refs: Positions) -> Ticks:
        found = np.empty(len(refs), dtype=np.int64)
        for run, at, rows in self._placed(refs):
            found[at] = run.ticks[rows]
        return found
