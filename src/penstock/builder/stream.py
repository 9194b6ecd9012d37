"""The builder: queries as chained method calls.

Every call checks what it is given against the schema that has come out of the calls before it, so a mistake is
reported where it is made, with the nearest thing that exists. Calls never change a stream; they return a new one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

from penstock.analysis.explain import explain_mermaid, explain_text
from penstock.builder.applying import Applying
from penstock.builder.built import stream_of, whole
from penstock.builder.change_data import change_data
from penstock.builder.combine import On, join_operator
from penstock.builder.covering import outer_join
from penstock.builder.declare import Declaring
from penstock.builder.grouped import Grouped
from penstock.builder.lasting import Lifetimes, carrying, readable, shortened
from penstock.builder.lookup import lookup
from penstock.builder.sparing import Sparing
from penstock.errors import UserError
from penstock.operators.distinct.operator import Distinct
from penstock.operators.join.operator import KINDS
from penstock.operators.order_by.operator import OrderBy
from penstock.operators.project.operator import Project
from penstock.operators.select.operator import Select
from penstock.operators.source.operator import Source
from penstock.operators.window.operator import Bucket
from penstock.pattern.arguments import worded
from penstock.pattern.schema import SYNC, Attribute, Schema
from penstock.plan.plan import Plan
from penstock.plan.policy import Extent
from penstock.plan.table import Table
from penstock.plan.window import CountWindow, Window
from penstock.sql.carried import carried
from penstock.sql.expression import Expression

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
#: What something else is called in a checkpoint.
_RESERVED = ("dead", "units")


@worded
class StreamBuilder(Declaring, Lifetimes, Sparing, Applying):
    """A stream of events: a source, or what operators make of one."""

    # --- operators ----------------------------------------------------------------------------------------------

    def where(self, predicate: str) -> Self:
        """Keep the events for which an SQL predicate is true."""
        parsed = readable(Expression.predicate(predicate, self.schema, where="where"), self.schema, "where")
        return self._with(Select((self.operator,), self.schema, predicate=parsed))

    filter = where

    def select(self, *columns: str, **computed: str) -> Self:
        """Keep the named attributes, and compute others: `select("ts", mph="speed / 1.609")`."""
        return self._project([*((c, c) for c in self._known(columns, "select")), *computed.items()], "select")

    def with_columns(self, **computed: str) -> Self:
        """Keep everything and add (or replace) computed attributes."""
        kept = [(n, n) for n in self.schema.names if n not in computed]
        return self._project([*kept, *computed.items()], "with_columns")

    def drop(self, *columns: str) -> Self:
        """Keep everything but the named attributes."""
        gone = set(self._known(columns, "drop"))
        for name in (*self.schema.lifetime, *((SYNC,) if self.schema.lifetime else ())):
            if name in gone:
                raise UserError(f"drop('{name}') would leave rows without their lifetime", hint="keep it")
        return self._project([(n, n) for n in self.schema.names if n not in gone], "drop")

    def rename(self, mapping: Mapping[str, str] | None = None, **renames: str) -> Self:
        """Rename attributes: `rename(old="new")`."""
        names = {**(mapping or {}), **renames}
        self._known(tuple(names), "rename")
        return self._project([(names.get(n, n), n) for n in self.schema.names], "rename")

    def _project(self, columns: Sequence[tuple[str, str]], where: str) -> Self:
        if not columns:
            raise UserError(f"{where}() leaves no attribute", hint="keep at least one")
        parsed = tuple((n, Expression.parse(_quoted(t, self.schema), self.schema, where=where)) for n, t in columns)
        parsed, lifetime = carrying(parsed, self.schema, where)
        times = tuple(n for n, e in parsed if carried(e) in self.schema.times)
        schema = Schema(tuple(Attribute(n, e.type) for n, e in parsed), times, lifetime)
        return self._with(Project((self.operator,), schema, columns=parsed))

    def union(self, *others: StreamBuilder) -> Self:
        """All events of this and the other streams, which must have the same attributes."""
        return self._unite(others, "union")

    def merge(self, *others: StreamBuilder, by: str | None = None) -> Self:
        """All events of several streams, in order (of time, or of attribute `by`).

        As far as all of them have got: one that stalls, stalls the result. Streams that come in order say so with
        `punctuate(Punctuate.sorted_by(…))`.
        """
        return self._unite(others, "merge").order_by(by if by is not None else self._time(None, "merge"))

    def join(
        self,
        other: StreamBuilder,
        on: On,
        how: str = "inner",
        *,
        within: Extent | tuple[Extent, Extent] | None = None,
        between: tuple[Extent | None, Extent | None] | None = None,
        rows: int | tuple[int | None, int | None] | None = None,
        where: str | None = None,
        times: tuple[str, str] | None = None,
        suffix: str = "_right",
        thrifty: bool = False,
        impatient: bool = False,
    ) -> Self:
        """Join with another stream on equal keys.

        `on` names the key: `"trip"`, `["segment", "day"]` or `{"source": "destination"}` (left name: right name).
        `how` is inner, left, right, full, semi or anti. Time limits who can be partners: `within="10 s"` of each
        other, `within=("5 min", "1 h")` for a left event that waits five minutes and a right one that waits an hour,
        `between=("-5 s", "10 s")` for a right event no more than 5 s before and 10 s after the left one. `rows=100`
        joins, in order of time, with the last 100 events of the same key instead. `where` is a further predicate; it
        sees the right stream's columns under their names, with `suffix` where the left has the same name.

        A `thrifty` join tells a side not to bother with keys that the other has closed without an event; an
        `impatient` one asks a side to send first what the other is waiting for.
        """
        limits = (within, between, rows, times, thrifty or None, impatient or None)
        lasting = self.schema.lifetime and stream_of(other, "join").schema.lifetime
        if lasting and how in KINDS and how != "inner" and suffix and all(x is None for x in limits):
            return self._with(outer_join(self, other, on, how, where, suffix).operator)
        return self._with(
            join_operator(
                self.operator,
                stream_of(other, "join").operator,
                on,
                how,
                within=within,
                between=between,
                rows=rows,
                where=where,
                times=times,
                suffix=suffix,
                thrifty=thrifty,
                impatient=impatient,
            )
        )

    def changes(
        self,
        kind: str | None = None,
        *,
        debezium: bool = False,
        key: str | Sequence[str] | None = None,
        new_end: str | None = None,
    ) -> Self:
        """Events of this stream may take back others: the column `kind` says what each does.

        "c", "r", "insert" or "+I" bring a row; "d", "delete" or "-D" take back one that is equal but for that column.
        An update is both, "-U" and "+U". With `key="id"` a row takes the place of the one before with the same key:
        then an update is one event, "u", and a deletion needs no more than the key.

        `debezium=True` reads records as Debezium writes them, with `op`, and the row `before` and `after` the change;
        without a key, their time (`ts_ms`) says how far the stream is, but is no part of a row.

        Where rows hold for a time (`ps.stream(…, lifetime=…)`), the column `new_end` says until when a row holds now
        that is taken back: less long than it did, or, with null, not at all. Without `kind`, events that have a new end
        are those that take back.

        Results change with what they are made of, so such a query is started with `consistency=`.
        """
        if self.schema.lifetime or new_end is not None:
            if debezium or key is not None:
                raise UserError("changes(): rows that hold for a time have neither key= nor debezium=", hint="new_end=")
            made, gone = shortened(self._source("changes"), kind, new_end)
        else:
            made, gone = change_data(self._source("changes"), kind, debezium, key)
        return self._with(made).drop(*gone)

    def distinct(self) -> Self:
        """Each event once; state is kept until punctuation says that an event cannot come again."""
        return self._with(Distinct((self.operator,), self.schema))

    def intersect(self, other: StreamBuilder) -> Self:
        """The events that occur in both streams, each once; as in SQL, nulls are alike."""
        return self._match_whole(other, "semi", "intersect").distinct()

    def difference(self, other: StreamBuilder) -> Self:
        """The events that do not occur in the other stream, each once, when punctuation says that it has no more."""
        return self._match_whole(other, "anti", "difference").distinct()

    def _match_whole(self, other: StreamBuilder, how: str, call: str) -> Self:
        self._same_attributes(other, call)
        return self._with(join_operator(self.operator, other.operator, self.schema.names, how, null_safe=True))

    def order_by(self, *by: str, slack: int | None = None) -> Self:
        """Events in order: `order_by("ts", "speed desc")`.

        A sorted prefix leaves when punctuation says that it is complete. With `slack=n` a buffer of n + 1 events sorts
        approximately and at once: nothing is lost, but events more than n places late come out of order.
        """
        if not by:
            raise UserError("order_by() without an attribute", hint="for example order_by('ts')")
        if slack is not None:
            whole(slack, f"order_by: slack={slack!r} is not possible", "a whole number of events, 0 or more", least=0)
        order = self._ordering(by, "order_by", "names one by one: order_by('ts', 'speed desc')")
        return self._with(OrderBy((self.operator,), self.schema, by=order, slack=slack))

    def lookup(
        self,
        table: Table,
        on: str | Sequence[str] | Mapping[str, str] | None = None,
        how: Literal["inner", "left"] = "inner",
        *,
        as_of: str | None = None,
        columns: Sequence[str] | None = None,
        suffix: str | None = None,
    ) -> Self:
        """Add what a table says about each event: `orders.lookup(prices, on={"item": "sku"}, how="left")`.

        An event looks into a versioned table at the time `as_of` (left out: the time attribute). `inner` drops events
        without a row, `left` keeps them with nulls. `columns` are those wanted (left out: all but the key).
        """
        return self._with(lookup(self.operator, table, on, how, as_of=as_of, columns=columns, suffix=suffix))

    def window(
        self,
        size: Extent | Window | None = None,
        *,
        slide: Extent | None = None,
        on: str | None = None,
        origin: Any = 0,
        granularity: Extent = 1,
        rows: int | None = None,
        slide_rows: int | None = None,
        landmark: Extent | None = None,
        session: Extent | None = None,
    ) -> Self:
        """Gather events into windows.

        `window("2 min")` tumbles, `window("2 min", slide="20 s")` slides, a slide longer than the size leaves gaps;
        `window(rows=100)` counts events per group; `window(landmark="1 h")` grows from the origin, one result a period;
        `window(session="10 min")` lasts as long as events of a group come no more than that after each other.
        """
        given = [x is not None for x in (size, rows, landmark, session)]
        if sum(given) != 1:
            raise UserError(
                "window() takes exactly one of a size, rows=, landmark= and session=", hint="for example window('10 s')"
            )
        if session is not None and (slide is not None or slide_rows is not None or origin != 0):
            raise UserError(
                f"window(session={session!r}) begins and ends with its events: it has neither a slide nor an origin",
                hint=f"window(session={session!r})",
            )
        window: Window
        if isinstance(size, Window):
            window = size
        elif rows is not None:
            window = Window.count(rows, slide_rows)
        elif landmark is not None:
            window = Window.landmark(landmark, on=on, origin=origin, granularity=granularity)
        elif session is not None:
            window = Window.session(session, on=on, granularity=granularity)
        else:
            assert size is not None
            window = Window.sliding(
                size, size if slide is None else slide, on=on, origin=origin, granularity=granularity
            )
        window = window.resolve(self.schema)
        label = Attribute(window.label, window.label_type(self.schema))
        times = self.schema.times if isinstance(window, CountWindow) else (*self.schema.times, window.label)
        schema = Schema((*self.schema.attributes, label), times)
        return self._with(Bucket((self.operator,), schema, window=window))

    def group_by(self, *keys: str) -> Grouped[Self]:
        """Group by attributes; behind `window(…)` the window is a grouping attribute as well."""
        return Grouped(self, self._known(keys, "group_by"))

    def agg(self, **aggregations: str) -> Self:
        """Aggregate everything, or each window: `agg(n="count(*)")`."""
        return Grouped(self, ()).agg(**aggregations)

    def named(self, name: str) -> Self:
        """Call the operator that was added last by a name, in texts, in `to=` and where its state is kept.

        >>> from penstock.operators.source.operator import Source
        >>> cars = StreamBuilder(Source((), Schema.parse("ts int, speed int", "ts"), name="cars"))
        >>> print(cars.where("speed < 40").named("slow").explain())
        slow: speed < 40
           │  → (ts int, speed int)
           └─ source:cars: ...
                 → (ts int, speed int)
        """
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name in _RESERVED:
            raise UserError(f"named({name!r}) is not possible", hint="letters, digits, - and _, such as 'slow-cars'")
        if isinstance(self.operator, Source):
            raise UserError(
                f"named('{name}'): this is the stream '{self.operator.name}', which has a name",
                hint=f"ps.stream('{name}', …), or name what is made of it: .where(…).named('{name}')",
            )
        return replace(self, operator=replace(self.operator, label=name))

    # --- looking at it ------------------------------------------------------------------------------------------

    @property
    def plan(self) -> Plan:
        return Plan.of(self.operator)

    def explain(self, format: Literal["text", "mermaid"] = "text", *, punctuation: bool = False) -> str:
        """The plan as text or as a Mermaid flow chart.

        With `punctuation`, also which punctuations will flow on every edge, and what operators release on them.
        """
        return explained(self.plan, format, punctuation)


def _quoted(text: str, schema: Schema) -> str:
    """A bare attribute name stands for itself, however it is spelled."""
    return f"`{text.replace('`', '``')}`" if text in schema else text


def explained(plan: Plan, format: str, punctuation: bool) -> str:
    """A plan as text or as a Mermaid flow chart."""
    if format not in ("text", "mermaid"):
        raise UserError(f"explain(format='{format}') is not possible", hint="'text' or 'mermaid'")
    return (explain_mermaid if format == "mermaid" else explain_text)(plan, punctuation=punctuation)
