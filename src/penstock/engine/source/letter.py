"""Dead letters: events that were not let into a stream, each with the reason, in one common form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import pyarrow as pa

from penstock.pattern.types import value_to_json

DEAD_LETTER_SCHEMA = pa.schema(
    [
        ("stream", pa.string()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("event", pa.string()),
        ("file", pa.string()),
        ("row", pa.int64()),
        ("time", pa.timestamp("us")),
    ]
)

LATE = "late"
FORBIDDEN = "forbidden"
MALFORMED = "malformed"
AHEAD = "ahead"
UNREADABLE = "unreadable"
FAILED = "failed"


def letters(
    stream: str,
    file: str,
    reasons: str | Sequence[str],
    details: Sequence[str],
    events: Sequence[str],
    rows: Sequence[int],
    times: pa.Array | None = None,
) -> pa.Table:
    """Dead letters of one file.

    >>> letters("traffic", "a.csv", MALFORMED, ["no number"], ['{"v": "x"}'], [3]).to_pylist()[0]["row"]
    3
    """
    n = len(details)
    given = [reasons] * n if isinstance(reasons, str) else list(reasons)
    if times is None or not pa.types.is_timestamp(times.type):
        times = pa.nulls(n, pa.timestamp("us"))
    columns = [[stream] * n, given, list(details), list(events), [file] * n, list(rows)]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, DEAD_LETTER_SCHEMA)]
    return pa.table([*arrays, times], schema=DEAD_LETTER_SCHEMA)


def no_letters() -> pa.Table:
    return DEAD_LETTER_SCHEMA.empty_table()


def join_letters(parts: Iterable[pa.Table]) -> pa.Table:
    found = [p for p in parts if p.num_rows]
    return pa.concat_tables(found) if found else no_letters()


def event_texts(table: pa.Table) -> list[str]:
    """Each row as JSON text.

    >>> event_texts(pa.table({"id": [4], "v": pa.array([None], pa.float64())}))
    ['{"id": 4, "v": null}']
    """
    return [_event_text(event) for event in table.to_pylist()]


def temporal_texts(table: pa.Table) -> pa.Table:
    """The table with moments that Python cannot hold, too fine or too far, as texts."""
    for i, field in enumerate(table.schema):
        column = table.column(i)
        fine = pa.types.is_timestamp(field.type) and field.type.unit == "ns"
        if fine or (pa.types.is_temporal(field.type) and _is_far(column)):
            table = table.set_column(i, field.name, column.cast(pa.string()))
    return table


def _is_far(column: pa.ChunkedArray) -> bool:
    try:
        column.to_pylist()
    except (ValueError, OverflowError):
        return True
    return False


def _event_text(event: dict[str, object]) -> str:
    try:
        plain = {k: value_to_json(v) for k, v in event.items()}  # type: ignore[arg-type]
        return json.dumps(plain, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        return json.dumps({k: str(v) for k, v in event.items()}, ensure_ascii=False)
