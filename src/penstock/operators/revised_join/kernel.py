"""The join of rows that may be taken back: what changes for the pairs, and for the rows without a partner.

With A and B the rows held before the epoch, and dA and dB what it changes, pairs change by dA ⋈ B + A ⋈ dB + dA ⋈ dB:
weights multiply. A row may come out alone while it has no partner; how many it has stands beside it (`__partners`), and
only rows that meet a change are looked at and written anew. It cannot be counted among what is held: partners may have
left, or may never have been stored, though the row itself still waits for others. What is held are rows that hold: one
that is taken back takes an equal one with it. Where a row may be taken back before it comes, it is noted, in runs of
their own, what is owed: until an equal row comes and goes with it, it changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.kernels.failing import Failed
from penstock.kernels.index import HASH, Mask, Positions, pick, probe, sift
from penstock.kernels.sorted_run import Rule, SortedRun, meet
from penstock.kernels.stateful import DEAD, Held, Laziness, Orders, Stepped
from penstock.kernels.weights import net
from penstock.operators.distinct.kernel import alike, equal_rows
from penstock.operators.join.kernel import JoinKernel
from penstock.operators.join.operator import LONELY
from penstock.operators.revised_aggregate.operator import may_owe
from penstock.operators.revised_join.operator import RevisedJoin
from penstock.plan.weight import NEVER_CAME, WEIGHT, without_weight

Weights = npt.NDArray[np.int64]

#: The group of the runs of what was taken back and has not come; no slice of time has it.
OWED = int(np.iinfo(np.int64).min)
#: How many partners a row has that may come out alone.
PARTNERS = "__partners"


class RevisedJoinKernel(JoinKernel):
    """One epoch of a join that takes back what no longer holds.

    >>> from dataclasses import replace
    >>> from penstock.builder.combine import join_operator
    >>> from penstock.operators.join import SPEC
    >>> from penstock.operators.source.operator import Source
    >>> from penstock.pattern.punctuation import PunctuationSet
    >>> from penstock.pattern.schema import Schema
    >>> from penstock.plan.consistency import Consistency
    >>> orders, items = Schema.parse("id int, who string"), Schema.parse("id int, what string")
    >>> join = join_operator(Source((), orders), Source((), items), "id", "left")
    >>> kernel = RevisedJoinKernel(SPEC.revised(join, join.inputs, Consistency.middle()), "join")
    >>> nothing = Orders(((), ()), (PunctuationSet(orders), PunctuationSet(items)))
    >>> first = kernel.step([pa.table([[1], ["ann"]], schema=orders.arrow), None], ((), ()), nothing)
    >>> first.output.to_pylist()
    [{'id': 1, 'who': 'ann', 'what': None, '_weight': 1}]
    >>> held = [Held("run", first.added[0].rows)]
    >>> second = kernel.step([None, pa.table([[1], ["tea"]], schema=items.arrow)], (held, ()), nothing)
    >>> [(row["what"], row["_weight"]) for row in second.output.to_pylist()]
    [(None, -1), ('tea', 1)]
    """

    join: RevisedJoin

    def __init__(self, join: RevisedJoin, operator_id: str, laziness: Laziness | None = None) -> None:
        super().__init__(join, operator_id, laziness)
        #: Per port, whether a row comes out by itself while it has no partner, or (`semi`) while it has one.
        self._alone_while = tuple(
            "some" if join.how == "semi" and port == 0 else "none" if port in LONELY[join.how] else ""
            for port in (0, 1)
        )
        self._pairs_out = join.how not in ("semi", "anti")
        self._may_owe = tuple(map(may_owe, join.inputs))
        # Nothing waits for its release.
        self._owes, self._remembers = (False, False), (False, False)
        self._schemas = [s if WEIGHT in s.names else s.append(pa.field(WEIGHT, pa.int64())) for s in self._schemas]
        rule = self._rule
        back = Rule(
            tuple((b, a) for a, b in rule.keys),
            None if rule.high is None else -rule.high,
            None if rule.low is None else -rule.low,
            rule.null_safe,
            rule.exact,
        )
        self._rules = (rule, back)
        self._told_schema = self.output_schema
        # What the columns of a result are made of knows no weight.
        self.output_schema = without_weight(join.schema).arrow

    def _needed(self, port: int) -> tuple[str, ...]:
        weight = (WEIGHT,) if WEIGHT in self.join.inputs[port].schema else ()
        return (*super()._needed(port), *weight)

    def step(self, fresh: Sequence[pa.Table | None], held: Sequence[Sequence[Held]], orders: Orders) -> Stepped:
        """What the changes that arrived change for the results; then let go of what the orders name."""
        output: list[pa.Table] = []
        counts = dict.fromkeys(("matched", "stored", "released", "passed", "dropped"), 0)
        stored = [[SortedRun.of(h, self.times[port]) for h in held[port]] for port in (0, 1)]
        new = [self._changes(port, fresh[port], output) for port in (0, 1)]
        owed: list[list[SortedRun]] = [[], []]
        for port in (0, 1):
            if self._may_owe[port]:
                new[port], stored[port], owed[port] = self._paid(port, new[port], stored[port], orders)
        if self._pairs_out:
            for left, li, right, ri in self._met(new, stored, counts):
                self._give(self._joined(left, li, right, ri), output)
        for port in (0, 1):
            if self._alone_while[port]:
                new[port], stored[port] = self._by_themselves(port, new, stored, output)
        kept = [self._cancelled(port, new[port], stored[port]) for port in (0, 1)]
        for port in (0, 1):
            self._never_came(port, owed[port], orders)
        tidied, answers = self._let_go(stored, kept, orders, output, counts, owed)
        results = net(output) if output else self._told_schema.empty_table()
        return Stepped(results, *tidied, answers, counts)

    def _changes(self, port: int, table: pa.Table | None, output: list[pa.Table]) -> SortedRun:
        """The changes of rows that can have partners as a run, each of weight +1 or −1; the others come out at once."""
        keys, time = self.keys[port], self.times[port]
        if table is not None and WEIGHT not in table.column_names:
            table = table.append_column(WEIGHT, pa.array(np.ones(table.num_rows, dtype=np.int64)))
        if table is not None:
            table = _by_ones(net([table.select(self._schemas[port].names)]))
        must = (() if self.join.null_safe else keys) + (() if time is None else (time,))
        rows, loose = sift(table, self._schemas[port], must)
        if self._alone_while[port] == "none" and loose.num_rows:
            output.append(self._alone(port, loose, np.arange(loose.num_rows)))
        return SortedRun.arrived(rows, keys, time)

    def _joined(self, left: SortedRun, li: Positions, right: SortedRun, ri: Positions) -> pa.Table:
        return _weigh(super()._joined(left, li, right, ri), _weights(left)[li] * _weights(right)[ri])

    def _alone(self, port: int, rows: pa.Table, at: Positions) -> pa.Table:
        return _weigh(super()._alone(port, rows, at), np.asarray(pick(rows, WEIGHT, at)))

    def _by_themselves(
        self, port: int, new: Sequence[SortedRun], stored: Sequence[Sequence[SortedRun]], output: list[pa.Table]
    ) -> tuple[SortedRun, list[SortedRun]]:
        """Changes of the rows of one input that come out alone, as they find partners or lose them.

        Given back are the rows with how many partners they have now.
        """
        others, changes = stored[1 - port], new[1 - port]
        mine = new[port]
        partners = self._partners(port, mine, (*others, changes))
        if len(now := np.flatnonzero(self._out(port, partners))):
            output.append(self._alone(port, mine.source, mine.at(now)))
        mine = _counted(mine, np.arange(len(mine)), partners)
        known: list[SortedRun] = []
        for run in stored[port]:
            known.append(run)
            gained = self._partners(port, run, (changes,))
            met = np.flatnonzero(gained)
            if not len(met):
                continue
            before = run.values(PARTNERS)[met]
            after = before + gained[met]
            was, now_out = self._out(port, before), self._out(port, after)
            for flips, sign in ((was & ~now_out, -1), (now_out & ~was, 1)):
                if flips.any():
                    rows = super()._alone(port, run.rows, met[flips])
                    output.append(_weigh(rows, sign * _weights(run)[met[flips]]))
            known.append(_counted(run, met, after))
            run.mark(DEAD, met)
        return mine, known

    def _out(self, port: int, partners: Weights) -> Mask:
        """Whether rows with so many partners come out by themselves."""
        none: Mask = partners == 0
        return none if self._alone_while[port] == "none" else ~none

    def _partners(self, port: int, run: SortedRun, others: Sequence[SortedRun]) -> Weights:
        """For the rows of a run, how many partners others hold, or bring."""
        found = np.zeros(len(run), dtype=np.int64)
        for other in others:
            for at, theirs in self._matches(port, run, other):
                np.add.at(found, at, _weights(other)[theirs])
        return found

    def _matches(self, port: int, run: SortedRun, other: SortedRun) -> Iterator[tuple[Positions, Positions]]:
        """The positions of pairs of a row of one input and its partner from the other."""
        for at, theirs in meet(run, other, self._rules[port]):
            if self.join.residual is not None:
                left, li, right, ri = (run, at, other, theirs) if port == 0 else (other, theirs, run, at)
                true = self._residual(left, li, right, ri)
                at, theirs = at[true], theirs[true]
            yield at, theirs

    def _cancelled(self, port: int, run: SortedRun, stored: Sequence[SortedRun]) -> SortedRun:
        """The new rows that hold; of those that are taken back, an equal one that is held goes."""
        weights = _weights(run)
        if not (weights < 0).any():
            return run
        for held, at, _ in self._equals(port, run, np.flatnonzero(weights < 0), stored):
            held.mark(DEAD, at)
        return run.part(np.flatnonzero(weights > 0), 0)

    def _paid(
        self, port: int, run: SortedRun, stored: Sequence[SortedRun], orders: Orders
    ) -> tuple[SortedRun, list[SortedRun], list[SortedRun]]:
        """The changes that change what holds; the runs of rows that hold; and those of what is owed, from now on."""
        held, owed = [r for r in stored if r.group != OWED], [r for r in stored if r.group == OWED]
        weights, counts = _weights(run), np.ones(len(run), dtype=bool)
        for debts, at, paid in self._equals(port, run, np.flatnonzero(weights > 0), owed):
            debts.mark(DEAD, at)
            counts[paid] = False
        early = weights < 0
        for _, _, known in self._equals(port, run, np.flatnonzero(early), held):
            early[known] = False
        if early.any() and (passed := self._selection(port, orders.settled[port]).find(run)) is not None:
            early &= ~passed  # What need not be stored may well have come.
        if early.any():
            owed.append(run.part(np.flatnonzero(early), OWED))
        counts &= ~early
        return run if counts.all() else run.part(np.flatnonzero(counts), 0), held, owed

    def _never_came(self, port: int, owed: Sequence[SortedRun], orders: Orders) -> None:
        """Let go of what is owed where nothing waits for it any more. That it has not come is told."""
        selection = self._selection(port, orders.release[port])
        names = {attribute: name for side, attribute, name in self.join.pair if side == port}
        for run in owed if selection else ():
            if (gone := selection.find(run)) is None:
                continue
            gone = gone & ~run.flags(DEAD)
            rows = run.rows.filter(pa.array(gone)).select([n for n in names if n in run.rows.column_names])
            if rows.num_rows:
                told = rows.rename_columns([names[n] for n in rows.column_names])
                self.failed.append(Failed(told, "", (NEVER_CAME,) * rows.num_rows))
            run.mark(DEAD, gone)

    def _equals(
        self, port: int, run: SortedRun, chosen: Positions, stored: Sequence[SortedRun]
    ) -> Iterator[tuple[SortedRun, Positions, Positions]]:
        """For chosen rows of a run an equal one of those stored, each for one: its run, where it is, and for which."""
        names = [n for n in self._schemas[port].names if n != WEIGHT]
        for held in stored:
            if not len(chosen):
                return
            mine, at = probe(run.hashes[chosen], held.hashes)
            alive = ~held.flags(DEAD)[at] if held.has(DEAD) else np.ones(len(at), dtype=bool)
            mine, at = mine[alive], at[alive]
            equal = equal_rows(run.rows, chosen[mine], held.rows, at, names)
            mine, at = _one_to_one(run, chosen, mine[equal], at[equal], names)
            if len(at):
                yield held, at, chosen[mine]
                chosen = np.delete(chosen, mine)


def _counted(run: SortedRun, at: Positions, partners: Weights) -> SortedRun:
    """Some rows of a run, with how many partners they have."""
    rows = run.source.take(pa.array(run.at(at)))
    if PARTNERS in rows.column_names:
        rows = rows.drop_columns([PARTNERS])
    return SortedRun(rows.append_column(PARTNERS, pa.array(partners, pa.int64())), run.time, group=run.group)


def _weights(run: SortedRun) -> Weights:
    return run.values(WEIGHT)


def _weigh(rows: pa.Table, weights: Weights) -> pa.Table:
    return rows.append_column(WEIGHT, pa.array(weights, pa.int64()))


def _by_ones(rows: pa.Table) -> pa.Table:
    """Rows of weight +1 and −1 only, each as often as its weight says."""
    weights = np.asarray(rows[WEIGHT])
    if not len(weights) or int(np.abs(weights).max()) == 1:
        return rows
    repeated = rows.take(pa.array(np.repeat(np.arange(len(weights)), np.abs(weights))))
    signs = np.repeat(np.sign(weights), np.abs(weights))
    return repeated.set_column(repeated.schema.get_field_index(WEIGHT), WEIGHT, pa.array(signs, pa.int64()))


def _one_to_one(
    run: SortedRun, wanted: Positions, mine: Positions, at: Positions, names: Sequence[str]
) -> tuple[Positions, Positions]:
    """Of pairs of equal rows so many that each row is in one at most, and no row is left over that could be in one."""
    if len(mine) < 2:
        return mine, at
    rows = run.source.take(pa.array(run.at(wanted[mine])))
    kind = alike(rows.select(names), np.asarray(rows[HASH]))
    turn_mine, turn_at = _turns(kind, mine), _turns(kind, at)
    same_turn = turn_mine == turn_at
    return mine[same_turn], at[same_turn]


def _turns(kind: Positions, rows: Positions) -> Positions:
    """For each pair the how-manieth of its kind its row is."""
    pairs = np.stack([kind, rows], axis=1)
    unique, back = np.unique(pairs, axis=0, return_inverse=True)
    first = np.searchsorted(unique[:, 0], unique[:, 0])
    turn = np.arange(len(unique)) - first
    return np.asarray(turn[back.reshape(-1)], dtype=np.int64)
