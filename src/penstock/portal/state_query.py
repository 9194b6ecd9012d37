"""SQL over the state of a query: one SELECT over its tables, and nothing else.

Whoever may look at a checkpoint may not therefore read other files, write any, or reach for the network. So the
connection knows the tables it is given and no files, nothing can be installed or set, and what an answer may cost in
memory and time is bounded.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

import duckdb
import pyarrow as pa

from penstock.errors import UserError

#: What a query may take.
MEMORY = 1 << 30
SECONDS = 60.0

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "enable_external_access": False,
    "python_enable_replacements": False,
    "allow_community_extensions": False,
    "memory_limit": f"{MEMORY}B",
    "temp_directory": "",
    "lock_configuration": True,
}


def select(sql: str, tables: Mapping[str, pa.Table], seconds: float = SECONDS, memory: int = MEMORY) -> pa.Table:
    """The answer to a SELECT over tables.

    >>> select("SELECT sum(n)::INT AS n FROM units", {"units": pa.table({"n": [1, 2]})}).to_pylist()
    [{'n': 3}]
    >>> select("COPY units TO 'here.csv'", {"units": pa.table({"n": [1, 2]})})
    Traceback (most recent call last):
    penstock.errors.UserError: --query: only one SELECT over the state is answered, and this is COPY. Hint: ...
    """
    named = ", ".join(f'"{n}"' for n in tables)
    hint = f"""write one SELECT, such as SELECT * FROM "{next(iter(tables), "units")}" LIMIT 5; there are: {named}"""
    with duckdb.connect(":memory:", config={**_CONFIG, "memory_limit": f"{memory}B"}) as connection:
        try:
            statements = connection.extract_statements(sql)
        except duckdb.Error as error:
            raise UserError(f"--query: {_first(error)}", hint=hint) from None
        kinds = [s.type.name for s in statements]
        if kinds != ["SELECT"]:
            what = f"this is {', then '.join(kinds)}" if kinds else "there is none"
            raise UserError(f"--query: only one SELECT over the state is answered, and {what}", hint=hint)
        for name, table in tables.items():
            connection.register(name, table)
        late = threading.Event()

        def stop() -> None:
            late.set()
            connection.interrupt()

        timer = threading.Timer(seconds, stop)
        timer.daemon = True
        timer.start()
        try:
            return _fetch(connection, sql, memory)
        except duckdb.InterruptException:
            if not late.is_set():
                raise
            raise UserError(
                f"--query: no answer within {seconds:g} s", hint="ask for less: a WHERE, fewer rows of a join"
            ) from None
        except (duckdb.OutOfMemoryException, MemoryError, pa.ArrowMemoryError):
            raise _too_large(memory) from None
        except duckdb.PermissionException:
            said = "--query: files, other databases, extensions and settings are out of reach"
            raise UserError(said, hint=hint) from None
        except duckdb.Error as error:
            raise UserError(f"--query: {_first(error)}", hint=hint) from None
        finally:
            timer.cancel()


def _fetch(connection: duckdb.DuckDBPyConnection, sql: str, memory: int) -> pa.Table:
    """The answer in pieces, so that one that is too large is not first put together."""
    reader = connection.sql(sql).to_arrow_reader(10_000)
    pieces, size = [], 0
    for batch in reader:
        pieces.append(batch)
        size += batch.nbytes
        if size > memory:
            raise _too_large(memory)
    return pa.Table.from_batches(pieces, reader.schema)


def _too_large(memory: int) -> UserError:
    return UserError(f"--query: the answer takes more than {memory >> 20} MiB of memory", hint="add a LIMIT or a WHERE")


def _first(error: Exception) -> str:
    said = str(error).strip().splitlines()
    return said[0] if said else type(error).__name__
