"""Grouped aggregates: partial rows from events, one row per group from many, answers from those.

`partial` runs next to the scan and shrinks millions of events to one row per group and window; `merge` brings rows of
tasks and epochs together; `finalize` turns them into answers. Sliding windows are computed by *panes*, the stretches
that no window cuts: events are read once, whatever the overlap, and only pane rows are copied to their windows.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import FailingError, OverflowingError, PenstockError
from penstock.kernels.duck import query, quote
from penstock.kernels.failing import Failed, sound
from penstock.operators.aggregate import exact_sum
from penstock.operators.window import kernel as bucket
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Attribute, Schema
from penstock.plan.window import CountWindow, LandmarkWindow, TimeWindow, Window
from penstock.sql.aggregation import Aggregation, decompose
from penstock.sql.fallible import Fallible

_HINT = "cast the argument to decimal(38,0), as in sum(cast(x as decimal(38,0)))"


class AggregateKernel:
    """The aggregates of one operator.

    >>> s = Schema.parse("t int, k string, x int", time="t")
    >>> kernel = AggregateKernel(s, ["k"], [Aggregation.parse("n", "sum(x)", s)], Window.tumbling(10).resolve(s))
    >>> part = kernel.partial(pa.table({"t": [1, 12, 3], "k": ["a", "a", "a"], "x": [5, 6, 7]}, schema=s.arrow))
    >>> kernel.finalize(kernel.merge([part, part])).sort_by("window_start").to_pydict()
    {'window_start': [0, 10], 'k': ['a', 'a'], 'n': [24, 12]}
    """

    def __init__(
        self,
        input_schema: Schema,
        keys: Sequence[str],
        aggregations: Sequence[Aggregation],
        window: Window | None = None,
        operator_id: str = "aggregate",
        time: str | None = None,
    ) -> None:
        self.input_schema = input_schema
        self.keys = tuple(keys)
        self.aggregations = tuple(aggregations)
        self.window = window
        self.operator_id = operator_id
        self.time = time if time is not None else (window.on if window is not None else None)
        self.parts = decompose(self.aggregations)
        #: Where groups are noted that have no answer; None if that is an error.
        self.failed: list[Failed] | None = None

    def noting(self) -> Self:
        """The same kernel; groups without an answer (a sum too large for its type) are noted in `failed`."""
        other = copy.copy(self)
        other.failed = []
        return other

    @cached_property
    def tried(self) -> tuple[Fallible, ...]:
        """What may fail on a single event."""
        return tuple(dict.fromkeys(t for a in self.aggregations for t in a.tried))

    def try_all(self, events: pa.Table) -> None:
        """Raises what fails on some event, if anything does."""
        if self.tried and events.num_rows:
            query(f"SELECT {', '.join(f'bool_or(({t.sql}) IS NULL)' for t in self.tried)} FROM events", events=events)

    @cached_property
    def grouping(self) -> tuple[str, ...]:
        """The grouping attributes of a result: the label of the window, if there is one, then the keys."""
        return (*((self.window.label,) if self.window is not None else ()), *self.keys)

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """The input attributes that are looked at, in schema order."""
        wanted = {*self.keys, *(c for a in self.aggregations for c in a.columns)}
        if self.window is not None and self.window.on is not None:
            wanted.add(self.window.on)
        return tuple(n for n in self.input_schema.names if n in wanted)

    @cached_property
    def _group_fields(self) -> list[tuple[str, pa.DataType]]:
        fields = [(k, self.input_schema.type_of(k)) for k in self.keys]
        if self.window is not None:
            fields.insert(0, (self.window.label, self.window.label_type(self.input_schema)))
        return fields

    @cached_property
    def partial_schema(self) -> pa.Schema:
        fields = list(self._group_fields)
        for p in self.parts.partials:
            fields += exact_sum.columns(p.column) if p.is_float_sum else [(p.column, p.type)]
        return pa.schema(fields)

    @cached_property
    def output_schema(self) -> Schema:
        attributes = [
            Attribute(name, t) for name, t in (*self._group_fields, *((n, t) for n, _, t in self.parts.finals))
        ]
        timed = self.window is not None and not isinstance(self.window, CountWindow)
        times = [self.window.label] if timed and self.window is not None else []
        times += [k for k in self.keys if k in self.input_schema.times]
        return Schema(tuple(attributes), tuple(times))

    # From events to partial rows.

    def partial_sql(self, input_sql: str) -> str:
        """One statement from the rows of `input_sql` to partial rows, one per group."""
        window = self.window
        if isinstance(window, CountWindow):
            raise PenstockError(f"{self.operator_id}: positions of events need state", hint="use count_windows")
        if isinstance(window, LandmarkWindow):
            since = f"({bucket.tick_sql(window)} - {window.origin})"
            rows = bucket.members_sql(input_sql, window)
            number = f"{since} // {window.every} + 1"
            return self._labelled(self._grouped(rows, number), bucket.label_sql(window, '"__number"'))
        if isinstance(window, TimeWindow):
            return self.windowed(input_sql, window, bucket.tick_sql(window))
        return self._grouped(input_sql, None)

    def partial(self, events: pa.Table) -> pa.Table:
        """Partial rows of events, one per group."""
        return self.partial_table(query(self.partial_sql("SELECT * FROM events"), events=events))

    def windowed(self, input_sql: str, window: TimeWindow | CountWindow, tick: str) -> str:
        rows = input_sql
        if window.size < window.slide:
            rows = f"SELECT * FROM ({input_sql}) WHERE {bucket.member_sql(window, tick)}"
        label = bucket.label_sql(window, '"__number"')
        if window.size <= window.slide:
            return self._labelled(self._grouped(rows, bucket.number_sql(window, tick)), label)
        panes = self._grouped(rows, bucket.pane_sql(window, tick))
        pane_tick = bucket.pane_tick_sql(window, '"__number"')
        columns = "".join(f", {quote(c)}" for c in (*self.keys, *self._state_columns))
        expanded = f"SELECT {bucket.number_sql(window, pane_tick)} AS __number{columns} FROM ({panes})"
        # Panes of one window meet again here; the label is made afterwards, once per group.
        keys = "".join(f", {quote(k)}" for k in self.keys)
        merged = f"SELECT __number{keys}{self.merging()} FROM ({expanded}) GROUP BY __number{keys}"
        return self._labelled(merged, label)

    def _grouped(self, rows: str, number: str | None) -> str:
        """Group the rows of `rows` by window or pane number and keys."""
        sums = [p for p in self.parts.partials if p.is_float_sum]
        layers = [exact_sum.layers(p.column, p.partial_sql) for p in sums]
        for depth in range(len(layers[0]) if layers else 0):
            derived = ", ".join(f"{sql} AS {column}" for column, sql in (layer[depth] for layer in layers))
            rows = f"SELECT *, {derived} FROM ({rows})"
        aggregates = []
        for p in self.parts.partials:
            if p.is_float_sum:
                names = exact_sum.columns(p.column)
                aggregates += [f"{sql} AS {quote(c)}" for sql, (c, _) in zip(exact_sum.partial(p.column), names)]
            else:
                aggregates.append(f"{p.partial_sql} AS {quote(p.column)}")
        group = [*([f"{number}"] if number is not None else []), *(quote(k) for k in self.keys)]
        named = [f"{number} AS __number"] if number is not None else []
        selected = ", ".join([*named, *(quote(k) for k in self.keys), *aggregates])
        # Without groups SQL answers one row even for no events, but no events are no group.
        by = f"GROUP BY {', '.join(str(i + 1) for i in range(len(group)))}" if group else "HAVING count(*) > 0"
        return f"SELECT {selected or 'count(*)'} FROM ({rows}) {by}"

    def _labelled(self, grouped: str, label: str) -> str:
        """Labels for numbers. Events without a time have no number; it is cheaper to drop their groups than them."""
        assert self.window is not None
        columns = "".join(f", {quote(c)}" for c in (*self.keys, *self._state_columns))
        return f"SELECT {label} AS {quote(self.window.label)}{columns} FROM ({grouped}) WHERE __number IS NOT NULL"

    # From partial rows to answers.

    def merge(self, tables: Sequence[pa.Table]) -> pa.Table:
        """One row per group from the partial rows of many tables."""
        some = [self.partial_table(t) for t in tables if t.num_rows]
        if not some:
            return self.partial_schema.empty_table()
        by = ", ".join(quote(g) for g in self.grouping)
        group = f"GROUP BY {by}" if by else "HAVING count(*) > 0"
        sql = f"SELECT {by}{self.merging(comma=bool(by))} FROM partials {group}"
        return self.partial_table(query(sql, partials=pa.concat_tables(some)))

    def finalize(self, partials: pa.Table) -> pa.Table:
        """The answers of groups, each given by one partial row, in the same order."""
        if not partials.num_rows:
            return self.output_schema.arrow.empty_table()
        partials = self.partial_table(partials)
        if (plain := self._as_they_are(partials, self.output_schema.names)) is not None:
            return plain
        resolved = self._resolve_sums(partials)
        groups = [quote(g) for g in self.grouping]
        finals = [f"{sql} AS {quote(name)}" for name, sql, _ in self.parts.finals]
        sql = f"SELECT {', '.join([*groups, *finals])} FROM partials"
        try:
            answer = query(sql, partials=resolved)
        except FailingError as error:
            if self.failed is None:
                raise self._overflow(self._culprit(resolved), error) from error
            texts = {a.name: f"{a.text} AS {a.name}" for a in self.aggregations}
            resolved, failed = sound(resolved, [Fallible(texts[name], sql) for name, sql, _ in self.parts.finals])
            self.failed += [Failed(f.rows.select(list(self.grouping)), f.text, f.reasons) for f in failed]
            answer = query(sql, partials=resolved)
        return cast(answer, self.output_schema.arrow)

    def values(self, partials: pa.Table, names: Sequence[str]) -> pa.Table:
        """The groups, each given by one partial row, with some of their answers.

        Of those that are not asked for, one may be too large for now, such as a sum that is to become less again.
        """
        wanted = [n for n in self.output_schema.names if n in names or n in self.grouping]
        partials = self.partial_table(partials)
        if (plain := self._as_they_are(partials, wanted)) is not None:
            return plain
        finals = {name: f"{sql} AS {quote(name)}" for name, sql, _ in self.parts.finals}
        sql = f"SELECT {', '.join(finals.get(n, quote(n)) for n in wanted)} FROM partials"
        schema = pa.schema([self.output_schema.arrow.field(n) for n in wanted])
        return cast(query(sql, partials=partials), schema)

    def _as_they_are(self, partials: pa.Table, names: Sequence[str]) -> pa.Table | None:
        """Answers that are nothing but columns of the partial rows, as counts and extremes are; None if one is not."""
        columns = []
        for name in names:
            column = name if name in self.grouping else self._plain.get(name)
            if column is None or partials.schema.field(column).type != self.output_schema.type_of(name):
                return None
            columns.append(partials.column(column))
        return pa.table(columns, schema=pa.schema([self.output_schema.arrow.field(n) for n in names]))

    def close(self, partials: pa.Table, closers: Sequence[Pattern]) -> tuple[pa.Table, pa.Table]:
        """The answers of the groups that a closer covers, and the partial rows of the others.

        A closer that also restricts an aggregate's value says nothing of whole groups, and closes none.
        """
        mask = pa.array(np.zeros(partials.num_rows, dtype=bool))
        for closer in closers:
            if closer.describes(self.grouping):
                mask = pc.or_(mask, closer.matches(partials))
        return self.finalize(partials.filter(mask)), partials.filter(pc.invert(mask))

    # Inside.

    @cached_property
    def _plain(self) -> dict[str, str]:
        """The answers that are columns of partial rows, by name."""
        columns = {f"({quote(p.column)})": p.column for p in self.parts.partials if not p.is_float_sum}
        return {name: columns[sql] for name, sql, _ in self.parts.finals if sql in columns}

    @cached_property
    def _state_columns(self) -> tuple[str, ...]:
        return tuple(self.partial_schema.names[len(self._group_fields) :])

    def merging(self, *, comma: bool = True) -> str:
        merges = []
        for p in self.parts.partials:
            if p.is_float_sum:
                names = exact_sum.columns(p.column)
                merges += [f"{sql} AS {quote(c)}" for sql, (c, _) in zip(exact_sum.merge(p.column), names)]
            else:
                merges.append(f"{p.merge_sql} AS {quote(p.column)}")
        return (", " if comma and merges else "") + ", ".join(merges)

    def partial_table(self, table: pa.Table) -> pa.Table:
        table = cast(table, self.partial_schema)
        for p in self.parts.partials:
            table = exact_sum.compact(table, p.column) if p.is_float_sum else table
        return table

    def _resolve_sums(self, partials: pa.Table) -> pa.Table:
        """Partial rows with every floating sum as a plain double."""
        sums = [p.column for p in self.parts.partials if p.is_float_sum]
        if not sums:
            return partials
        resolved = partials
        for column in sums:
            users = [a for a, f in zip(self.aggregations, self.parts.finals) if quote(column) in f[1]]
            try:
                found = exact_sum.values(resolved, column)
            except OverflowError as error:
                text = f"{users[0].text} AS {users[0].name}" if users else column
                if self.failed is None:
                    raise OverflowingError(f"{self.operator_id}: {text} is too large: {error}", hint=_HINT) from error
                large = pa.array(exact_sum.too_large(resolved, column))
                groups = resolved.filter(large).select(list(self.grouping))
                self.failed.append(Failed(groups, text, ("the sum is too large for a double",) * groups.num_rows))
                resolved = resolved.filter(pc.invert(large))
                found = exact_sum.values(resolved, column)
            resolved = resolved.set_column(resolved.schema.get_field_index(column), column, found)
        return resolved

    def _culprit(self, resolved: pa.Table) -> str:
        """Which aggregate it was that overflowed: each is tried alone."""
        for name, sql, _ in self.parts.finals:
            try:
                query(f"SELECT {sql} FROM partials", partials=resolved)
            except FailingError:
                return name
        return "?"

    def _overflow(self, name: str, error: Exception) -> OverflowingError:
        text = next((a.text for a in self.aggregations if a.name == name), name)
        detail = error.message if isinstance(error, PenstockError) else str(error)
        return OverflowingError(f"{self.operator_id}: {text} AS {name} is too large: {detail}", hint=_HINT)


def cast(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The same rows in exactly this schema: engines differ in how they name the inside of lists."""
    return table if table.schema.equals(schema) else table.select(schema.names).cast(schema)
