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

from penstock.errors import FailingError, PenstockError
from penstock.kernels.duck import memory_limit, query, quote
from penstock.kernels.failing import Failed, sound
from penstock.kernels.step import Rows
from penstock.kernels.ticks import column_ticks
from penstock.operators.aggregate import exact_sum
from penstock.operators.aggregate.listing import NUMBER, labels_of, listed
from penstock.operators.aggregate.sorting import Sorting
from penstock.operators.aggregate.too_large import culprit, too_large
from penstock.operators.window import kernel as bucket
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Attribute, Schema
from penstock.plan.window import CountWindow, LandmarkWindow, TimeWindow, Window
from penstock.sql.aggregation import Aggregation, decompose
from penstock.sql.fallible import Fallible

#: Bytes for each event that sorting takes, beside what it makes.
_SORTING_TAKES = 64
#: With fewer groups for each event than this, a hash table fits the cache.
_FEW_GROUPS = 0.1
#: Without groups SQL answers one row even for no rows; this takes it away.
NOT_OF_NOTHING = "HAVING count(*) > 0"
#: So many events tell whether they are few.
_SAMPLE = 16_384


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
        #: How many groups the last events made, for each event. It decides how they are grouped, not what comes out.
        self.reduction: float | None = None
        #: Whether windows and keys of the last events were so near to each other that a table of cells did.
        self.near = True

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
        return self.grouped(Rows(events))

    def grouped(self, rows: Rows) -> pa.Table:
        """Partial rows of events that need not have been computed yet, one per group."""
        partials = self._without_hashing(rows)
        if partials is None:
            partials = self.partial_table(rows.under(self.partial_sql(rows.sql)).table())
        if rows.base.num_rows >= _SAMPLE:
            self.reduction = partials.num_rows / rows.base.num_rows
        return partials

    def _without_hashing(self, rows: Rows) -> pa.Table | None:
        """Partial rows by a table of cells or by sorting, where that can be done, pays and fits into memory.

        DuckDB keeps to its limit by itself.
        """
        many = rows.base.num_rows
        few = many < _SAMPLE
        if self.sorting is None or not (few or many * _SORTING_TAKES < memory_limit()):
            return None
        groups, asked = None, (self.window, self.keys, self.parts.partials)
        if self.near or few:
            groups = self.sorting.of(listed(rows, *asked), sort=few)
            self.near = groups is not None if not few else self.near
        if groups is None and not few and self._sorts(rows):
            groups = self.sorting.of(listed(rows, *asked))
        return None if groups is None else self._windows_of(groups)

    def _sorts(self, rows: Rows) -> bool:
        """Whether sorting pays: unless groups are few, as the last rows show, or else a sample."""
        if self.reduction is None and self.sorting is not None:
            some = Rows(rows.base.slice(0, _SAMPLE), rows.tables, rows.sql)
            sample = self.sorting.of(listed(some, self.window, self.keys, self.parts.partials))
            self.reduction = 1.0 if sample is None else sample.num_rows / _SAMPLE
        return self.reduction is not None and self.reduction > _FEW_GROUPS

    @cached_property
    def sorting(self) -> Sorting | None:
        """How to group by sorting, if that can be done."""
        if not (self.window is None or isinstance(self.window, TimeWindow)):
            return None
        keys = self._group_fields if self.window is None else [(NUMBER, pa.int64()), *self._group_fields[1:]]
        return Sorting.over(keys, self.parts.partials)

    @cached_property
    def merge_sorting(self) -> Sorting | None:
        """How to merge by sorting, if that can be done."""
        return Sorting.over(self._group_fields, self.parts.partials)

    def _windows_of(self, groups: pa.Table) -> pa.Table:
        """Groups by the number of their window or pane, sorted by that, as partial rows."""
        window = self.window
        if not isinstance(window, TimeWindow):
            return self.partial_table(groups)
        if window.size > window.slide:
            sql = self._labelled(self._windows_sql("SELECT * FROM panes", window, packed=True), self._label_sql)
            return self.partial_table(query(sql, panes=groups))
        if not groups.num_rows:
            return self.partial_schema.empty_table()
        # There are few windows, but many groups.
        numbers = column_ticks(groups[NUMBER])
        firsts = np.flatnonzero(np.diff(numbers, prepend=numbers[:1] - 1))
        labels = labels_of(window, numbers[firsts])
        of = np.repeat(np.arange(len(firsts)), np.diff(firsts, append=len(numbers)))
        return self.partial_table(groups.set_column(0, window.label, labels.take(pa.array(of))))

    def windowed(self, input_sql: str, window: TimeWindow | CountWindow, tick: str) -> str:
        rows = input_sql
        if window.size < window.slide:
            rows = f"SELECT * FROM ({input_sql}) WHERE {bucket.member_sql(window, tick)}"
        if window.size <= window.slide:
            return self._labelled(self._grouped(rows, bucket.number_sql(window, tick)), self._label_sql)
        panes = self._grouped(rows, bucket.pane_sql(window, tick))
        return self._labelled(self._windows_sql(panes, window, packed=False), self._label_sql)

    @cached_property
    def _label_sql(self) -> str:
        assert self.window is not None
        return bucket.label_sql(self.window, '"__number"')

    def _windows_sql(self, panes: str, window: TimeWindow | CountWindow, *, packed: bool) -> str:
        """Windows from panes, which meet again in them; the label is made afterwards, once per group."""
        pane_tick = bucket.pane_tick_sql(window, '"__number"')
        columns = "".join(f", {quote(c)}" for c in (*self.keys, *self._state_columns))
        expanded = f"SELECT {bucket.number_sql(window, pane_tick)} AS __number{columns} FROM ({panes})"
        return self.merging(expanded, ("__number", *self.keys), packed=packed)

    def _grouped(self, rows: str, number: str | None, beside: Sequence[str] = ()) -> str:
        """Group the rows of `rows` by window or pane number and keys; `beside` are further aggregates."""
        for depth in zip(*(exact_sum.layers(p.column, p.partial_sql) for p in self.parts.partials if p.is_float_sum)):
            rows = f"SELECT *, {', '.join(f'{sql} AS {column}' for column, sql in depth)} FROM ({rows})"
        aggregates = []
        for p in self.parts.partials:
            if p.is_float_sum:
                names = exact_sum.columns(p.column)
                aggregates += [f"{sql} AS {quote(c)}" for sql, (c, _) in zip(exact_sum.partial(p.column), names)]
            else:
                aggregates.append(f"{p.partial_sql} AS {quote(p.column)}")
        group = [*([f"{number}"] if number is not None else []), *(quote(k) for k in self.keys)]
        named = [f"{number} AS __number"] if number is not None else []
        selected = ", ".join([*named, *(quote(k) for k in self.keys), *aggregates, *beside])
        by = f"GROUP BY {', '.join(str(i + 1) for i in range(len(group)))}" if group else NOT_OF_NOTHING
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
        partials = pa.concat_tables(some)
        fits = self.merge_sorting is not None and partials.num_rows * _SORTING_TAKES < memory_limit()
        if self.merge_sorting is not None and fits and (found := self.merge_sorting.merged(partials)) is not None:
            return self.partial_table(found)
        sql = self.merging("SELECT * FROM partials", self.grouping)
        return self.partial_table(query(sql, partials=partials))

    def finalize(self, partials: pa.Table) -> pa.Table:
        """The answers of groups, each given by one partial row, in the same order."""
        if not partials.num_rows:
            return self.output_schema.arrow.empty_table()
        resolved = self._resolve_sums(self.partial_table(partials))
        if (plain := self._as_they_are(resolved, self.output_schema.names)) is not None:
            return plain
        groups = [quote(g) for g in self.grouping]
        finals = [f"{sql} AS {quote(name)}" for name, sql, _ in self.parts.finals]
        sql = f"SELECT {', '.join([*groups, *finals])} FROM partials"
        try:
            answer = query(sql, partials=resolved)
        except FailingError as error:
            if self.failed is None:
                name = culprit(self.parts.finals, resolved)
                text = next((a.text for a in self.aggregations if a.name == name), name)
                raise too_large(self.operator_id, f"{text} AS {name}", error) from error
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
        """Answers that are nothing but columns of the partial rows, as counts and sums are; None if one is not."""
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
        columns = {f"({quote(p.column)})": p.column for p in self.parts.partials}
        return {name: columns[sql] for name, sql, _ in self.parts.finals if sql in columns}

    @cached_property
    def _state_columns(self) -> tuple[str, ...]:
        return tuple(self.partial_schema.names[len(self._group_fields) :])

    def merging(self, rows: str, by: Sequence[str], *, packed: bool = True, beside: Sequence[str] = ()) -> str:
        """One row per group from partial rows; unless they are packed, their sums of doubles are bins.

        `beside` are further aggregates.
        """
        sums = [p for p in self.parts.partials if p.is_float_sum] if packed else []
        for depth in zip(*(exact_sum.merge_layers(p.column) for p in sums)):
            rows = f"SELECT *, {', '.join(f'{sql} AS {column}' for column, sql in depth)} FROM ({rows})"
        merges = []
        for p in self.parts.partials:
            if p.is_float_sum:
                names = exact_sum.columns(p.column)
                found = exact_sum.merge(p.column) if packed else exact_sum.merge_bins(p.column)
                merges += [f"{sql} AS {quote(c)}" for sql, (c, _) in zip(found, names)]
            else:
                merges.append(f"{p.merge_sql} AS {quote(p.column)}")
        group = f"GROUP BY {', '.join(quote(g) for g in by)}" if by else NOT_OF_NOTHING
        return f"SELECT {', '.join([*(quote(g) for g in by), *merges, *beside])} FROM ({rows}) {group}"

    def partial_table(self, table: pa.Table) -> pa.Table:
        """Rows as state has them: sums of doubles packed and their lists short."""
        sums = [p.column for p in self.parts.partials if p.is_float_sum]
        for column in sums:
            table = exact_sum.packed(table, column)
        table = cast(table, self.partial_schema)
        for column in sums:
            table = exact_sum.compact(table, column)
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
                    raise too_large(self.operator_id, text, error) from error
                large = pa.array(exact_sum.too_large(resolved, column))
                groups = resolved.filter(large).select(list(self.grouping))
                self.failed.append(Failed(groups, text, ("the sum is too large for a double",) * groups.num_rows))
                resolved = resolved.filter(pc.invert(large))
                found = exact_sum.values(resolved, column)
            resolved = resolved.set_column(resolved.schema.get_field_index(column), column, found)
        return resolved


def cast(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The same rows in exactly this schema: engines differ in how they name the inside of lists."""
    return table if table.schema.equals(schema) else table.select(schema.names).cast(schema)
