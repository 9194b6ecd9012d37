"""The join of two inputs on equal keys, within a band of event time: one epoch of one bucket.

New pairs are those of new left rows with stored right ones, stored left with new right, and new with new; each is
found once. Rows then leave as punctuation says that no partner can come any more, and those that owe a result even
without a partner (outer and anti joins) give it then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.failing import Failed, ask
from penstock.kernels.hash import is_exact
from penstock.kernels.index import HASH, Mask, Positions, pick, same, sift
from penstock.kernels.release import Selection, Tidied, answer, cut, tidy
from penstock.kernels.sorted_run import Rule, SortedRun, meet
from penstock.kernels.stateful import DEAD, Answer, Circumstances, Held, Laziness, Orders, Stepped
from penstock.operators.join.impatience import wishes
from penstock.operators.join.operator import Join, pair_schema
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Schema

#: The mark of rows that have found a partner, where that decides what they owe when they leave.
MATCHED = "matched"

#: Results that are passed on together: enough to be worth a statement, few enough to be held.
SLICE = 1 << 20

#: Per kind of join and port: whether a row without a partner gives a result when it leaves.
_OWES = {"left": (True, False), "right": (False, True), "full": (True, True), "anti": (True, False)}


class JoinKernel:
    """One epoch of a join: rows and orders in, results and changes of the stored runs out.

    >>> from penstock.builder.combine import join_operator
    >>> from penstock.operators.source.operator import Source
    >>> from penstock.pattern.punctuation import PunctuationSet
    >>> from penstock.pattern.schema import Schema
    >>> orders, items = Schema.parse("id int, who string"), Schema.parse("id int, what string")
    >>> kernel = JoinKernel(join_operator(Source((), orders), Source((), items), "id"), "join")
    >>> rows = [pa.table([[1, 2], ["ann", "bob"]], schema=orders.arrow), pa.table([[2], ["tea"]], schema=items.arrow)]
    >>> nothing = Orders(((), ()), (PunctuationSet(orders), PunctuationSet(items)))
    >>> step = kernel.step(rows, ((), ()), nothing)
    >>> step.output.to_pylist(), [f.rows.num_rows for f in step.added]
    ([{'id': 2, 'who': 'bob', 'what': 'tea'}], [2, 1])
    """

    def __init__(self, join: Join, operator_id: str, laziness: Laziness | None = None) -> None:
        self.join, self.operator_id = join, operator_id
        self.laziness = laziness or Laziness()
        #: Pairs on which the residual predicate fails: they do not match.
        self.failed: list[Failed] = []
        #: Takes results as soon as there are many; what is left is the output of the step.
        self.emit: Callable[[pa.Table], None] | None = None
        self.keys = (tuple(a for a, _ in join.keys), tuple(b for _, b in join.keys))
        self.spread: tuple[tuple[str, ...], ...] = self.keys
        band = join.band
        self.times: tuple[str | None, str | None] = (None, None) if band is None else (band.left, band.right)
        self.output_schema: pa.Schema = join.schema.arrow
        self.needed: tuple[tuple[str, ...] | None, ...] = tuple(self._needed(port) for port in (0, 1))
        self._halves = join.how in ("semi", "anti")
        self._owes = _OWES.get(join.how, (False, False))
        #: Whether a stored row has to remember that it found a partner.
        self._remembers = tuple(owes and not self._halves for owes in self._owes)
        types = [join.inputs[0].schema.type_of(k) for k in self.keys[0]]
        exact = is_exact(types) and not (join.null_safe and types)
        low, high = (None, None) if band is None else (band.low, band.high)
        self._rule = Rule(join.keys, low, high, join.null_safe, exact)
        #: Stored rows are cut into slices of about half the band, so that old ones leave as whole runs.
        self._slice = None if low is None or high is None else max((high - low) // 2, 1)
        schemas = [join.inputs[port].schema.arrow for port in (0, 1)]
        self._schemas = [pa.schema([schemas[port].field(n) for n in self._names(port)]) for port in (0, 1)]

    def _needed(self, port: int) -> tuple[str, ...]:
        used = set(self.keys[port]) | {self.times[port]}
        used |= {a for column in self.join.columns for side, a in column.origins if side == port}
        if self.join.residual is not None:
            used |= {a for side, a, n in self.join.pair if side == port and n in self.join.residual.columns}
        return tuple(n for n in self.join.inputs[port].schema.names if n in used)

    def _names(self, port: int) -> tuple[str, ...]:
        return self.needed[port] or ()

    def under(self, circumstances: Circumstances) -> Self:
        """The same kernel with nothing noted yet, as lazy as is wanted, that hands over results in slices."""
        other = copy(self)
        other.failed, other.laziness, other.emit = [], circumstances.told.laziness, circumstances.emit
        return other

    @property
    def failed_schema(self) -> Schema:
        """The residual predicate fails on pairs."""
        return pair_schema(self.join)

    def step(self, fresh: Sequence[pa.Table | None], held: Sequence[Sequence[Held]], orders: Orders) -> Stepped:
        """Join what arrived with what is stored and with itself, then let go of what the orders name."""
        output: list[pa.Table] = []
        counts = dict.fromkeys(("matched", "stored", "released", "passed", "dropped"), 0)
        stored = [[SortedRun.of(h, self.times[port]) for h in held[port]] for port in (0, 1)]
        new = [self._arrived(port, fresh[port], output) for port in (0, 1)]
        for left, li, right, ri in self._met(new, stored, counts):
            for run, at, port in ((left, li, 0), (right, ri, 1)):
                if run is new[port] or self._remembers[port] or (self._halves and port == 0):
                    run.mark(MATCHED, at)
            if not self._halves:
                self._give(self._joined(left, li, right, ri), output)
        if self._halves:
            for run in (*stored[0], new[0]):
                self._decided(run, output)
        tidied, answers = self._let_go(stored, new, orders, output, counts)
        results = pa.concat_tables(output) if output else self.output_schema.empty_table()
        wished = wishes(self.join, tidied.added) if self.join.impatient else ()
        return Stepped(results, *tidied, answers, counts, wished=wished)

    def _met(
        self, new: Sequence[SortedRun], stored: Sequence[Sequence[SortedRun]], counts: dict[str, int]
    ) -> Iterator[tuple[SortedRun, Positions, SortedRun, Positions]]:
        """The rows that match: what arrived with what is stored, and with itself."""
        meetings = [(new[0], run) for run in stored[1]] + [(run, new[1]) for run in stored[0]] + [(new[0], new[1])]
        for left, right in meetings:
            for li, ri in self._pairs(left, right):
                counts["matched"] += len(li)
                yield left, li, right, ri

    def _give(self, rows: pa.Table, output: list[pa.Table]) -> None:
        """Hand over results as soon as there are many."""
        output.append(rows)
        if self.emit is not None and sum(t.num_rows for t in output) >= SLICE:
            self.emit(pa.concat_tables(output))
            output.clear()

    def _let_go(
        self,
        stored: Sequence[Sequence[SortedRun]],
        new: Sequence[SortedRun],
        orders: Orders,
        output: list[pa.Table],
        counts: dict[str, int],
        beside: Sequence[Sequence[SortedRun]] = ((), ()),
    ) -> tuple[Tidied, tuple[tuple[Answer, ...], ...]]:
        """Carry out the orders: what becomes of the runs, and the answers. `beside` are kept, and asked nothing."""
        runs: list[list[SortedRun]] = []
        for port in (0, 1):
            self._release(port, stored[port], orders.release[port], output, counts)
            runs.append([*stored[port], *self._kept(port, new[port], orders, output, counts)])
        answers = tuple(
            tuple(answer(pattern, runs[port], self.keys[port], self.times[port]) for pattern in asked)
            for port, asked in enumerate(orders.ask)
        )
        runs = [[*mine, *others] for mine, others in zip(runs, beside, strict=True)]
        return tidy(runs, self.laziness, [(DEAD, MATCHED) if r else (DEAD,) for r in self._remembers]), answers

    def heaviest(self, fresh: Sequence[pa.Table | None], held: Sequence[Sequence[Held]]) -> tuple[str, int] | None:
        """The key with the most pairs, and how many these are, time and residual left aside; None if there are none."""
        sides = []
        for port in (0, 1):
            new = self._arrived(port, fresh[port], []).rows
            runs = [new, *(h.rows for h in held[port])]
            hashes = np.concatenate([np.asarray(r[HASH]) for r in runs])
            values, first, count = np.unique(hashes, return_index=True, return_counts=True)
            sides.append((values, first, count, runs))
        common, at, to = np.intersect1d(sides[0][0], sides[1][0], return_indices=True)
        if not len(common):
            return None
        pairs = sides[0][2][at] * sides[1][2][to]
        most = int(np.argmax(pairs))
        row = pa.concat_tables([r.select(list(self.keys[0])) for r in sides[0][3]]).slice(int(sides[0][1][at[most]]), 1)
        key = ", ".join(f"{name} {value}" for name, value in row.to_pylist()[0].items())
        return key, int(pairs[most])

    def _arrived(self, port: int, table: pa.Table | None, output: list[pa.Table]) -> SortedRun:
        """The new rows that can have partners as a run; the others leave at once."""
        keys, time = self.keys[port], self.times[port]
        must = (() if self.join.null_safe else keys) + (() if time is None else (time,))
        rows, loose = sift(table, self._schemas[port], must)
        if self._owes[port] and loose.num_rows:
            output.append(self._alone(port, loose, np.arange(loose.num_rows)))
        run = SortedRun.arrived(rows, keys, time)
        return _without_repeats(run) if self._halves and port == 1 and self.join.residual is None else run

    def _pairs(self, left: SortedRun, right: SortedRun) -> Iterator[tuple[Positions, Positions]]:
        """The positions of rows that match, in pieces."""
        for li, ri in meet(left, right, self._rule):
            if self.join.residual is not None and not bool((true := self._residual(left, li, right, ri)).all()):
                li, ri = li[true], ri[true]
            if len(li):
                yield li, ri

    def _residual(self, left: SortedRun, li: Positions, right: SortedRun, ri: Positions) -> Mask:
        residual = self.join.residual
        assert residual is not None
        columns = {"__row": pa.array(li)}
        columns |= self._pair(left, li, right, ri, residual.columns)
        return ask(
            residual, pa.table(columns), self.failed, lambda at: pa.table(self._pair(left, li[at], right, ri[at]))
        )

    def _pair(
        self, left: SortedRun, li: Positions, right: SortedRun, ri: Positions, names: frozenset[str] | None = None
    ) -> dict[str, pa.Array]:
        """Pairs of events under the names that both have together; all attributes that are stored, or some."""
        return {
            name: right.pick(attribute, ri) if side else left.pick(attribute, li)
            for side, attribute, name in self.join.pair
            if (attribute in self._names(side) if names is None else name in names)
        }

    def _joined(self, left: SortedRun, li: Positions, right: SortedRun, ri: Positions) -> pa.Table:
        arrays = []
        for column, field in zip(self.join.columns, self.output_schema):
            parts = [
                right.pick(attribute, ri) if side else left.pick(attribute, li) for side, attribute in column.origins
            ]
            parts = [p if p.type == field.type else p.cast(field.type) for p in parts]
            arrays.append(pc.coalesce(*parts) if len(parts) > 1 and parts[0].null_count else parts[0])
        return pa.Table.from_arrays(arrays, schema=self.output_schema)

    def _alone(self, port: int, rows: pa.Table, at: Positions) -> pa.Table:
        """Rows without a partner, the other side null."""
        arrays = []
        for column, field in zip(self.join.columns, self.output_schema):
            mine = next((attribute for side, attribute in column.origins if side == port), None)
            found = pa.nulls(len(at), field.type) if mine is None else pick(rows, mine, at)
            arrays.append(found if found.type == field.type else found.cast(field.type))
        return pa.Table.from_arrays(arrays, schema=self.output_schema)

    def _decided(self, run: SortedRun, output: list[pa.Table]) -> None:
        """Semi and anti joins are done with a left row at its first partner."""
        if not run.has(MATCHED):
            return
        met = run.flags(MATCHED)
        if run.has(DEAD):
            met = met & ~run.flags(DEAD)
        if met.any():
            if self.join.how == "semi":
                output.append(self._alone(0, run.source, run.at(np.flatnonzero(met))))
            run.mark(DEAD, met)

    def _release(
        self,
        port: int,
        runs: Sequence[SortedRun],
        patterns: Sequence[Pattern],
        output: list[pa.Table],
        counts: dict[str, int],
    ) -> None:
        selection = self._selection(port, patterns)
        for run in runs if selection else ():
            if (gone := selection.find(run)) is None:
                continue
            if run.has(DEAD):
                gone = gone & ~run.flags(DEAD)
            if not gone.any():
                continue
            counts["released"] += int(np.count_nonzero(gone))
            if self._owes[port]:
                alone = gone & ~run.flags(MATCHED) if run.has(MATCHED) else gone
                output.append(self._alone(port, run.source, run.at(np.flatnonzero(alone))))
            run.mark(DEAD, gone)

    def _kept(
        self, port: int, run: SortedRun, orders: Orders, output: list[pa.Table], counts: dict[str, int]
    ) -> list[SortedRun]:
        """The new rows to be stored, after those that nobody will ask for have left."""
        passing = self._selection(port, orders.settled[port]).find(run)
        done = run.flags(DEAD)
        if passing is not None:
            alone = passing & ~run.flags(MATCHED)
            counts["passed"] += int(np.count_nonzero(passing))
            counts["dropped"] += int(np.count_nonzero(alone))
            if self._owes[port]:
                output.append(self._alone(port, run.source, run.at(np.flatnonzero(alone))))
            done = done | passing
        kept = run if not done.any() else run.part(np.flatnonzero(~done), 0)
        counts["stored"] += len(kept)
        return cut(kept, self._slice)

    def _selection(self, port: int, patterns: Iterable[Pattern]) -> Selection:
        known = set(self._names(port))
        usable = [p for p in patterns if known.issuperset(p.restricted)]
        return Selection(usable, self.join.inputs[port].schema, self.keys[port], self.times[port])


def _without_repeats(run: SortedRun) -> SortedRun:
    """Rows equal to the one before them left out: a second equal row decides nothing."""
    again = np.flatnonzero(run.hashes[1:] == run.hashes[:-1]) + 1
    if not len(again):
        return run
    equal = np.ones(len(again), dtype=np.bool_)
    for name in run.source.column_names[1:]:
        equal &= same(run.pick(name, again), run.pick(name, again - 1), null_safe=True)
    keep = np.ones(len(run), dtype=np.bool_)
    keep[again[equal]] = False
    return run.part(np.flatnonzero(keep), 0)
