"""Why a unit of state is still held: for which punctuation, of which stream, its longest waiting row waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.checkpoint.runs import StoredRun, UnitKey, read_marks, read_run
from penstock.checkpoint.storage import Storage
from penstock.engine.tasks.bucket import live_rows
from penstock.kernels.fold import is_tickable, ticks
from penstock.kernels.ticks import from_tick
from penstock.pattern.types import value_text
from penstock.plan.place import Place

#: Operators between which and their source nothing is held.
_PASSING = ("select", "project", "map", "bucket", "lookup", "union")


def waits_for(storage: Storage, plan: Mapping[str, Any], key: UnitKey, runs: Sequence[StoredRun]) -> str:
    """What would release the oldest part of a unit, in a few words; empty if the checkpoint does not tell."""
    place = Place(key.operator)
    operator = place.node
    keeps = plan.get(operator, {}).get("keeps")
    if keeps is None:
        return ""
    run = min(runs, key=lambda r: (r.low is None, r.low, r.epoch))
    rows = live_rows(read_run(storage, key, run), read_marks(storage, key, run))
    if not rows.num_rows:
        return ""
    match keeps["kind"]:
        case "join":
            return _join(plan, operator, keeps, place.port or 0, rows)
        case "aggregate" | "top" | "process":
            return _groups(plan, operator, keeps, rows)
        case "order":
            first = ", ".join(f"{n} {_text(rows[n][0].as_py())}" for n in keeps["by"])
            return f"everything before {first} from {origin(plan, plan[operator]['inputs'][0])}"
        case "limit":
            return f"the end of {origin(plan, plan[operator]['inputs'][0])}"
        case "impute":
            return "its turn"
        case _:
            return f"a punctuation of {origin(plan, plan[operator]['inputs'][0])} that matches"


def _join(plan: Mapping[str, Any], operator: str, keeps: Mapping[str, Any], port: int, rows: pa.Table) -> str:
    inputs = plan[operator]["inputs"]
    said = []
    for other in range(len(inputs)):
        if other == port:
            continue
        parts = [origin(plan, inputs[other]), _keys(rows, keeps["keys"][port], keeps["keys"][other])]
        mine, theirs = keeps["times"][port], keeps["times"][other]
        reach = keeps["reach"].get(f"{port},{other}", [None, None])[1]
        if mine is not None and theirs is not None and reach is not None and is_tickable(rows[mine].type):
            parts.append(f"{theirs} ≤ {_text(from_tick(_least(rows[mine]) + reach, rows[mine].type))}")
        said.append(", ".join(p for p in parts if p))
    return "; ".join(said)


def _groups(plan: Mapping[str, Any], operator: str, keeps: Mapping[str, Any], rows: pa.Table) -> str:
    source = origin(plan, plan[operator]["inputs"][0])
    label, on, size = keeps.get("label"), keeps.get("on"), keeps.get("size")
    if label is not None and label in rows.column_names and size is not None:
        until = "≤" if keeps.get("through") else "<"
        return f"{source}, {on} {until} {_text(from_tick(_least(rows[label]) + size, rows[label].type))}"
    names = [k for k in keeps["keys"] if k in rows.column_names]
    return f"{source}, {_keys(rows, names, names)}" if names else f"the end of {source}"


def _keys(rows: pa.Table, mine: Sequence[str], theirs: Sequence[str]) -> str:
    """The key of the first row under its names at the other input, and how many other keys there are."""
    first = " ".join(f"{b} {_text(rows[a][0].as_py())}" for a, b in zip(mine, theirs, strict=True))
    others = rows.select(list(dict.fromkeys(mine))).group_by(list(dict.fromkeys(mine))).aggregate([]).num_rows - 1
    return f"{first} and {others:,} more" if others else first


def _least(column: pa.ChunkedArray) -> int:
    """The tick of the least moment."""
    return int(ticks(column.drop_null()).min())


def _text(value: Any) -> str:
    return "null" if value is None else value_text(value)


def origin(plan: Mapping[str, Any], node_id: str) -> str:
    """The stream an input comes from, by its name where nothing is held on the way."""
    while node_id in plan and node_id.partition("-")[0] in _PASSING and len(plan[node_id]["inputs"]) == 1:
        (node_id,) = plan[node_id]["inputs"]
    return node_id.removeprefix("source:")
