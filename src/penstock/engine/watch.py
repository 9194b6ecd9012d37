"""What operators note of the events that pass them in one task: how far time has got, how many there were, what was
dropped. The driver learns it from the reports and decides between epochs what follows from it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from penstock.algebra.duration import format_duration
from penstock.algebra.operator import Pace
from penstock.algebra.plan import Node
from penstock.algebra.schema import Schema
from penstock.engine.source.letter import DEAD_LETTER_SCHEMA, PACED
from penstock.engine.source.ticks import from_tick
from penstock.kernels.duck import query, quote
from penstock.kernels.pace import pace


@dataclass
class Watch:
    """The notes of one task: by operator the greatest time or the number of events, and dead letters."""

    seen: dict[str, int] = field(default_factory=dict)
    letters: list[pa.Table] = field(default_factory=list)

    def pace(self, node: Node, rows: pa.Table, floor: int | None) -> pa.Table:
        """The rows that are not too far behind; the others become dead letters."""
        assert isinstance(node.operator, Pace)
        found = pace(rows, node.operator.on, floor)
        if found.high is not None:
            self.seen[node.id] = max(found.high, self.seen.get(node.id, found.high))
        if found.dropped.num_rows:
            assert floor is not None
            self.letters.append(paced_letters(node.id, node.operator, found.dropped, floor))
        return found.passed

    def count(self, node: Node, rows: pa.Table) -> None:
        self.seen[node.id] = self.seen.get(node.id, 0) + rows.num_rows


def paced_letters(node_id: str, operator: Pace, dropped: pa.Table, floor: int) -> pa.Table:
    """Dead letters of events that were too far behind. Half a stream may be, so they are made column by column."""
    t = operator.schema.type_of(operator.on)
    timed = pa.types.is_timestamp(t)
    bound = format_duration(operator.bound) if timed else f"{operator.bound:,}"
    told = f" is more than {bound} behind the latest: before {from_tick(floor, t)}"
    on = quote(operator.on)
    rows = query(
        f"""
        SELECT {_text(node_id)} AS stream, {_text(PACED)} AS reason,
               {_text(operator.on + " ")} || CAST({on} AS VARCHAR) || {_text(told)} AS detail,
               {_json(operator.schema)} AS event, '' AS file, CAST(NULL AS BIGINT) AS row,
               {on if timed else "CAST(NULL AS TIMESTAMP)"} AS time
        FROM dropped
        """,
        dropped=dropped,
    )
    return rows.cast(DEAD_LETTER_SCHEMA)


def _json(schema: Schema) -> str:
    """An event as JSON text, with values as `value_to_json` writes them."""
    parts = []
    for attribute in schema:
        name = quote(attribute.name)
        if pa.types.is_timestamp(attribute.type):
            value = f"replace(CAST({name} AS VARCHAR), ' ', 'T')"
        elif pa.types.is_floating(attribute.type):
            value = f"CASE WHEN isfinite({name}) THEN to_json({name}) ELSE to_json(CAST({name} AS VARCHAR)) END"
        elif pa.types.is_decimal(attribute.type):
            value = f"CAST({name} AS VARCHAR)"
        elif pa.types.is_binary(attribute.type):
            value = f"base64({name})"
        else:
            value = name
        parts.append(f"{_text(attribute.name)}, {value}")
    return f"CAST(json_object({', '.join(parts)}) AS VARCHAR)"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
