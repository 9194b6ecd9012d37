"""The value of an aggregation such as `sum(x) / count(*)` for a list of events, by definition.

Each aggregate call is computed from the full list; what remains is an ordinary expression over the results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Any, Protocol

import pyarrow as pa
from sqlglot import exp

from penstock.errors import UserError
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Attribute, Schema
from penstock.pattern.types import type_text
from penstock.plan.operator import Operator
from penstock.plan.weight import without_weight
from penstock.plan.window import Window
from penstock.reference.domain import domains
from penstock.reference.failure import FAILURES, Note, ignore
from penstock.reference.item import Assertion, Event, Item
from penstock.reference.promises import Promises
from penstock.reference.summary import FUNCTIONS, as_type, distinct, identity
from penstock.sql.aggregation import Aggregation
from penstock.sql.expression import Expression, evaluate_row
from penstock.sql.parse import parse, written

Row = Mapping[str, Any]

_ALIASES = {
    "mean": "avg", "every": "bool_and", "some": "bool_or", "any": "bool_or", "std": "stddev_samp",
    "stddev": "stddev_samp", "variance": "var_samp", "first_value": "first", "last_value": "last",
} | {
    name: name for name in FUNCTIONS
}  # fmt: skip


@dataclass(frozen=True)
class Group:
    """Events that are aggregated together, in order of arrival."""

    key: tuple[Any, ...]
    rows: list[Row]

    def copy(self) -> Group:
        """The group as it is now."""
        return Group(self.key, list(self.rows))

    def __str__(self) -> str:
        key = ", ".join("null" if k is None else str(k) for k in self.key) or "everything"
        return f"{key}: {len(self.rows)} event{'' if len(self.rows) == 1 else 's'}"


class Grouping(Protocol):
    """Of an aggregate what is needed here."""

    @property
    def window(self) -> Window | None: ...
    @property
    def aggregations(self) -> tuple[Aggregation, ...]: ...
    @property
    def schema(self) -> Schema: ...


class Unweighted:
    """An aggregate whose results can be taken back, without the weight of its results."""

    def __init__(self, declared: Grouping) -> None:
        self.window, self.aggregations = declared.window, declared.aggregations
        self.schema = without_weight(declared.schema)


def group_key(row: Row, keys: Sequence[str]) -> tuple[Any, ...]:
    """What tells groups apart: nulls form a group of their own."""
    return tuple(identity(row[k]) for k in keys)


def time_of(aggregate: Grouping, schema: Schema) -> str | None:
    """The attribute that orders `first` and `last`: the events' first time attribute, not the label."""
    label = aggregate.window.label if aggregate.window is not None else None
    return next((t for t in schema.times if t != label), None)


def result_row(aggregate: Grouping, key: Row, rows: Sequence[Row], schema: Schema) -> dict[str, Any]:
    """One output event: the key and the aggregations over all events of the group."""
    time = time_of(aggregate, schema)
    values = {**key, **{a.name: value_of(a, rows, schema, time, key) for a in aggregate.aggregations}}
    return {name: values[name] for name in aggregate.schema.names}


class GroupsReference:
    """Groups of events, closed by punctuation that restricts nothing but the attributes that end them."""

    def __init__(
        self, declared: Grouping, below: Operator, keys: tuple[str, ...], ending: tuple[str, ...] | None = None
    ) -> None:
        """`below` is what punctuation speaks of; without `ending`, the `keys` are the attributes that end groups."""
        self.schema, self.keys = below.schema, keys
        self.ending = keys if ending is None else ending
        #: What results look like.
        self.output = declared.schema
        self.promised = Promises(below.schema, domains(below, but=self.ending))
        self.groups: dict[tuple[Any, ...], Group] = {}
        self.on_failure: Note = ignore

    def group_of(self, row: Row) -> Group:
        """The group of an event, which may be a new one."""
        return self.groups.setdefault(group_key(row, self.keys), Group(tuple(row[k] for k in self.keys), []))

    def on_punctuation(self, pattern: Pattern, input: int = 0) -> Iterable[Item]:
        known = (p for p in self.promised.add(pattern) if set(p.restricted) <= set(self.ending))
        return [item for p in known for item in self.close(p)]

    def close(self, pattern: Pattern) -> list[Item]:
        """Of a punctuation that speaks of whole groups: the results of those that it matches, and it itself."""
        out: list[Item] = []
        for known, group in list(self.groups.items()):
            key = dict(zip(self.keys, group.key, strict=True))
            if all(pattern[name].matches(key[name]) for name in pattern.restricted):
                out += self.complete(group, key)
                del self.groups[known]
        return [*out, self.behind(pattern)]

    def complete(self, group: Group, key: dict[str, Any]) -> Iterable[Item]:
        """The results of a group to which nothing more can come."""
        return ()

    def behind(self, pattern: Pattern) -> Assertion:
        """The punctuation as it goes on behind the results."""
        return Assertion(Pattern.by_name(self.output, {name: pattern[name] for name in pattern.restricted}))

    def state(self) -> list[Any]:
        return [group.copy() for group in self.groups.values()]


def results(aggregate: Grouping, key: Row, rows: Sequence[Row], schema: Schema, note: Note) -> list[Event]:
    """The output event of a group, or none: a group without an answer, such as too large a sum, is noted."""
    try:
        return [Event(result_row(aggregate, key, rows, schema))]
    except FAILURES as error:
        note(dict(key), str(error))
        return []


def check_arguments(aggregate: Grouping, row: Row, schema: Schema) -> None:
    """Raise if an argument of an aggregate fails on an event: then it is in no group."""
    for aggregation in aggregate.aggregations:
        if aggregation.tried:
            for call in _outermost_calls(exp.Paren(this=parse(aggregation.text))):
                _call(call, [row], schema, time_of(aggregate, schema))


def value_of(
    aggregation: Aggregation, rows: Sequence[Row], schema: Schema, time: str | None = None, key: Row | None = None
) -> Any:
    """The value of one aggregation over events of a schema that form one group.

    >>> cars = Schema.parse("cars int")
    >>> value_of(Aggregation.parse("flow", "sum(cars) / count(*)", cars), [{"cars": 3}, {"cars": None}], cars)
    1.5
    """
    tree = exp.Paren(this=parse(aggregation.text))
    calls = _outermost_calls(tree)
    if calls == [tree.this]:
        return as_type(_call(calls[0], rows, schema, time), aggregation.type, aggregation.text)
    results: dict[str, Any] = {}
    attributes = []
    for call in calls:
        name = f"result{len(results)}"
        value = results[name] = _call(call, rows, schema, time)
        attributes.append(Attribute(name, _type_of(value)))
        # A null has no type of its own, so it is written as null.
        call.replace(exp.null() if value is None else exp.column(name))
    written = {schema.resolve(column.name) for column in tree.find_all(exp.Column)}
    for name, value in (key or {}).items():
        if name in written:
            results[name] = value
            attributes.append(Attribute(name, schema.type_of(name)))
    scope = Schema(tuple(attributes))
    # The cast gives a type to expressions of nulls alone.
    cast = exp.Cast(this=tree, to=exp.DataType.build(type_text(aggregation.type), dialect="spark"))
    scalar = Expression.of(cast, aggregation.text, scope, where=f"aggregation '{aggregation.name}'")
    return as_type(evaluate_row(scalar, results), aggregation.type, aggregation.text)


def _outermost_calls(tree: exp.Expr) -> list[exp.Expr]:
    if _is_call(tree):
        return [tree]
    return [call for child in tree.iter_expressions() for call in _outermost_calls(child)]


def _is_call(node: exp.Expr) -> bool:
    if isinstance(node, exp.Filter | exp.IgnoreNulls):
        return _is_call(node.this)
    return isinstance(node, exp.Anonymous) and node.name.lower() in _ALIASES


def _call(node: exp.Expr, rows: Sequence[Row], schema: Schema, time: str | None) -> Any:
    """One aggregate call; FILTER (WHERE …) leaves out events, DISTINCT leaves out values, nulls never count."""
    if isinstance(node, exp.IgnoreNulls):
        return _call(node.this, rows, schema, time)
    if isinstance(node, exp.Filter):
        condition = node.expression.this
        return _call(node.this, [r for r in rows if _evaluate(condition, r, schema) is True], schema, time)
    name = _ALIASES[node.name.lower()]
    listed = node.expressions
    if name == "count" and isinstance(listed[0], exp.Star):
        return len(rows)
    arguments = [a for part in listed for a in (part.expressions if isinstance(part, exp.Distinct) else [part])]
    if name in ("first", "last"):
        if time is None:
            raise UserError(f"'{written(node)}': the stream has no time attribute", hint="declare one with time=…")
        arguments.append(exp.column(time, quoted=True))
    tuples = [tuple(_evaluate(a, row, schema) for a in arguments) for row in rows]
    # Unlike all others, min_by and max_by may answer with a null: that of the event with the least or greatest order.
    needed = slice(1, None) if name in ("min_by", "max_by") else slice(None)
    complete = [values for values in tuples if None not in values[needed]]
    values = [v[0] for v in complete] if len(arguments) == 1 else complete
    if any(isinstance(part, exp.Distinct) for part in listed):
        values = distinct(values)
    result = FUNCTIONS[name](values)
    # A sum of whole numbers is a bigint also where it is part of a larger expression.
    return as_type(result, pa.int64(), written(node)) if isinstance(result, int) else result


def _evaluate(tree: exp.Expr, row: Row, schema: Schema) -> Any:
    if isinstance(tree, exp.Column) and (name := schema.resolve(tree.name)) is not None:
        return row[name]
    return evaluate_row(_parsed(written(tree), schema), row)


@cache
def _parsed(text: str, schema: Schema) -> Expression:
    return Expression.parse(text, schema)


def _type_of(value: Any) -> pa.DataType:
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int):
        return pa.int64() if -(2**63) <= value < 2**63 else pa.decimal128(38, 0)
    if isinstance(value, Decimal):
        return pa.decimal128(38, max(0, -int(value.as_tuple().exponent)))
    if isinstance(value, datetime):
        return pa.timestamp("us")
    if isinstance(value, date):
        return pa.date32()
    kinds: dict[type, pa.DataType] = {float: pa.float64(), str: pa.string(), bytes: pa.binary(), type(None): pa.int64()}
    return kinds[type(value)]
