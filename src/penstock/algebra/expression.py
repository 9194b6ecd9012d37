"""Expressions: SQL text over the attributes of one schema.

A user writes the SQL functions they know from Spark. The text is parsed once with sqlglot, checked, and translated to
DuckDB, which computes it. What would make a replay differ (clocks, random numbers) or does not belong to a single
event (aggregates, windows, subqueries) is refused here, so that nothing behind this module has to ask again.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, ParseError, TokenError, UnsupportedError

from penstock.algebra.fallible import Fallible, can_fail, in_order
from penstock.algebra.schema import Schema
from penstock.algebra.types import duckdb_type, parse_type, type_text
from penstock.errors import UserError, did_you_mean, nearest

_local = threading.local()
#: Clocks and dice under the names sqlglot does not know or DuckDB does not have.
_VOLATILE_NAMES = frozenset(
    [
        "now", "today", "curdate", "current_date", "current_time", "current_timestamp", "localtime",
        "localtimestamp", "rand", "randn", "random", "randstr", "uniform", "uuid", "shuffle",
        "monotonically_increasing_id", "spark_partition_id", "input_file_name", "current_user", "user",
        "session_user", "current_timezone", "current_catalog", "current_schema", "current_database", "version",
    ]
)  # fmt: skip
_NO_ARGUMENT_CLOCKS = frozenset(["unix_timestamp", "age"])
_INTEGERS = frozenset(["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"])
#: DuckDB types that no attribute has, and the attribute type that holds their values.
_WIDENED = {
    "HUGEINT": "decimal(38,0)",
    "UHUGEINT": "decimal(38,0)",
    "UBIGINT": "decimal(20,0)",
    "UINTEGER": "bigint",
    "USMALLINT": "int",
    "UTINYINT": "smallint",
    "TIMESTAMP WITH TIME ZONE": "timestamp",
    "TIMESTAMP_S": "timestamp",
    "TIMESTAMP_MS": "timestamp",
    "TIMESTAMP_NS": "timestamp",
    "UUID": "string",
}
_AS_SQL = {"VARCHAR": "string", "BLOB": "binary"}


def connection() -> duckdb.DuckDBPyConnection:
    """This thread's in-memory DuckDB connection, set up as expressions assume: one thread, time in UTC.

    A forked process (a Spark worker) gets its own: a connection does not survive a fork.
    """
    if getattr(_local, "owner", None) != os.getpid():
        _local.owner, _local.connection = os.getpid(), duckdb.connect(":memory:", config={"threads": 1})
        _local.connection.execute("SET TimeZone = 'UTC'")
    found: duckdb.DuckDBPyConnection = _local.connection
    return found


@dataclass(frozen=True)
class Expression:
    """A checked SQL expression over one schema.

    >>> traffic = Schema.parse("ts timestamp, segment int, speed double", time="ts")
    >>> e = Expression.parse("Speed / segment", traffic)
    >>> e.sql, sorted(e.columns), e.type
    ('"speed" / NULLIF("segment", 0)', ['segment', 'speed'], DataType(double))
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
        tree = _parse(text, where)
        _refuse(tree, text, where)
        columns = _resolve(tree, schema, text, where)
        tree = in_order(_keep_spark_semantics(tree, schema), schema)
        risky = can_fail(tree, schema)
        try:
            sql = tree.sql("duckdb", comments=False, unsupported_level=ErrorLevel.RAISE)
        except UnsupportedError as error:
            raise UserError(f"{where}: '{text}' cannot be computed: {str(error).splitlines()[0]}") from None
        sql, t = _typed(sql, schema, text, where)
        used = schema.select(n for n in schema.names if n in columns) if columns else schema
        return cls(text.strip(), sql, columns, t, used, risky)

    @property
    def tried(self) -> tuple[Fallible, ...]:
        """What to look at when something has failed: itself, if it can."""
        return (Fallible(self.text, self.sql),) if self.can_fail else ()

    @classmethod
    def predicate(cls, text: str, schema: Schema, *, where: str = "predicate") -> Expression:
        """Read an expression that is true or false (or null) for an event.

        >>> Expression.predicate("speed + 1", Schema.parse("speed int"), where="select 'slow'")
        Traceback (most recent call last):
        penstock.errors.UserError: select 'slow': 'speed + 1' has type int and is no condition. \
Hint: compare it: speed + 1 > 0
        """
        parsed = cls.parse(text, schema, where=where)
        if parsed.type != pa.bool_():
            raise UserError(
                f"{where}: '{parsed.text}' has type {type_text(parsed.type)} and is no condition",
                hint=f"compare it: {parsed.text} > 0",
            )
        return parsed

    def __str__(self) -> str:
        return self.text


def evaluate(expression: Expression, table: pa.Table) -> pa.ChunkedArray:
    """The value of an expression for every row of a table.

    >>> e = Expression.parse("a % b", Schema.parse("a int, b int"))
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


def _parse(text: str, where: str) -> exp.Expr:
    if not text.strip():
        raise UserError(f"{where}: empty expression", hint="write a SQL expression such as speed > 40")
    try:
        trees = sqlglot.parse(text, read="spark")
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        near = f" near '{first['highlight']}'" if first.get("highlight") else ""
        position = f"line {first.get('line', 1)}, column {first.get('col', 1)}"
        what = str(first.get("description") or "cannot be read").split("\n")[0].rstrip(".")
        raise UserError(f"{where}: syntax error in '{text}' at {position}{near}: {what}") from None
    except TokenError:
        raise UserError(
            f"{where}: syntax error in '{text}': a quote or comment is not closed",
            hint="close it; write '' inside a text",
        ) from None
    tree = trees[0] if len(trees) == 1 else None
    if isinstance(tree, exp.Alias):
        raise UserError(f"{where}: '{text}' names its result", hint=f"leave out 'AS {tree.alias}' here")
    if tree is None or not isinstance(tree, exp.Condition | exp.Interval | exp.Star | exp.Query):
        raise UserError(f"{where}: '{text}' is not an expression", hint="write one SQL expression such as speed > 40")
    return tree


def _refuse(tree: exp.Expr, text: str, where: str) -> None:
    """What an expression over single events, computed again after a crash, cannot contain."""
    scalar, aggregate, volatile = _catalog()
    for node in tree.walk():
        if isinstance(node, exp.Window):
            raise UserError(f"{where}: window function in '{text}'", hint="use .window(…) and .agg(…)")
        if isinstance(node, exp.Query):
            raise UserError(
                f"{where}: subquery in '{text}'", hint="an expression sees the attributes of one event only"
            )
        if isinstance(node, exp.Placeholder | exp.Parameter):
            raise UserError(f"{where}: parameter '{node.sql()}' in '{text}'", hint="write the value itself")
        if isinstance(node, exp.UDTF | exp.Explode | exp.Posexplode):
            raise UserError(f"{where}: '{text}' makes several rows of one", hint="use .map(…) with a Python function")
        if isinstance(node, exp.Func):
            name = _function_name(node)
            if _is_volatile(node, name, volatile):
                raise UserError(
                    f"{where}: '{name}' in '{text}' gives another value each time",
                    hint="a replay must be exact; use an attribute of the event instead",
                )
            anonymous = isinstance(node, exp.Anonymous)
            if isinstance(node, exp.AggFunc) or (anonymous and name in aggregate and name not in scalar):
                raise UserError(
                    f"{where}: aggregate function '{_as_written(name, text)}' in '{text}'",
                    hint="aggregates belong in .agg(…)",
                )
            if anonymous and name not in scalar and name not in _SPARK_ONLY and name not in _CAST_FUNCTIONS:
                raise _unknown_function(name, text, where)
    if star := tree.find(exp.Star):
        raise UserError(f"{where}: '{star.sql()}' in '{text}'", hint="name the attributes one by one")


def _function_name(node: exp.Func) -> str:
    return node.name.lower() if isinstance(node, exp.Anonymous) else node.sql_name().lower()


def _is_volatile(node: exp.Func, name: str, volatile: frozenset[str]) -> bool:
    if name in _NO_ARGUMENT_CLOCKS:
        return len(list(node.iter_expressions())) < (2 if name == "age" else 1)
    if isinstance(node, exp.StrToUnix | exp.TimeToUnix) and node.this is None:
        return True
    return name in _VOLATILE_NAMES or name in volatile


def _as_written(name: str, text: str) -> str:
    """The name under which a user called a function that sqlglot knows under another name."""
    calls = [c.lower() for c in re.findall(r"([A-Za-z_]\w*)\s*\(", text)]
    return name if name in calls else next((c for c in calls if c not in _catalog()[0]), name)


def _unknown_function(name: str, text: str, where: str) -> UserError:
    name = _as_written(name, text)
    if name == "window":
        return UserError(f"{where}: '{text}' is a window, not an expression", hint="use .window(…)")
    translated = {n.lower() for n in Spark.Parser.FUNCTIONS}
    known = _catalog()[0] | set(_SPARK_ONLY) | (set() if name in translated else translated)
    match = nearest(name, [n for n in known if n.isidentifier() and not n.startswith("_") and n != name])
    hint = f"did you mean '{match}'?" if match else "see the SQL functions of Spark and DuckDB"
    what = "is not available" if name in translated else "is unknown"
    return UserError(f"{where}: function '{name}' in '{text}' {what}", hint=hint)


@cache
def _catalog() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """DuckDB's scalar functions, its aggregates, and those of its functions whose value may change."""
    rows = connection().execute("SELECT function_name, function_type, stability FROM duckdb_functions()").fetchall()
    scalar = {name for name, kind, _ in rows if kind in ("scalar", "macro")}
    aggregate = {name for name, kind, _ in rows if kind in ("aggregate", "window")}
    # `error` is volatile only so that it is not folded away.
    volatile = {name for name, kind, stability in rows if kind == "scalar" and stability not in ("CONSISTENT", None)}
    return frozenset(scalar), frozenset(aggregate), frozenset(volatile - {"error"})


def _resolve(tree: exp.Expr, schema: Schema, text: str, where: str) -> frozenset[str]:
    """Give every column the schema's spelling, quoted, and collect them."""
    used = set()
    for column in tree.find_all(exp.Column):
        name = column.name
        if column.table:
            raise UserError(f"{where}: '{column.sql('spark')}' in '{text}'", hint=f"write '{name}' without a prefix")
        found = schema.resolve(name)
        if found is None:
            raise UserError(f"{where}: unknown column '{name}' in '{text}'", hint=did_you_mean(name, schema.names))
        column.set("this", exp.to_identifier(found, quoted=True))
        used.add(found)
    return frozenset(used)


def _keep_spark_semantics(tree: exp.Expr, schema: Schema) -> exp.Expr:
    """Rewrite where DuckDB would answer differently from Spark, or stop at a value Spark answers with null."""

    def kind(node: exp.Expr) -> str:
        return _describe(node.sql("duckdb", comments=False), schema, default="")

    def rewrite(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.DataType) and node.this in (_Type.TIMESTAMPTZ, _Type.TIMESTAMPLTZ):
            return exp.DataType.build("timestamp", dialect="duckdb")
        if isinstance(node, exp.Literal) and node.is_string and isinstance(node.parent, exp.Predicate):
            # Beside a timestamp DuckDB would read such a text as one, and skip its offset.
            if not _local_time(node) and any(kind(n) == "TIMESTAMP" for n in node.parent.iter_expressions()):
                return _cast(exp.TryCast(this=node.copy(), to=exp.DataType.build("timestamp", dialect="duckdb")), kind)
        elif isinstance(node, exp.Mod | exp.IntDiv) and not _nonzero(node.expression):
            node.set("expression", exp.Nullif(this=exp.paren(node.expression.copy()), expression=exp.Literal.number(0)))
        elif isinstance(node, exp.Add | exp.Sub) and isinstance(node.expression, exp.Interval):
            if str(node.expression.unit).upper() in _DATE_UNITS and kind(node.this) == "DATE":
                return exp.cast(node.copy(), "date")
        elif isinstance(node, exp.TsOrDsAdd | exp.AddMonths):
            return exp.cast(node.copy(), "date")
        elif isinstance(node, exp.DateAdd | exp.TimestampAdd):
            if str(node.unit).upper() in _DATE_UNITS and kind(node.this) == "DATE":
                return exp.cast(node.copy(), "date")
        elif isinstance(node, exp.DayOfWeek) or (isinstance(node, exp.Extract) and node.name.upper() in _DAYS_OF_WEEK):
            return exp.paren(exp.Add(this=node.copy(), expression=exp.Literal.number(1)))
        elif isinstance(node, exp.StrToUnix) and kind(node.this) in ("TIMESTAMP", "DATE"):
            return _template(_SPARK_ONLY["unix_seconds"], node.this)
        elif isinstance(node, exp.Floor | exp.Ceil) and not node.args.get("decimals"):
            if kind(node.this) in ("DOUBLE", "FLOAT"):
                return exp.TryCast(this=node.copy(), to=exp.DataType.build("bigint"))
        elif isinstance(node, exp.Ln | exp.Log):
            argument = node.expression or node.this
            argument.replace(_template("NULLIF(GREATEST({0}, 0), 0)", argument))
        elif isinstance(node, exp.Sqrt):
            return _template("CASE WHEN {0} < 0 THEN CAST('nan' AS DOUBLE) ELSE SQRT({0}) END", node.this)
        elif isinstance(node, exp.Substring) and node.args.get("start") == exp.Literal.number(0):
            node.set("start", exp.Literal.number(1))
        elif isinstance(node, exp.Cast):
            return _cast(node, kind)
        elif isinstance(node, exp.Func):
            return called(node, _function_name(node))
        return node

    def called(node: exp.Func, name: str) -> exp.Expr:
        arguments = list(node.iter_expressions())
        if name in _CAST_FUNCTIONS and len(arguments) == 1:
            return rewrite(exp.TryCast(this=arguments[0].copy(), to=exp.DataType.build(name, dialect="duckdb")))
        if name in ("date_part", "datepart") and len(arguments) == 2 and arguments[0].is_string:
            return rewrite(exp.Extract(this=exp.var(arguments[0].name.upper()), expression=arguments[1].copy()))
        if name in _SPARK_ONLY and len(arguments) == 1 + ("{1}" in _SPARK_ONLY[name]):
            return _template(_SPARK_ONLY[name], *arguments)
        return node

    # Children first, and each node once: a rewritten node contains its old self.
    def descend(node: exp.Expr) -> exp.Expr:
        for child in list(node.iter_expressions()):
            replaced = descend(child)
            if replaced is not child:
                child.replace(replaced)
        return rewrite(node)

    return descend(tree)


def _cast(node: exp.Cast, kind: Callable[[exp.Expr], str]) -> exp.Expr:
    """Spark cuts decimals off where DuckDB rounds, counts a timestamp in seconds, and heeds the offset in its text."""
    target = node.to.this
    whole = target in exp.DataType.INTEGER_TYPES
    real = target in (_Type.DOUBLE, _Type.FLOAT)
    moment = target in (_Type.TIMESTAMP, _Type.TIMESTAMPNTZ)
    if not whole and not real and not moment:
        return node
    source = kind(node.this)
    if whole and (source in ("DOUBLE", "FLOAT") or source.startswith("DECIMAL")):
        node.set("this", _template("TRUNC({0})", node.this))
    elif source == "TIMESTAMP" and whole:
        node.set("this", _template("FLOOR(EPOCH({0}))", node.this))
    elif source == "TIMESTAMP" and real:
        node.set("this", _template("EPOCH({0})", node.this))
    elif moment and source in _INTEGERS:
        return _template(_SPARK_ONLY["timestamp_seconds"], node.this)
    elif moment and source in ("DOUBLE", "FLOAT"):
        return _template("MAKE_TIMESTAMP(CAST({0} * 1000000 AS BIGINT))", node.this)
    elif moment and source == "VARCHAR" and not _local_time(node.this):
        node.set("this", exp.TryCast(this=node.this.copy(), to=exp.DataType.build("timestamptz", dialect="duckdb")))
    return node


def _local_time(node: exp.Expr) -> bool:
    """Whether a text is known to name no offset from UTC."""
    return isinstance(node, exp.Literal) and not _OFFSET.search(node.name[10:])


#: Spark functions that sqlglot leaves alone and DuckDB lacks, or has with another meaning.
_SPARK_ONLY = {
    "pmod": "((({0}) % NULLIF({1}, 0)) + ({1})) % NULLIF({1}, 0)",
    "bround": "ROUND_EVEN({0}, 0)",
    "rint": "ROUND_EVEN({0}, 0)",
    "isnull": "({0}) IS NULL",
    "isnotnull": "({0}) IS NOT NULL",
    "nanvl": "CASE WHEN ISNAN({0}) THEN {1} ELSE {0} END",
    "weekday": "ISODOW({0}) - 1",
    "unix_seconds": "CAST(FLOOR(EPOCH({0})) AS BIGINT)",
    "timestamp_seconds": "MAKE_TIMESTAMP(CAST({0} AS BIGINT) * 1000000)",
    "timestamp_millis": "MAKE_TIMESTAMP(CAST({0} AS BIGINT) * 1000)",
    "timestamp_micros": "MAKE_TIMESTAMP(CAST({0} AS BIGINT))",
}
_CAST_FUNCTIONS = frozenset(["bigint", "smallint", "tinyint", "float", "boolean"])
_DAYS_OF_WEEK = frozenset(["DAYOFWEEK", "DOW"])
_DATE_UNITS = frozenset(["DAY", "DAYS", "WEEK", "WEEKS", "MONTH", "MONTHS", "QUARTER", "YEAR", "YEARS"])
_OFFSET = re.compile(r"([+-]\d\d(:?\d\d)?|[A-Za-z])\s*$")
_Type = exp.DataType.Type


def _template(text: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.paren(sqlglot.parse_one(text.format(*(a.sql("duckdb") for a in arguments)), read="duckdb"))


def _nonzero(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and float(node.name) != 0


def _typed(sql: str, schema: Schema, text: str, where: str) -> tuple[str, pa.DataType]:
    """The type of an expression, which its SQL is made to have exactly."""
    for name in _called(sql):
        scalar, aggregate, volatile = _catalog()
        if name in volatile or name == "unnest" or (name in aggregate and name not in scalar):
            raise UserError(f"{where}: function '{name}' in '{text}' is not a function of one event")
    try:
        found = _describe(sql, schema)
    except duckdb.CatalogException as error:
        missing = re.search(r"Function with name \"?(\w+)\"? does not exist", str(error))
        raise _unknown_function(missing[1] if missing else text, text, where) from None
    except duckdb.Error as error:
        raise UserError(f"{where}: '{text}': {_first_line(error)}") from None
    if found in _WIDENED:
        t = parse_type(_WIDENED[found])
        return f"CAST({sql} AS {duckdb_type(t)})", t
    try:
        return sql, parse_type(_AS_SQL.get(found, found))
    except UserError:
        what = "null" if found.strip('"') == "NULL" else found.lower()
        raise UserError(
            f"{where}: '{text}' has type {what}, which no attribute has", hint=f"cast it, e.g. CAST({text} AS string)"
        ) from None


def _first_line(error: duckdb.Error) -> str:
    line = str(error).strip().split("\n")[0]
    return re.sub(r"^\w+(?: \w+)? Error: ", "", line).rstrip(".")


def _describe(sql: str, schema: Schema, *, default: str | None = None) -> str:
    nulls = ", ".join(f'CAST(NULL AS {duckdb_type(a.type)}) AS "{_quoted(a.name)}"' for a in schema)
    try:
        rows = connection().execute(f"DESCRIBE SELECT {sql} AS v FROM (SELECT {nulls})").fetchall()
    except duckdb.Error:
        if default is None:
            raise
        return default
    return str(rows[0][1])


def _quoted(name: str) -> str:
    return name.replace('"', '""')


def _called(sql: str) -> Iterator[str]:
    """The functions that a DuckDB expression calls, as DuckDB itself reads it."""
    read = connection().execute("SELECT json_serialize_sql(?)", [f"SELECT {sql}"]).fetchall()[0][0]
    stack: list[Any] = [json.loads(read)]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            if node.get("class") == "FUNCTION" and not node.get("is_operator"):
                yield str(node["function_name"]).lower()
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
