"""The account of what was given up: a small file for every epoch, which DuckDB reads, and a table of them.

shed/000042.json    for every output, how many windows have passed, which of them were dropped, and what that costs
shed/table.json     the plans made ahead, in the order in which they are gone through

SELECT sink, sum(dropped), max(longest_gap) FROM read_json('out/_penstock/checkpoint/shed/0*.json') GROUP BY sink
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.checkpoint.storage import Storage

#: What there is to say of an output after an epoch.
ACCOUNT = pa.schema(
    [
        ("epoch", pa.int64()),
        ("sink", pa.string()),
        ("windows", pa.int64()),
        ("dropped", pa.int64()),
        ("delivered", pa.float64()),
        ("longest_gap", pa.int64()),
        ("utility", pa.float64()),
        ("dropped_windows", pa.list_(pa.string())),
    ]
)
_FOLDER, _TABLE = "shed", "shed/table.json"
_EPOCH = re.compile(r"[0-9]{6,}\.json")


def write_account(storage: Storage, epoch: int, lines: Sequence[dict[str, Any]]) -> None:
    """Leave the account of an epoch. If the epoch is run again it says the same, under the same name."""
    if lines:
        storage.make(_FOLDER)
        text = "".join(json.dumps(line) + "\n" for line in lines)
        storage.write(f"{_FOLDER}/{epoch:06d}.json", text.encode(), sync=False)


def read_account(storage: Storage) -> pa.Table:
    """All of it, a row for each output and epoch in which windows have passed."""
    rows: list[dict[str, Any]] = []
    for name in sorted(n for n in storage.names(_FOLDER) if _EPOCH.fullmatch(n)):
        rows += [json.loads(line) for line in storage.read(f"{_FOLDER}/{name}").splitlines()]
    return pa.Table.from_pylist(rows, ACCOUNT)


def write_table(storage: Storage, rows: Sequence[dict[str, Any]]) -> None:
    """Leave the table of plans, for people."""
    storage.make(_FOLDER)
    storage.write(_TABLE, json.dumps(list(rows)).encode(), sync=False)


def read_table(storage: Storage) -> list[dict[str, Any]]:
    """The table of plans, as it was made last; nothing if none was."""
    return list(json.loads(storage.read(_TABLE))) if storage.exists(_TABLE) else []
