"""Whether what is said of a table's columns can be said of keys, before the lookup.

Results whose zone is 'harbour' are those of the segments that the table says are in the harbour. But a table changes,
so that holds for one state of it: for the events of one epoch, as long as nothing on their way to the lookup keeps them
for a later one.
"""

from __future__ import annotations

import pyarrow as pa

from penstock.operators.lookup.operator import TableJoin
from penstock.plan.at_once import passes_at_once


def obstacle(operator: TableJoin) -> str:
    """Why nothing can be said of the keys of a lookup; empty if something can.

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
        return f"what {below.kind} keeps may meet another state of it"
    if any(pa.types.is_floating(below.schema.type_of(a)) for a, _ in operator.keys):
        return "keys that are floating numbers are not listed"
    if operator.how == "left" and operator.as_of is not None:
        return "before its first version an event has no row, and is wanted"
    return ""
