"""Where expressions are computed: a DuckDB connection that sees Arrow tables and nothing else."""

from __future__ import annotations

import os
import threading

import duckdb

from penstock.sql.term import Term, reason_of

_local = threading.local()
#: What an expression may need beside the rows it is computed for.
MEMORY = "1GB"


def connection() -> duckdb.DuckDBPyConnection:
    """This thread's in-memory connection: one thread, UTC, no files, no extensions, bounded memory.

    A forked process (a Spark worker) gets its own: a connection does not survive a fork.
    """
    if getattr(_local, "owner", None) != os.getpid():
        _local.owner, _local.connection = os.getpid(), _open()
    found: duckdb.DuckDBPyConnection = _local.connection
    return found


def failure(constant: Term) -> str | None:
    """Why a term without attributes cannot be computed, as far as known: it would fail for every event.

    >>> from penstock.sql.term import INT, raising
    >>> failure(Term("CAST('7' AS INTEGER)", INT)), failure(Term("CAST('x' AS INTEGER)", INT))
    (None, '')
    >>> failure(Term(raising("division by zero", INT), INT))
    'division by zero'
    """
    try:
        connection().execute(f"SELECT {constant.sql}")
    except duckdb.Error as error:
        return reason_of(str(error)) or ""
    return None


def _open() -> duckdb.DuckDBPyConnection:
    opened = duckdb.connect(
        ":memory:",
        config={
            "threads": 1,
            "memory_limit": MEMORY,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "enable_external_access": False,
            "python_enable_replacements": False,
        },
    )
    opened.execute("SET TimeZone = 'UTC'")
    opened.execute("SET lock_configuration = true")
    return opened
