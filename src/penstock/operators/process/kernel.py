"""A user's function with a state for each key.

State is one row for each key, in runs sorted by a hash of the key (`__hash`). An epoch looks up the keys of its events
by binary search and leaves the rest of the state alone: rows that are replaced are marked dead, and new ones make a
run of their own. Equal hashes are checked for equal keys: nulls are alike, NaN is NaN, 0.0 is -0.0.

The function is called twice at most: with the events, then with the keys that are over. So it finds the state of a key
that is over as its last event left it, whether that was in the same epoch or long ago.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.errors import UserError
from penstock.kernels.fold import matching
from penstock.kernels.hash import hash_keys
from penstock.kernels.index import HASH, Mask, build, order_of, probe, whole
from penstock.kernels.stateful import DEAD, Held, Orders, Stepped
from penstock.operators.distinct.kernel import Piece, alike, by_hash, equal_rows, first_of_each, flags, tidied
from penstock.operators.map.kernel import as_declared
from penstock.operators.process.operator import Process


class ProcessKernel:
    """Events and the state of their keys go to the function; `orders.release[0]` are patterns of keys that are over.

    >>> from penstock.operators.source.operator import Source
    >>> from penstock.pattern.punctuation import PunctuationSet
    >>> from penstock.pattern.schema import Schema
    >>> schema = Schema.parse("k int")
    >>> def count(events, state, over):
    ...     before = dict(zip(state["k"].to_pylist(), state["n"].to_pylist()))
    ...     for k in events["k"].to_pylist():
    ...         before[k] = before.get(k, 0) + 1
    ...     return events, pa.table({"k": list(before), "n": list(before.values())}, schema=state.schema)
    >>> source = Source((), schema)
    >>> counting = Process((source,), schema, function=count, by=("k",), state=Schema.parse("n int"))
    >>> step = ProcessKernel(counting, "process-1").step(
    ...     [pa.table({"k": [7, 7]}, schema=schema.arrow)], [[]], Orders(((),), (PunctuationSet(schema),))
    ... )
    >>> step.added[0].rows.select(["k", "n"]).to_pylist()
    [{'k': 7, 'n': 2}]
    """

    def __init__(self, operator: Process, operator_id: str) -> None:
        self.operator, self.operator_id = operator, operator_id
        self.schema, self.held_schema = operator.inputs[0].schema, operator.held
        self.key_schema = self.schema.select(operator.by)
        self.spread: tuple[tuple[str, ...], ...] = (operator.by,)
        self.needed: tuple[tuple[str, ...] | None, ...] = (None,)

    def step(self, fresh: Sequence[pa.Table | None], held: Sequence[Sequence[Held]], orders: Orders) -> Stepped:
        """The results of the function; state as it says, without the keys that are over."""
        pieces = [Piece.of(run) for run in held[0]]
        results: list[pa.Table] = [self.operator.schema.arrow.empty_table()]
        if fresh[0] is not None and fresh[0].num_rows:
            events = fresh[0].select(self.schema.names).combine_chunks()
            keys = self._keys_of(events)
            nothing = self.key_schema.arrow.empty_table()
            made, state = self._call(events, self._taken_with(keys, pieces), nothing, keys)
            results.append(made)
            pieces += [Piece(build(state, self.operator.by))] if state.num_rows else []
        ended = 0
        if orders.release[0]:
            state = self._taken([flags(matching(p.rows, orders.release[0])) for p in pieces], pieces)
            ended = state.num_rows
            if ended:
                over = state.select(self.operator.by)
                made, _ = self._call(self.schema.arrow.empty_table(), state, over, over)
                results.append(made)
        dropped, marked, added, _ = tidied(pieces, 0, by_hash, lambda table: (None, None))
        return Stepped(pa.concat_tables(results), dropped, marked, added, counts={"ended": ended})

    def _keys_of(self, events: pa.Table) -> pa.Table:
        """The keys of events, each once, in order of arrival."""
        keys = events.select(self.operator.by)
        return keys.take(pa.array(np.sort(first_of_each(alike(keys, hash_keys(keys, self.operator.by))))))

    def _taken_with(self, keys: pa.Table, pieces: Sequence[Piece]) -> pa.Table:
        """Take the state of some keys out of the pieces."""
        hashes = hash_keys(keys, self.operator.by)
        order = order_of(hashes)
        chosen = []
        for piece in pieces:
            mine, theirs = probe(hashes[order], np.asarray(whole(piece.rows[HASH])))
            same = equal_rows(keys, order[mine], piece.rows, theirs, self.operator.by)
            found = np.zeros(piece.rows.num_rows, dtype=bool)
            found[theirs[same]] = True
            chosen.append(found)
        return self._taken(chosen, pieces)

    def _taken(self, chosen: Sequence[Mask], pieces: Sequence[Piece]) -> pa.Table:
        """Take the chosen rows out of the pieces, as far as they are alive."""
        parts = [self.held_schema.arrow.empty_table()]
        for mask, piece in zip(chosen, pieces, strict=True):
            live = mask & ~piece.mark(DEAD)
            if live.any():
                parts.append(piece.rows.select(self.held_schema.names).filter(pa.array(live)))
                piece.kill(live)
        return pa.concat_tables(parts).combine_chunks()

    # --- the function -------------------------------------------------------------------------------------------------

    def _call(self, events: pa.Table, state: pa.Table, over: pa.Table, keys: pa.Table) -> tuple[pa.Table, pa.Table]:
        """What the function makes of it, in exactly the declared types. `keys` are all that it may speak of."""
        operator, who = self.operator, f"operator {self.operator_id}: function {self.operator.called}"
        hint = "it gets pyarrow.Tables (events, state, over) and returns two: (results, state)"
        try:
            returned = operator.function(events, state, over)
        except Exception as error:
            raise UserError(f"{who} failed: {type(error).__name__}: {error}", hint=hint) from error
        if not isinstance(returned, tuple | list) or len(returned) != 2:
            raise UserError(f"{who} returned {_named(returned)}, not results and state", hint=hint)
        results = as_declared(returned[0], operator.schema, who, "as results")
        kept = as_declared(returned[1], self.held_schema, who, "as state")
        self._check_once(kept, who)
        self._check_keys(kept, operator.by, keys, f"{who} returned state")
        self._check_keys(results, operator.kept, keys, f"{who} returned a result")
        return results, kept

    def _check_once(self, kept: pa.Table, who: str) -> None:
        keys = kept.select(self.operator.by)
        number = alike(keys, hash_keys(keys, self.operator.by))
        first = first_of_each(number)
        if len(first) < kept.num_rows:
            again = np.setdiff1d(np.arange(kept.num_rows), first)[0]
            raise UserError(
                f"{who} returned two rows of state for {_shown(keys, again)}",
                hint=f"at most one row for each value of {', '.join(self.operator.by)}: the state from now on",
            )

    def _check_keys(self, table: pa.Table, names: Sequence[str], given: pa.Table, what: str) -> None:
        """Keys live in the bucket of their events, and what is over stays over: nothing may come of other keys."""
        if not table.num_rows or not names:
            return
        asked, known = table.select(names), given.select(names)
        mine, theirs = hash_keys(asked, names), hash_keys(known, names)
        order, other = order_of(mine), order_of(theirs)
        i, j = probe(mine[order], theirs[other])
        found = np.zeros(table.num_rows, dtype=bool)
        found[order[i[equal_rows(asked, order[i], known, other[j], names)]]] = True
        if not found.all():
            raise UserError(
                f"{what} for {_shown(asked, int(np.flatnonzero(~found)[0]))}, which is not among the keys it was given",
                hint="only for keys of the events, or keys that are over",
            )


def _named(returned: object) -> str:
    if isinstance(returned, tuple | list):
        return f"{len(returned)} values"
    return type(returned).__name__


def _shown(keys: pa.Table, position: int) -> str:
    row = keys.slice(int(position), 1).to_pylist()[0]
    return ", ".join(f"{name} = {value!r}" for name, value in row.items())
