"""What a lookup does about feedback."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from penstock.operators.lookup.operator import TableJoin
from penstock.pattern.pattern import Pattern
from penstock.plan.response import Response
from penstock.plan.responses import before
from penstock.plan.upwards import passes_at_once


def respond_lookup(operator: TableJoin, pattern: Pattern) -> Response:
    """What is said of the table is said of keys, but for no longer than the table stays as it is."""
    hindered = obstacle(operator)
    from_table = f"from table '{operator.table.name}'" + (f": {hindered}" if hindered else "")
    found = before(operator, pattern, _of_stream(operator), from_table)
    return replace(found, anew=found.output and not hindered)


def _of_stream(operator: TableJoin) -> dict[str, str]:
    """The output attributes that a result has from its event, in every result.

    That of a key column is the event's own, unless there is no row: then it is null, and the event must not go.
    """
    keys = {b: a for a, b in operator.keys}
    names = {}
    for column in operator.columns:
        if len(column.origins) > 1:
            continue
        ((side, name),) = column.origins
        if side == 0:
            names[column.name] = name
        elif operator.how == "inner" and name in keys:
            names[column.name] = keys[name]
    return names


def obstacle(operator: TableJoin) -> str:
    """Why what is said of a table's columns cannot be said of keys, before the lookup; empty if it can.

    Results whose zone is 'harbour' are those of the segments that the table says are in the harbour. But a table
    changes, so that holds for one state of it: for the events of one epoch, as long as nothing on their way to the
    lookup keeps them for a later one.

    >>> from penstock.operators.source.operator import Source
    >>> from penstock.pattern.schema import Schema
    >>> from penstock.builder.lookup import lookup
    >>> from penstock.plan.table import table
    >>> cars = Source((), Schema.parse("ts int, segment int", "ts"), name="cars")
    >>> zones = table("zones", "segment int, zone string, since int", key="segment", version="since").read_csv("zones")
    >>> obstacle(lookup(cars, zones)), obstacle(lookup(cars, zones, how="left"))
    ('', 'before its first version an event has no row, and is wanted')
    """
    below = operator.inputs[0]
    if not passes_at_once(below):
        return f"what {below.word} keeps may meet another state of it"
    if any(pa.types.is_floating(below.schema.type_of(a)) for a, _ in operator.keys):
        return "keys that are floating numbers are not listed"
    if operator.how == "left" and operator.as_of is not None:
        return "before its first version an event has no row, and is wanted"
    return ""
