"""Aggregates: what to compute of a group, cut into parts that can be computed apart and put together.

An aggregate is written in Spark SQL, such as `sum(a) / count(*)`. Each aggregate function in it becomes *partials*:
columns that one task computes over its events (`partial_sql`) and that rows from many tasks, epochs or panes merge
into one (`merge_sql`), in any order and any grouping. The answer is an ordinary expression over them (`final_sql`).
What has no such parts (a median needs all values at once) is refused with what to write instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from penstock.errors import UserError
from penstock.pattern.schema import Schema
from penstock.sql.aggregate_reader import STAND_IN, AggregateReader, aggregate_calls, outermost
from penstock.sql.fallible import Fallible
from penstock.sql.parse import parse
from penstock.sql.partial import Partial, renamed_columns


@dataclass(frozen=True)
class Aggregation:
    """A named aggregate over the events of a group.

    >>> traffic = Schema.parse("ts timestamp, segment int, speed double, cars int", time="ts")
    >>> a = Aggregation.parse("flow", "sum(cars) / count(*)", traffic, "ts")
    >>> a.type, [p.partial_sql for p in a.partials]
    (DataType(double), ['CAST(sum("cars") AS DECIMAL(38,0))', 'count(*)'])
    >>> Aggregation.parse("m", "median(speed)", traffic, "ts")
    Traceback (most recent call last):
    penstock.errors.UserError: aggregate 'm': 'median' in 'median(speed)' cannot be put together from parts. \
Hint: use avg(speed), or min and max
    """

    name: str
    text: str
    type: pa.DataType
    partials: tuple[Partial, ...]
    final_sql: str
    columns: frozenset[str]
    #: What may fail on an event: arguments, and conditions of FILTER.
    tried: tuple[Fallible, ...] = ()

    @classmethod
    def parse(
        cls,
        name: str,
        text: str,
        schema: Schema,
        time: str | None = None,
        *,
        keys: Sequence[str] = (),
        where: str | None = None,
    ) -> Aggregation:
        """Read an aggregate over events of `schema`, grouped by `keys`; `time` orders first and last."""
        where = where or f"aggregate '{name}'"
        tree = parse(text, where)
        if tree.find(exp.Window):
            raise UserError(f"{where}: window function in '{text}'", hint="use .window(…) and .agg(…)")
        reader = AggregateReader(schema, time, text, where)
        holder = exp.Paren(this=tree)
        for node in aggregate_calls(tree):
            found = reader.read(node)
            outer = outermost(node)
            outer.replace(exp.column(f"{STAND_IN}{len(reader.values)}", quoted=True))
            reader.values.append(found)
        rest = holder.this
        if not reader.values:
            raise reader.not_an_aggregate(rest)
        final, type_ = reader.final(rest, keys)
        return cls(
            name, text.strip(), type_, tuple(reader.partials), final, frozenset(reader.columns), tuple(reader.tried)
        )


@dataclass(frozen=True)
class Decomposition:
    """The partials of several aggregations, each computed once, and the answers over them."""

    partials: tuple[Partial, ...]
    finals: tuple[tuple[str, str, pa.DataType], ...]


def decompose(aggregations: Sequence[Aggregation]) -> Decomposition:
    """Share equal partials between the aggregations of one operator: `avg(x)` and `sum(x)` keep one sum.

    >>> s = Schema.parse("x double")
    >>> d = decompose([Aggregation.parse("a", "avg(x)", s), Aggregation.parse("s", "sum(x)", s)])
    >>> [p.column for p in d.partials], d.finals[1][1]
    (['__p0', '__p1'], '("__p0")')
    """
    shared: dict[Partial, Partial] = {}
    finals = []
    for aggregation in aggregations:
        names = {}
        for partial in aggregation.partials:
            anonymous = partial.renamed("")
            if anonymous not in shared:
                shared[anonymous] = partial.renamed(f"__p{len(shared)}")
            names[partial.column] = shared[anonymous].column
        finals.append((aggregation.name, renamed_columns(aggregation.final_sql, names), aggregation.type))
    return Decomposition(tuple(shared.values()), tuple(finals))
