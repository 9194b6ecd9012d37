"""Events that hold for a time, one by one: when each begins to matter, or why it cannot be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.pattern.schema import SYNC
from penstock.plan.promise import Lifetime
from penstock.plan.weight import GONE, HOLDS


def lasting(life: Lifetime, row: Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
    """The event with its sync time; and what is wrong with it.

    >>> life = Lifetime("a", "b", new_end="c")
    >>> lasting(life, {"a": 3, "b": None, "c": 7})
    ({'a': 3, 'b': None, 'c': 7, '_sync': 7}, None)
    >>> lasting(life, {"a": 3, "b": 5, "c": 5})[1]
    'its new end 5 is not from 3 to before 5'
    """
    start, end = row[life.start], row[life.end]
    new = row[life.new_end] if life.new_end else None
    gone = new is not None
    if life.kind:
        said = row[life.kind]
        word = "" if said is None else str(said).strip().lower()
        if word not in (*GONE, *HOLDS):
            return {**row, SYNC: start}, f"no kind of change: {'null' if said is None else said}"
        gone = word in GONE
    if start is None:
        return {**row, SYNC: None}, f"its lifetime has no start: '{life.start}' is null"
    if end is not None and end <= start:
        return {**row, SYNC: start}, f"its lifetime ends before it begins: from {start} to {end}"
    if not gone:
        return {**row, SYNC: start}, None
    new = start if new is None else new
    if new < start or (end is not None and new >= end):
        shown = "null" if end is None else end
        return {**row, SYNC: new}, f"its new end {new} is not from {start} to before {shown}"
    return {**row, SYNC: new}, None
