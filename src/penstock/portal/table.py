"""Tables on a terminal, and as a line of JSON for each row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from penstock.engine.terminal import grid, terminal, values
from penstock.errors import counted
from penstock.portal.watch import say_json

#: More rows than this are not printed for people.
SHOWN = 200


def print_table(table: pa.Table, as_json: bool = False) -> None:
    if as_json:
        for row in rows_of(table):
            say_json(row)
        return
    terminal().print(grid(table, SHOWN))
    shown = f", the first {SHOWN} shown" if table.num_rows > SHOWN else ""
    print(f"{counted(table.num_rows, 'row')}{shown}")


def rows_of(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows, one by one, for JSON."""
    for row in zip(*map(values, table.columns)):
        yield dict(zip(table.column_names, row, strict=True))
