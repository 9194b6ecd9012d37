"""Each aggregate function as partials: what a task computes, how two of it merge, and the answer over them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from penstock.errors import UserError, a
from penstock.pattern.types import type_text
from penstock.sql.arithmetic import quotient
from penstock.sql.expression import Expression
from penstock.sql.moments import MOMENTS
from penstock.sql.partial import Added, AggregateValue, ReadFunction, only_if
from penstock.sql.term import Term, duck

if TYPE_CHECKING:
    from penstock.sql.aggregate_reader import AggregateReader

_WIDE = pa.decimal128(38, 0)


def _when(sql: str, keep: str | None) -> str:
    """An aggregate call, over the events that its FILTER keeps."""
    return sql if keep is None else f"{sql} FILTER (WHERE {keep})"


def _count(r: AggregateReader, arguments: list[exp.Expr], keep: str | None) -> AggregateValue:
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        return _count_distinct(r, arguments[0].expressions, keep)
    counted = "*"
    if not (len(arguments) == 1 and isinstance(arguments[0], exp.Star)):
        parsed = [r.argument(a) for a in arguments]
        whole = " AND ".join(f"({p.sql}) IS NOT NULL" for p in parsed)
        counted = parsed[0].sql if len(parsed) == 1 else f"CASE WHEN {whole} THEN 1 END"
    of = ("count", "" if counted == "*" else counted)
    adds: Added = ("count", only_if(counted if of[1] else "1", keep))
    column = r.add(pa.int64(), _when(f"count({counted})", keep), "CAST(sum({p}) AS BIGINT)", plain=of, adds=adds)
    return AggregateValue(column, pa.int64())


def _count_distinct(r: AggregateReader, arguments: list[exp.Expr], keep: str | None) -> AggregateValue:
    parsed = [r.argument(a) for a in arguments]
    present = " AND ".join(f"({p.sql}) IS NOT NULL" for p in parsed)
    present = present if keep is None else f"{present} AND ({keep})"
    if len(parsed) == 1:
        value, type_ = parsed[0].sql, parsed[0].type
    else:
        value = "{" + ", ".join(f"'c{i}': {p.sql}" for i, p in enumerate(parsed)) + "}"
        type_ = pa.struct([(f"c{i}", p.type) for i, p in enumerate(parsed)])
    merge = "list_distinct(flatten(list({p}) FILTER (WHERE {p} IS NOT NULL)))"
    values = r.add(pa.list_(type_), f"list(DISTINCT {value}) FILTER (WHERE {present})", merge)
    return AggregateValue(f"COALESCE(len({values}), 0)", pa.int64())


def _count_if(r: AggregateReader, arguments: list[exp.Expr], keep: str | None) -> AggregateValue:
    condition = r.condition(arguments[0])
    both = condition.sql if keep is None else f"({condition.sql}) AND ({keep})"
    adds: Added = ("count", only_if("1", both))
    column = r.add(pa.int64(), f"count(*) FILTER (WHERE {both})", "CAST(sum({p}) AS BIGINT)", adds=adds)
    return AggregateValue(column, pa.int64())


def _add_sum(r: AggregateReader, argument: Expression, keep: str | None) -> tuple[str, pa.DataType]:
    """The column of a sum that is exact, and its type in state."""
    kept = only_if(argument.sql, keep)
    adds: Added = ("sum", kept)
    if pa.types.is_floating(argument.type):
        return r.add(pa.float64(), kept, "", is_float_sum=True, plain=adds, adds=adds), pa.float64()
    if pa.types.is_decimal(argument.type):
        wide = pa.decimal128(38, argument.type.scale)
        return r.add(wide, _when(f"sum({argument.sql})", keep), "sum({p})", adds=adds), wide
    total = f"CAST({_when(f'sum({argument.sql})', keep)} AS DECIMAL(38,0))"
    return r.add(_WIDE, total, "sum({p})", plain=("sum", argument.sql), adds=adds), _WIDE


def _sum(r: AggregateReader, arguments: list[exp.Expr], keep: str | None) -> AggregateValue:
    argument = r.number("sum", arguments[0])
    column, type_ = _add_sum(r, argument, keep)
    if pa.types.is_integer(argument.type):
        return AggregateValue(f"CAST({column} AS BIGINT)", pa.int64())
    if pa.types.is_decimal(argument.type):
        narrow = pa.decimal128(min(38, argument.type.precision + 10), argument.type.scale)
        return AggregateValue(f"CAST({column} AS {duck(narrow)})", narrow)
    return AggregateValue(column, type_)


def _avg(r: AggregateReader, arguments: list[exp.Expr], keep: str | None) -> AggregateValue:
    argument = r.number("avg", arguments[0])
    column, type_ = _add_sum(r, argument, keep)
    of = ("count", argument.sql)
    adds: Added = ("count", only_if(argument.sql, keep))
    counted = _when(f"count({argument.sql})", keep)
    n = r.add(pa.int64(), counted, "CAST(sum({p}) AS BIGINT)", plain=of, adds=adds)
    if pa.types.is_decimal(argument.type):
        # Spark's: four digits more, halves away from zero.
        result = pa.decimal128(min(38, argument.type.precision + 4), min(38, argument.type.scale + 4))
        count = Term(f"CAST(NULLIF({n}, 0) AS DECIMAL(20,0))", pa.decimal128(20, 0), closed=True)
        return AggregateValue(quotient(Term(column, type_), count, result, result, half_up=True).sql, result)
    return AggregateValue(f"CAST({column} AS DOUBLE) / CAST(NULLIF({n}, 0) AS DOUBLE)", pa.float64())


def _extreme(function: str) -> ReadFunction:
    """Aggregates that merge with themselves."""

    def read(r: AggregateReader, arguments: list[exp.Expr], keep: str | None) -> AggregateValue:
        argument = r.argument(arguments[0])
        whole = pa.types.is_integer(argument.type)
        if (function.startswith("bool") and argument.type != pa.bool_()) or (function.startswith("bit") and not whole):
            needed = "a condition" if function.startswith("bool") else "whole numbers"
            raise UserError(
                f"{r.where}: {function}({argument.text}) of {a(type_text(argument.type))}", hint=f"it needs {needed}"
            )
        of = (function, argument.sql) if function in ("min", "max") else None
        column = r.add(argument.type, _when(f"{function}({argument.sql})", keep), f"{function}({{p}})", plain=of)
        return AggregateValue(column, argument.type)

    return read


def _by(function: str, *, time: bool) -> ReadFunction:
    """The value at the smallest or largest time (or other order); among equals the smallest or largest value."""

    def read(r: AggregateReader, arguments: list[exp.Expr], keep: str | None) -> AggregateValue:
        value = r.argument(arguments[0])
        if not time:
            order = r.argument(arguments[1])
        elif r.time is None:
            raise UserError(
                f"{r.where}: '{r.text}' needs a time attribute", hint="declare one, or use min_by(x, y), max_by(x, y)"
            )
        else:
            order = r.argument(exp.column(r.time, quoted=True))
        present = f"({order.sql}) IS NOT NULL" + (f" AND ({value.sql}) IS NOT NULL" if time else "")
        present = present if keep is None else f"{present} AND ({keep})"
        pair = f"{function}({{'at': {order.sql}, 'value': {value.sql}}}) FILTER (WHERE {present})"
        column = r.add(pa.struct([("at", order.type), ("value", value.type)]), pair, f"{function}({{p}})")
        return AggregateValue(f"{column}.value", value.type)

    return read


FUNCTIONS: Mapping[str, ReadFunction] = {
    "count": _count,
    "count_if": _count_if,
    "sum": _sum,
    "avg": _avg,
    "min": _extreme("min"),
    "max": _extreme("max"),
    "any_value": _extreme("min"),  # Any would do; the smallest does not depend on the order of arrival.
    "bool_and": _extreme("bool_and"),
    "bool_or": _extreme("bool_or"),
    "bit_and": _extreme("bit_and"),
    "bit_or": _extreme("bit_or"),
    "bit_xor": _extreme("bit_xor"),
    "first": _by("min", time=True),
    "last": _by("max", time=True),
    "min_by": _by("min", time=False),
    "max_by": _by("max", time=False),
    **MOMENTS,
}
