"""Aggregates over sessions: partial rows of sessions, put together where they overlap or touch.

Events within one stretch of a gap's length are of one session, whatever comes between. So they are grouped by such
stretches first, which shrinks millions of events like any other group, and only the rows of stretches are sorted.

State is one partial row for each session that can still change, in runs sorted by a hash of the key. An epoch looks up
the sessions of the keys that arrive by binary search and leaves the others alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import pyarrow as pa

from penstock.kernels.duck import query, quote
from penstock.kernels.fold import matching, span_of
from penstock.kernels.stateful import DEAD, Held, Orders, Stepped
from penstock.operators.aggregate.kernel import AggregateKernel
from penstock.operators.distinct.kernel import Piece, by_hash, flags, pieces_of, tidied
from penstock.operators.revised_aggregate.kernel import GrowingKernel
from penstock.operators.top.kernel import Complete
from penstock.operators.window.kernel import end_sql, floor_sql, moment_sql, tick_sql
from penstock.pattern.schema import Attribute, Schema
from penstock.plan.window import SessionWindow


class SessionGroups(AggregateKernel):
    """The aggregates of sessions.

    >>> from penstock.plan.window import Window
    >>> from penstock.sql.aggregation import Aggregation
    >>> s = Schema.parse("t int, k string, x int", time="t")
    >>> kernel = SessionGroups(s, ["k"], [Aggregation.parse("n", "sum(x)", s)], Window.session(10).resolve(s))
    >>> apart = kernel.partial(pa.table({"t": [1, 30, 19], "k": ["a", "a", "a"], "x": [5, 6, 7]}, schema=s.arrow))
    >>> sorted(apart["window_end"].to_pylist())
    [11, 29, 40]
    >>> between = kernel.partial(pa.table({"t": [10], "k": ["a"], "x": [1]}, schema=s.arrow))
    >>> kernel.finalize(kernel.merge([apart, between])).sort_by("window_start").to_pydict()
    {'window_start': [1, 30], 'window_end': [29, 40], 'k': ['a', 'a'], 'n': [13, 6]}
    """

    @property
    def session(self) -> SessionWindow:
        assert isinstance(self.window, SessionWindow)
        return self.window

    @cached_property
    def grouping(self) -> tuple[str, ...]:
        """What tells results apart; of a session that is not over, the first two are still to change."""
        return (self.session.start, self.session.label, *self.keys)

    @cached_property
    def _group_fields(self) -> list[tuple[str, pa.DataType]]:
        moment = self.session.label_type(self.input_schema)
        keys = [(k, self.input_schema.type_of(k)) for k in self.keys]
        return [(self.session.start, moment), (self.session.label, moment), *keys]

    @cached_property
    def output_schema(self) -> Schema:
        fields = (*self._group_fields, *((n, t) for n, _, t in self.parts.finals))
        times = (self.session.label, *(k for k in self.keys if k in self.input_schema.times))
        return Schema(tuple(Attribute(n, t) for n, t in fields), times)

    def partial_sql(self, input_sql: str) -> str:
        """A row for each stretch: what `merge` makes of them is for whoever has all of a key."""
        window = self.session
        tick = tick_sql(window)
        stretches = self._grouped(
            input_sql, floor_sql(tick, window.gap), (f"min({tick}) AS __first", f"max({tick}) AS __last")
        )
        start, end = moment_sql(window, "__first"), end_sql(window, "__last")
        columns = "".join(f", {quote(c)}" for c in (*self.keys, *self._state_columns))
        named = f"SELECT {start} AS {quote(window.start)}, {end} AS {quote(window.label)}{columns}"
        return f"{named} FROM ({stretches}) WHERE __number IS NOT NULL"

    def merge(self, tables: Sequence[pa.Table]) -> pa.Table:
        """One row per session from the partial rows of many tables."""
        some = [self.partial_table(t) for t in tables if t.num_rows]
        if not some:
            return self.partial_schema.empty_table()
        sql = self._islands("SELECT * FROM partials")
        return self.partial_table(query(sql, partials=pa.concat_tables(some)))

    def _islands(self, rows: str) -> str:
        """One statement around another: its rows put together where the sessions of a key overlap or touch."""
        start, end = quote(self.session.start), quote(self.session.label)
        keys = "".join(f", {quote(k)}" for k in self.keys)
        over = f"({f'PARTITION BY {keys[2:]} ' if keys else ''}ORDER BY {start}"
        reached = f"max({end}) OVER {over} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
        begins = f"SELECT *, CAST(coalesce({start} > {reached}, TRUE) AS INTEGER) AS __begins FROM ({rows})"
        # Rows that start together are of one session, whichever of them begins it.
        numbered = f"SELECT *, sum(__begins) OVER {over} RANGE UNBOUNDED PRECEDING) AS __island FROM ({begins})"
        return self.merging(
            numbered, ("__island", *self.keys), beside=(f"min({start}) AS {start}", f"max({end}) AS {end}")
        )


class CorrectedSessions(GrowingKernel):
    """Sessions are told at once; one that has grown is taken back, and so are several that have become one.

    >>> from penstock.pattern.punctuation import PunctuationSet
    >>> from penstock.plan.window import Window
    >>> from penstock.sql.aggregation import Aggregation
    >>> s = Schema.parse("t int", time="t")
    >>> kernel = CorrectedSessions(
    ...     SessionGroups(s, [], [Aggregation.parse("n", "count(*)", s)], Window.session(10).resolve(s))
    ... )
    >>> nothing = Orders(((),), (PunctuationSet(s),))
    >>> first, then = (kernel.groups.partial(pa.table({"t": t}, schema=s.arrow)) for t in ([1, 20], [11]))
    >>> held = [Held(str(i), run.rows) for i, run in enumerate(kernel.step([first], [[]], nothing).added)]
    >>> kernel.step([then], [held], nothing).output.sort_by("window_end").to_pylist()[-1]
    {'window_start': 1, 'window_end': 30, 'n': 3, '_weight': 1}
    """

    def __init__(self, groups: SessionGroups) -> None:
        super().__init__(groups, groups.keys)
        self.closing, self.by = groups.session.label, groups.keys


class ClosedSessions(CorrectedSessions):
    """Sessions are told when they are over. `orders.release[0]` are patterns of sessions that are."""

    @property
    def nothing(self) -> pa.Table:
        return self.output_schema.arrow.empty_table()

    def step(self, fresh: Sequence[pa.Table | None], held: Sequence[Sequence[Held]], orders: Orders) -> Stepped:
        """Put what arrived together with the sessions of its keys; then give out those that are over."""
        pieces = [Piece.of(run) for run in held[0]]
        release = orders.release[0]
        now = self.stored.empty_table()
        if fresh[0] is not None and fresh[0].num_rows:
            arrived = self.together([fresh[0]])
            now = self.together([*self._taken(arrived, pieces), arrived])
        leaving: list[pa.Table] = []
        if release:
            over = Complete(release, self.output_schema, self.by, self.closing)
            for piece in pieces:
                if (found := over.find(piece)) is not None and (found := found & ~piece.mark(DEAD)).any():
                    leaving.append(piece.rows.filter(pa.array(found)).select(self.stored.names))
                    piece.kill(found)
            mask = flags(matching(now, release))
            leaving.append(now.filter(pa.array(mask)))
            now = now.filter(pa.array(~mask))
        pieces += pieces_of(now, self._hashes(now), self.closing)
        dropped, marked, added, _ = tidied(pieces, 0, by_hash, lambda table: span_of(table, self.closing))
        output = self.groups.finalize(pa.concat_tables(leaving)) if leaving else self.nothing
        return Stepped(output, dropped, marked, added)
