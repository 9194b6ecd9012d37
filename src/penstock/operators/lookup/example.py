"""Lookups for tests of random plans, in tables that are there to be read."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from pyarrow.types import is_integer

from penstock.plan.table import Table, table

#: What the tables of examples hold, by name, as the reference interpreter takes it. `rates` has no row for most keys,
#: and two for one; `limits` has versions.
ROWS: dict[str, list[dict[str, Any]]] = {
    "rates": [{"key": k, "rate": 7 * k} for k in (0, 1, 2, 3, 3, 5)],
    "limits": [{"key": k, "speed": 10 * k + since, "since": since} for k in (0, 1, 2, 3) for since in (0, 20)],
}


@cache
def _tables() -> tuple[Table, Table]:
    """The tables, written to files once in a process."""
    folder = tempfile.mkdtemp(prefix="penstock-example-")
    for name, rows in ROWS.items():
        Path(folder, f"{name}.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return (
        table("rates", "key bigint, rate bigint", key="key").read_json(f"{folder}/rates.json"),
        table("limits", "key bigint, speed bigint, since bigint", key="key", version="since").read_json(
            f"{folder}/limits.json"
        ),
    )


def example_of(random: Random, below: Any) -> Any:
    """A lookup of an integer; in the table with versions, by an integer time."""
    keys = [a.name for a in below.schema if is_integer(a.type)]
    if not keys:
        return None
    moments = [n for n in below.schema.times if n in keys]
    rates, limits = _tables()
    versioned = bool(moments) and random.random() < 0.5
    return below.lookup(
        limits if versioned else rates,
        {random.choice(keys): "key"},
        random.choice(("inner", "left")),
        as_of=random.choice(moments) if versioned else None,
        suffix=f"_{len(below.schema)}",  # Lookups of lookups: a name that no attribute has yet.
    )
