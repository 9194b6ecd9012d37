"""Tables on a terminal, and as a line of JSON for each row."""

from __future__ import annotations

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from penstock.portal.watch import say_json

#: More rows than this are not printed for people.
SHOWN = 200


def print_table(table: pa.Table, as_json: bool = False) -> None:
    if as_json:
        for row in table.to_pylist():
            say_json(row)
        return
    grid = Table(*table.column_names)
    for row in table.slice(0, SHOWN).to_pylist():
        grid.add_row(*("" if v is None else str(v) for v in row.values()))
    Console().print(grid)
    shown = f", the first {SHOWN} shown" if table.num_rows > SHOWN else ""
    print(f"{table.num_rows:,} row{'' if table.num_rows == 1 else 's'}{shown}")
