"""Joins of rows that hold for a time, by what changes.

With A and B the rows before the epoch and dA and dB what it changes, pairs change by dA ⋈ B + A ⋈ dB + dA ⋈ dB: weights
multiply, lifetimes intersect, and what comes out of it is put together, so that a pair whose end stays is not told
again. A row is kept until all is final of both inputs up to its end: then no change of the other can reach it, and none
of its own. Of retractions that come before what they are about nothing is told until that has come.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.duck import query, quote
from penstock.kernels.failing import Failed, ask
from penstock.kernels.fold import frontier_of, tick
from penstock.kernels.hash import hash_keys
from penstock.kernels.index import distinct
from penstock.kernels.stateful import DEAD, Circumstances, Fresh, Held, Orders, Stepped
from penstock.kernels.weights import net, synced, weighted
from penstock.operators.distinct.kernel import Piece
from penstock.operators.lifetime_join.operator import LifetimeJoin
from penstock.operators.shared.stock import FOREVER, Stock
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import SYNC, Attribute, Schema
from penstock.plan.weight import WEIGHT, without_weight


class LifetimeJoinKernel:
    """`orders.settled[port]` says up to when all is final of both inputs, as patterns over the rows of this one.

    >>> import penstock as ps
    >>> from penstock.analysis.speculate import speculate
    >>> from penstock.pattern.punctuation import PunctuationSet
    >>> a = ps.stream("a", "k int, x int, since int, until int", lifetime=("since", "until"))
    >>> b = ps.stream("b", "k int, y int, since int, until int", lifetime=("since", "until"))
    >>> (join,) = speculate([a.join(b, "k").operator], ps.Consistency.middle())
    >>> kernel = LifetimeJoinKernel(join, "join-1")
    >>> left = pa.table({"k": [1], "x": [5], "since": [2], "until": [6], "_weight": [1]})
    >>> right = pa.table({"k": [1], "y": [7], "since": [3], "until": [9], "_weight": [1]})
    >>> nothing = Orders(((), ()), tuple(PunctuationSet(i.schema) for i in join.inputs))
    >>> kernel.step([left, right], [[], []], nothing).output.to_pylist()
    [{'since': 3, 'until': 6, 'k': 1, 'x': 5, 'y': 7, '_sync': 3, '_weight': 1}]
    """

    def __init__(self, join: LifetimeJoin, operator_id: str) -> None:
        self.join, self.operator_id = join, operator_id
        self.stocks: list[Stock] = []
        self.spread: tuple[tuple[str, ...], ...] = (join.keys_of(0), join.keys_of(1))
        needed = []
        for port, below in enumerate(join.inputs):
            plain = without_weight(below.schema)
            names = [n for n in plain.names if n != SYNC]
            schema = pa.schema([(n, plain.type_of(n)) for n in names] + [(WEIGHT, pa.int64())])
            self.stocks.append(Stock(schema, join.keys_of(port), *below.schema.lifetime))
            needed.append(tuple(n for n in below.schema.names if n in schema.names))
        self.needed: tuple[tuple[str, ...] | None, ...] = tuple(needed)
        self.failed: list[Failed] = []

    def under(self, circumstances: Circumstances) -> Self:
        other = copy.copy(self)
        other.failed = []
        return other

    @property
    def failed_schema(self) -> Schema:
        """Of pairs."""
        pairs = (Attribute(n, self.join.inputs[side].schema.type_of(a)) for side, a, n in self.join.pair)
        return Schema(tuple(pairs))

    def step(self, fresh: Sequence[pa.Table | None], held: Sequence[Sequence[Held]], orders: Orders) -> Stepped:
        """Tell how pairs change; then forget the rows that none can change with any more."""
        pieces = [[Piece.of(run) for run in runs] for runs in held]
        new = [self._arrived(port, table) for port, table in enumerate(fresh)]
        # What was held of the keys of each change, in the other input.
        old = [self._partners(port, new[port], pieces[1 - port]) for port in (0, 1)]
        came = []
        for port, stock in enumerate(self.stocks):
            met = stock.meet(new[port], pieces[port])
            pieces[port] += stock.kept(met.after)
            came.append(stock.revised(met)[2])
        changes = [self._pairs(came[0], old[0]), self._pairs(old[1], came[1]), self._pairs(came[0], came[1])]
        bounds = [self._bound(port, orders.settled[port]) for port in (0, 1)]
        dropped: list[str] = []
        marked: list[tuple[str, pa.Table]] = []
        added: list[Fresh] = []
        for port, stock in enumerate(self.stocks):
            # What is stored has been looked through already, unless there is something new to go by.
            some = pieces[port] if orders.release[port] else [p for p in pieces[port] if p.name is None]
            self._forget(stock, some, bounds[port])
            gone, changed, made = stock.stored(pieces[port], port)
            dropped += gone
            marked += changed
            added += made
        start, end = self.join.schema.lifetime
        output = synced(pa.concat_tables(changes), start, end)
        output = output.select(self.join.schema.names).cast(self.join.schema.arrow)
        return Stepped(output, tuple(dropped), tuple(marked), tuple(added))

    def _arrived(self, port: int, table: pa.Table | None) -> pa.Table:
        """What changes of an input; rows with a null in the key have no partners."""
        stock = self.stocks[port]
        if table is None:
            return stock.schema.empty_table()
        table = table if WEIGHT in table.column_names else weighted(table, 1)
        found = table.select(stock.schema.names).cast(stock.schema)
        for key in stock.keys:
            if found[key].null_count:
                found = found.filter(pc.is_valid(found[key]))
        return net([found])

    def _partners(self, port: int, rows: pa.Table, pieces: Sequence[Piece]) -> pa.Table:
        """What the other input holds of the keys of some rows."""
        stock = self.stocks[1 - port]
        wanted = distinct(np.sort(hash_keys(rows, self.stocks[port].keys))) if rows.num_rows else np.zeros(0, np.uint64)
        return stock.holding(stock.of_hashes(wanted, pieces))

    def _pairs(self, left: pa.Table, right: pa.Table) -> pa.Table:
        """Changes of pairs of these rows."""
        join = self.join
        (a, b), (c, d) = ((quote(s.start), quote(s.end)) for s in self.stocks)
        start, end = join.schema.lifetime
        both = [(f"{'lr'[side]}.{quote(name)}", quote(alias)) for side, name, alias in join.pair]
        weight = f"l.{WEIGHT} * r.{WEIGHT}"
        keys = " AND ".join(f"l.{quote(x)} = r.{quote(y)}" for x, y in join.keys)
        sql = f"""
            SELECT {", ".join(f"{what} AS {name}" for what, name in both)}, greatest(l.{a}, r.{c}) AS __start,
                least(l.{b}, r.{d}) AS __end, CAST({weight} AS BIGINT) AS {WEIGHT}
            FROM lefts l JOIN rights r ON {keys}
            WHERE (r.{d} IS NULL OR l.{a} < r.{d}) AND (l.{b} IS NULL OR r.{c} < l.{b})"""
        names = {(side, name): alias for side, name, alias in join.pair}
        schema = without_weight(join.schema)
        told = pa.schema([(n, schema.type_of(n)) for n in schema.names if n != SYNC] + [(WEIGHT, pa.int64())])
        if not left.num_rows or not right.num_rows:
            return told.empty_table()
        found = query(sql, lefts=left, rights=right)
        if join.residual is not None and found.num_rows:
            true = ask(join.residual, found, self.failed, lambda at: self._shown(found, at))
            found = found.filter(pa.array(true))
        columns = {c.name: found[names[c.origins[0]]] for c in join.columns}
        columns |= {start: found["__start"], end: found["__end"], WEIGHT: found[WEIGHT]}
        return pa.table([columns[n] for n in told.names], names=told.names).cast(told)

    def _shown(self, found: pa.Table, at: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Table:
        return found.select([alias for _, _, alias in self.join.pair]).take(pa.array(at))

    def _bound(self, port: int, settled: Iterable[Pattern]) -> int | None:
        """The first tick that is not final of both inputs."""
        t = self.join.inputs[port].schema.type_of(SYNC)
        known = tuple(settled)
        bounds = [f for p in known if (f := frontier_of(p, SYNC)) is not None]
        if any(not p.restricted for p in known):
            return FOREVER
        return max((tick(at, t) + inclusive for at, inclusive in bounds), default=None)

    def _forget(self, stock: Stock, pieces: Sequence[Piece], bound: int | None) -> None:
        """Rows go that have ended when all up to then is final of both inputs, and at their end all."""
        if bound == FOREVER:
            for piece in pieces:
                piece.kill(~piece.mark(DEAD))
        elif bound is not None:
            for piece, chosen in stock.ended(pieces, bound, bound):
                piece.kill(chosen)
