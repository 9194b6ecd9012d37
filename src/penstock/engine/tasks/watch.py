"""What operators note of the events that pass them in one task: how far time has got, how many there were, what was
dropped. The driver learns it from the reports and decides between epochs what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.engine.source.letter import DEAD_LETTER_SCHEMA, FAILED
from penstock.errors import FailingError
from penstock.kernels.duck import literal, query, quote
from penstock.kernels.failing import Failed
from penstock.pattern.schema import Attribute, Schema

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

    def beside(self, node_id: str, told: int | None) -> Notebook:
        """What an operator notes its part in."""
        return Notebook(self, node_id, told)

    def failed(self, operator_id: str, schema: Schema, failed: Iterable[Failed]) -> None:
        """Events, pairs or groups on which an expression fails become dead letters, or stop the run."""
        for some in failed:
            made = failed_letters(operator_id, schema, some)
            if self.on_error == "fail":
                first = made.slice(0, 1).to_pylist()[0]
                where = f" (file '{first['file']}')" if first["file"] else ""
                raise FailingError(
                    f"{operator_id}: {first['detail']}, for the event {first['event']}{where}",
                    hint="fix the expression or the input, or choose on_error='reject' to set such events aside",
                )
            self.letters.append(made)


@dataclass(frozen=True)
class Notebook:
    """The notes of one operator in one task, and what it is told there."""

    watch: Watch
    node_id: str
    told: int | None = None

    def saw(self, value: int, together: Callable[[int, int], int]) -> None:
        """Note a number for the operator's behaviour; `together` makes one of two."""
        seen = self.watch.seen
        seen[self.node_id] = together(value, seen[self.node_id]) if self.node_id in seen else value

    def reject(self, rows: pa.Table, schema: Schema, reason: str, detail: str, time: str | None) -> None:
        """Make dead letters of events."""
        self.watch.letters.append(letters(self.node_id, rows, schema, reason, detail, time))


def letters(
    operator_id: str, rows: pa.Table, schema: Iterable[Attribute], reason: str, detail: str, time: str | None
) -> pa.Table:
    """Dead letters of events, made column by column: it may be half of a stream. `detail` is SQL over them."""
    made = query(
        f"""
        SELECT {literal(operator_id)} AS stream, {literal(reason)} AS reason, {detail} AS detail,
               {_json(schema)} AS event,
               {quote(FILE) if FILE in rows.column_names else "''"} AS file, CAST(NULL AS BIGINT) AS row,
               {"CAST(NULL AS TIMESTAMP)" if time is None else quote(time)} AS time
        FROM events
        """,
        events=rows,
    )
    return made.cast(DEAD_LETTER_SCHEMA)


def failed_letters(operator_id: str, schema: Schema, failed: Failed) -> pa.Table:
    """Dead letters of events on which an expression fails; of a schema, what the rows have of it is shown."""
    present = [a for a in schema if a.name in failed.rows.column_names]
    timed = (a.name for a in present if a.name in schema.times and pa.types.is_timestamp(a.type))
    time = next(timed, None)
    said = [f"{failed.text} fails{f': {why}' if why else ''}" if failed.text else why for why in failed.reasons]
    rows = failed.rows.append_column(_SAID, pa.array(said, pa.string()))
    return letters(operator_id, rows, present, FAILED, quote(_SAID), time)


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
        parts.append(f"{literal(attribute.name)}, {value}")
    return f"CAST(json_object({', '.join(parts)}) AS VARCHAR)"
