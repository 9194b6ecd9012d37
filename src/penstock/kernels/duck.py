"""The DuckDB connection that the kernels of one process share."""

from __future__ import annotations

import atexit
import os
import re
import threading
import warnings
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa

from penstock.errors import FailingError, OverflowingError, UserError
from penstock.sql.term import reason_of

#: How the error begins that a kernel raises in SQL for a time off the declared grid.
OFF_GRID = "time off the grid"

#: Statements over tables of at most so many rows in all are kept prepared: planning one takes longer than computing it.
#: Those over more are planned for what they are given.
FEW = 1 << 17
#: How many statements are kept.
KEPT = 64
# Of results of few rows, a copy is cheaper than the planning that avoids it.
warnings.filterwarnings("ignore", "Arrow output on a DB-API result makes an extra copy")

_lock = threading.RLock()
_connections: dict[int, duckdb.DuckDBPyConnection] = {}
#: By process the statements that were asked before; None: once.
_kept: dict[int, OrderedDict[Any, Prepared | None]] = {}
_literally = 0


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
        try:
            prepared = _prepared(sql, tables)
            return _asked(sql, tables) if prepared is None else prepared.ask(tables)
        except duckdb.Error as error:
            raise translated(error) from error


def _asked(sql: str, tables: Mapping[str, pa.Table | pa.RecordBatch]) -> pa.Table:
    db = connection()
    try:
        for name, table in tables.items():
            db.register(name, table)
        answer: pa.Table = db.sql(_narrowed(db, sql)).to_arrow_table()
        return answer
    finally:
        for name in tables:
            db.unregister(name)


def _narrowed(db: duckdb.DuckDBPyConnection, sql: str) -> str:
    """The statement with 128-bit integers as decimals."""
    relation = db.sql(sql)
    if "HUGEINT" not in map(str, relation.types):
        return sql
    columns = [(quote(c), str(t)) for c, t in zip(relation.columns, relation.types, strict=True)]
    casts = (f"CAST({c} AS DECIMAL(38,0)) AS {c}" if t == "HUGEINT" else c for c, t in columns)
    return f"SELECT {', '.join(casts)} FROM ({sql})"


class _Slot:
    """Where a prepared statement finds its table: another one each time, of the same schema."""

    def __init__(self, table: pa.Table | pa.RecordBatch) -> None:
        self.schema, self.table = table.schema, table

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


class Prepared:
    """A statement that has been planned once, on a connection of its own."""

    def __init__(self, sql: str, tables: Mapping[str, pa.Table | pa.RecordBatch]) -> None:
        self.db = connection().cursor()
        self.db.execute("SET TimeZone = 'UTC'")
        self.slots = {name: _Slot(table) for name, table in tables.items()}
        for name, slot in self.slots.items():
            self.db.register(name, slot)
        self.db.execute(f"PREPARE answer AS {_narrowed(self.db, sql)}")

    def ask(self, tables: Mapping[str, pa.Table | pa.RecordBatch]) -> pa.Table:
        try:
            for name, slot in self.slots.items():
                slot.table = tables[name]
            return self.db.execute("EXECUTE answer").to_arrow_table()
        finally:
            for slot in self.slots.values():
                slot.table = None


def _prepared(sql: str, tables: Mapping[str, pa.Table | pa.RecordBatch]) -> Prepared | None:
    """The statement as it was prepared when it was asked for the second time, None for those that are not."""
    if _literally or sum(t.num_rows for t in tables.values()) > FEW:
        return None
    kept = _kept.setdefault(os.getpid(), OrderedDict())
    key = sql, tuple((name, table.schema) for name, table in tables.items())
    if key not in kept:
        kept[key] = None
        if len(kept) > KEPT:
            _, last = kept.popitem(last=False)
            if last is not None:
                last.db.close()
        return None
    kept.move_to_end(key)
    if kept[key] is None:
        kept[key] = Prepared(sql, tables)
    return kept[key]


@atexit.register
def _close() -> None:
    for prepared in _kept.pop(os.getpid(), {}).values():
        if prepared is not None:
            prepared.db.close()


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
    global _literally
    with _lock:
        db = connection()
        db.execute("SET disabled_optimizers = 'common_subexpressions'")
        _literally += 1
        try:
            yield
        finally:
            _literally -= 1
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
