"""What operators note of the events that pass them in one task: how far time has got, how many there were, what was
dropped. The driver learns it from the reports and decides between epochs what follows from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.engine.source.letter import DEAD_LETTER_SCHEMA, FAILED, PACED
from penstock.engine.source.ticks import from_tick
from penstock.errors import FailingError
from penstock.kernels.duck import query, quote
from penstock.kernels.failing import Failed
from penstock.operators.pace.kernel import pace
from penstock.operators.pace.operator import Pace
from penstock.pattern.duration import format_duration
from penstock.pattern.schema import Attribute, Schema
from penstock.plan.plan import Node

#: Beside events, while it is found out on which of them an expression fails: the file they come from.
FILE = "__file"
_SAID = "__said"


@dataclass
class Watch:
    """The notes of one task: by operator the greatest time or the number of events, and dead letters."""

    seen: dict[str, int] = field(default_factory=dict)
    letters: list[pa.Table] = field(default_factory=list)
    #: What becomes of an event on which an expression fails.
    on_error: str = "reject"

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

    def failed(self, operator_id: str, schema: Schema, failed: Iterable[Failed]) -> None:
        """Events, pairs or groups on which an expression fails become dead letters, or stop the run."""
        for some in failed:
            letters = failed_letters(operator_id, schema, some)
            if self.on_error == "fail":
                first = letters.slice(0, 1).to_pylist()[0]
                where = f" (file '{first['file']}')" if first["file"] else ""
                raise FailingError(
                    f"{operator_id}: {first['detail']}, for the event {first['event']}{where}",
                    hint="fix the expression or the input, or choose on_error='reject' to set such events aside",
                )
            self.letters.append(letters)

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


def failed_letters(operator_id: str, schema: Schema, failed: Failed) -> pa.Table:
    """Dead letters of events on which an expression fails; of a schema, what the rows have of it is shown."""
    present = [a for a in schema if a.name in failed.rows.column_names]
    timed = (a.name for a in present if a.name in schema.times and pa.types.is_timestamp(a.type))
    time = next(timed, None)
    said = [f"{failed.text} fails{f': {why}' if why else ''}" for why in failed.reasons]
    rows = failed.rows.append_column(_SAID, pa.array(said, pa.string()))
    letters = query(
        f"""
        SELECT {_text(operator_id)} AS stream, {_text(FAILED)} AS reason, {quote(_SAID)} AS detail,
               {_json(present)} AS event,
               {quote(FILE) if FILE in rows.column_names else "''"} AS file, CAST(NULL AS BIGINT) AS row,
               {"CAST(NULL AS TIMESTAMP)" if time is None else quote(time)} AS time
        FROM failed
        """,
        failed=rows,
    )
    return letters.cast(DEAD_LETTER_SCHEMA)


def _json(attributes: Iterable[Attribute]) -> str:
    """An event as JSON text, with values as `value_to_json` writes them."""
    parts = []
    for attribute in attributes:
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
