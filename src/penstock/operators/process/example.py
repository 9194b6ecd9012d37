"""Random functions with state on a stream, for tests of random plans."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa


def some_process(random: random.Random, below: Any) -> Any:
    """By one or two attributes, what `passing` does."""
    names = below.schema.names
    return below.process(
        passing, "process_seen long", by=random.sample(names, min(random.choice((1, 1, 2)), len(names)))
    )


def passing(events: pa.Table, state: pa.Table, over: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Lets events pass and counts those of each key, whatever the cut and the order."""
    *by, counted = state.column_names
    seen: dict[tuple[Any, ...], dict[str, Any]] = {_key(row, by): row for row in state.to_pylist()}
    for row in events.select(by).to_pylist():
        known = seen.setdefault(_key(row, by), {**row, counted: 0})
        known[counted] += 1
    return events, pa.Table.from_pylist(list(seen.values()), state.schema)


def _key(row: dict[str, Any], by: list[str]) -> tuple[Any, ...]:
    """Equal where keys are: NaN is NaN, and 0.0 is -0.0."""
    return tuple("NaN" if row[name] != row[name] else row[name] for name in by)
