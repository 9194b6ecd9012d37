"""Expressions: SQL text over the attributes of one schema.

A user writes Spark SQL. The text is read once, given the types Spark would give it, and translated to DuckDB, which
computes it; `penstock.sql` holds the tables of what there is. What would make a replay differ (clocks, random
numbers) or does not belong to a single event (aggregates, windows, subqueries) is refused here, so that nothing behind
this module has to ask again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from penstock.errors import UserError
from penstock.pattern.schema import Schema
from penstock.pattern.types import duckdb_type, type_text
from penstock.sql.connection import connection
from penstock.sql.fallible import Fallible, can_fail
from penstock.sql.parse import parse, too_deep
from penstock.sql.term import ATTRIBUTE_TYPES, duck, is_decimal, shown
from penstock.sql.translate import Translator


@dataclass(frozen=True)
class Expression:
    """A checked SQL expression over one schema.

    >>> traffic = Schema.parse("ts timestamp, segment int, speed double", time="ts")
    >>> e = Expression.parse("Speed * 3.6 + segment", traffic)
    >>> e.sql, sorted(e.columns), e.type
    ('("speed" * 3.6e0) + "segment"', ['segment', 'speed'], DataType(double))
    >>> Expression.parse("sped > 3", traffic, where="select 'slow'")
    Traceback (most recent call last):
    penstock.errors.UserError: select 'slow': unknown column 'sped' in 'sped > 3'. Hint: did you mean 'speed'? \
There are: ts, segment, speed
    """

    text: str
    sql: str
    columns: frozenset[str]
    type: pa.DataType
    schema: Schema = field(repr=False)
    #: Whether there may be values on which it fails; in doubt, yes.
    can_fail: bool = field(default=True, repr=False)

    @classmethod
    def parse(cls, text: str, schema: Schema, *, where: str = "expression") -> Expression:
        """Read an expression; `where` names the operator in error messages."""
        return cls.of(parse(text, where), text, schema, where=where)

    @classmethod
    def of(cls, tree: exp.Expr, text: str, schema: Schema, *, where: str = "expression") -> Expression:
        """The expression that a syntax tree means; `text` is what messages show."""
        translator = Translator(schema, text, where)
        try:
            term = translator.run(tree)
        except RecursionError:
            raise too_deep(text, where) from None
        if term.type not in ATTRIBUTE_TYPES and not is_decimal(term.type):
            raise UserError(
                f"{where}: '{text}' has type {shown(term.type)}, which no attribute has",
                hint=f"cast it, e.g. CAST({text} AS string)",
            )
        columns = frozenset(translator.columns)
        sql = _bound(term.sql, term.type, schema, text, where)
        used = schema.select(n for n in schema.names if n in columns) if columns else schema
        return cls(text.strip(), sql, columns, term.type, used, can_fail(tree, schema))

    @property
    def tried(self) -> tuple[Fallible, ...]:
        """What to look at when something has failed: itself, if it can."""
        return (Fallible(self.text, self.sql),) if self.can_fail else ()

    @classmethod
    def predicate(cls, text: str, schema: Schema, *, where: str = "predicate") -> Expression:
        """Read an expression that is true or false (or null) for an event.

        >>> Expression.predicate("speed + 1", Schema.parse("speed int"), where="select 'slow'")
        Traceback (most recent call last):
        penstock.errors.UserError: select 'slow': 'speed + 1' has type int and is not a condition. \
Hint: compare it: speed + 1 > 0
        """
        parsed = cls.parse(text, schema, where=where)
        if parsed.type != pa.bool_():
            raise UserError(
                f"{where}: '{parsed.text}' has type {type_text(parsed.type)} and is not a condition",
                hint=f"compare it: {parsed.text} > 0",
            )
        return parsed

    def __str__(self) -> str:
        return self.text


def evaluate(expression: Expression, table: pa.Table) -> pa.ChunkedArray:
    """The value of an expression for every row of a table.

    >>> e = Expression.parse("try_mod(a, b)", Schema.parse("a int, b int"))
    >>> evaluate(e, pa.table({"a": pa.array([7, 7], pa.int32()), "b": pa.array([4, 0], pa.int32())})).to_pylist()
    [3, None]
    """
    cursor = connection().cursor()
    try:
        # Only what is used: a stray column of a type DuckDB lacks would otherwise fail the query.
        needed = [n for n in table.column_names if n in expression.columns] or table.column_names[:1]
        cursor.register("__rows", table.select(needed))
        # `sql`, not `execute`: the latter copies the rows once more on their way to Arrow.
        result = cursor.sql(f"SELECT {expression.sql} AS v FROM __rows").to_arrow_table()
        return result.column(0).cast(expression.type)
    finally:
        cursor.close()


def evaluate_row(expression: Expression, row: Mapping[str, Any]) -> Any:
    """The value of an expression for one event.

    >>> evaluate_row(Expression.parse("upper(s)", Schema.parse("s string")), {"s": "a"})
    'A'
    """
    used = expression.schema.arrow
    return evaluate(expression, pa.Table.from_pylist([{n: row.get(n) for n in used.names}], schema=used))[0].as_py()


def _bound(sql: str, t: pa.DataType, schema: Schema, text: str, where: str) -> str:
    """The SQL, made to have exactly its type; what DuckDB itself does not take is found here, not in a run."""
    nulls = ", ".join(f'CAST(NULL AS {duckdb_type(a.type)}) AS "{_quoted(a.name)}"' for a in schema)
    try:
        rows = connection().execute(f"DESCRIBE SELECT {sql} AS v FROM (SELECT {nulls})").fetchall()
    except (duckdb.Error, UnicodeError) as error:
        raise UserError(f"{where}: '{text}': {_first_line(error)}") from None
    return sql if rows[0][1] == duck(t) else f"CAST({sql} AS {duck(t)})"


def _first_line(error: Exception) -> str:
    line = str(error).strip().split("\n")[0]
    return re.sub(r"^\w+(?: \w+)? Error: ", "", line).rstrip(".")


def _quoted(name: str) -> str:
    return name.replace('"', '""')
