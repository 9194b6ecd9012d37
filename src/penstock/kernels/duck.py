"""The DuckDB connection that the kernels of one process share."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import pyarrow as pa

from penstock.errors import FailingError, OverflowingError, UserError
from penstock.sql.term import reason_of

#: How the error begins that a kernel raises in SQL for a time off the declared grid.
OFF_GRID = "time off the grid"

_lock = threading.RLock()
_connections: dict[int, duckdb.DuckDBPyConnection] = {}


def connection() -> duckdb.DuckDBPyConnection:
    """The connection of this process, opened at first use.

    One thread, because Spark already runs one task per core; UTC, because timestamps carry no zone; no extensions and
    no files, because a kernel sees Arrow tables and nothing else. A forked worker opens its own.
    """
    with _lock:
        process = os.getpid()
        if process not in _connections:
            _connections[process] = _open()
        return _connections[process]


def _open() -> duckdb.DuckDBPyConnection:
    opened = duckdb.connect(
        ":memory:",
        config={
            "threads": 1,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "enable_external_access": False,
            "python_enable_replacements": False,
        },
    )
    opened.execute("SET TimeZone = 'UTC'")
    return opened


def limit_memory(limit: str) -> None:
    """Bound the memory of the kernels of this process, for example "2GB"."""
    with _lock:
        try:
            connection().execute("SET memory_limit = ?", [limit])
        except duckdb.Error:
            raise UserError(f"'{limit}' is not an amount of memory", hint="write it like '2GB' or '512MB'") from None


def memory_limit() -> int:
    """How many bytes the kernels of this process may take."""
    with _lock:
        db = connection()
        ((text,),) = db.execute("SELECT current_setting('memory_limit')").fetchall()
    number, _, unit = str(text).partition(" ")
    return int(float(number) * 1024 ** ["bytes", "KiB", "MiB", "GiB", "TiB"].index(unit))


def query(sql: str, /, **tables: pa.Table | pa.RecordBatch) -> pa.Table:
    """The answer to a query over Arrow tables, each under the name of its argument.

    128-bit integers come back as decimal(38,0), which Arrow would otherwise get as doubles.

    >>> query("SELECT sum(x) AS s FROM numbers", numbers=pa.table({"x": [1, 2]})).to_pydict()
    {'s': [Decimal('3')]}
    """
    with _lock:
        db = connection()
        try:
            for name, table in tables.items():
                db.register(name, table)
            relation = db.sql(sql)
            wide = [i for i, t in enumerate(relation.types) if str(t) == "HUGEINT"]
            if wide:
                casts = (
                    f'CAST("{quoted}" AS DECIMAL(38,0)) AS "{quoted}"' if i in wide else f'"{quoted}"'
                    for i, quoted in enumerate(c.replace('"', '""') for c in relation.columns)
                )
                relation = relation.project(", ".join(casts))
            answer: pa.Table = relation.to_arrow_table()
            return answer
        except duckdb.Error as error:
            raise translated(error) from error
        finally:
            for name in tables:
                db.unregister(name)


def translated(error: duckdb.Error) -> Exception:
    """Our error for one of DuckDB's: numbers and values that do not fit are the user's business, the rest is ours."""
    text = str(error).split("\n")[0].strip()
    kind, _, detail = text.partition(": ")
    if (why := reason_of(text)) is not None:
        return FailingError(why, hint="leave such values out with where(…) first, or use a try_ function")
    # What DuckDB suggests is to be written in DuckDB.
    said = re.sub(r"( when casting from source |\. (Use TRY|Perhaps|Full)).*", "", detail or kind).rstrip(".!")
    too_large = ("out of range", "verflow", "Failed to cast decimal value")
    if isinstance(error, duckdb.OutOfRangeException) or any(phrase in text for phrase in too_large):
        return OverflowingError(said, hint="cast the argument to a wider type, such as decimal(38,0)")
    if OFF_GRID in text:
        return FailingError(said, hint="declare a finer granularity, or round the time before the window")
    if isinstance(error, duckdb.ConversionException):
        return FailingError(said, hint="use try_cast to get null instead of an error")
    if isinstance(error, duckdb.DataError | duckdb.InvalidInputException):
        return FailingError(said, hint="leave such values out with where(…) first")
    return error


@contextmanager
def to_the_letter() -> Iterator[None]:
    """Statements are computed as they are written: what occurs twice in one is not taken out and computed before.

    Otherwise a part that fails would do so even where a condition, or TRY, is there to prevent it.
    """
    with _lock:
        db = connection()
        db.execute("SET disabled_optimizers = 'common_subexpressions'")
        try:
            yield
        finally:
            db.execute("SET disabled_optimizers = ''")


def quote(name: str) -> str:
    """A column name in SQL.

    >>> quote('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text in SQL.

    >>> literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"
