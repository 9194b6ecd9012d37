"""What a lookup does about feedback."""

from __future__ import annotations

from dataclasses import replace

from penstock.operators.lookup.invertible import obstacle
from penstock.operators.lookup.operator import TableJoin
from penstock.pattern.pattern import Pattern
from penstock.plan.response import Response
from penstock.plan.responses import before


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
