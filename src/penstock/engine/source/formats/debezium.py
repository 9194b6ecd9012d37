"""Change data as Debezium writes it: a record for each change, with the row before it and the row after it.

Each record becomes the events that it tells of: the row before with the kind `-`, the row after with the kind `+`.
Attributes are those of the row, but for the time of the change (`ts_ms`), which stands beside it. A record that does
not say what it must is one dead letter, whole: half an update would be a wrong table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.engine.source.formats.fit import Fit, Mask, convert, fit, misfit_text
from penstock.engine.source.formats.rows import RowsRead
from penstock.engine.source.formats.text import Lines, json_paths, nth
from penstock.engine.source.formats.textcast import cast_texts
from penstock.engine.source.place import locate
from penstock.engine.source.split import Split
from penstock.errors import SchemaError, did_you_mean
from penstock.kernels.index import whole
from penstock.kernels.ticks import Ticks
from penstock.pattern.schema import Schema
from penstock.pattern.types import type_text
from penstock.plan.promise import CHANGE, STAMPS

_TOMBSTONE = "a tombstone: it changes nothing that the deletion before it has not changed"
#: The columns of a record that say what has changed.
_ENVELOPE = ("op", "before", "after", "payload", *STAMPS)
_NO_BEFORE = "without `before`, so nobody knows which row it was; name a key: changes(debezium=True, key=…)"


@dataclass(frozen=True)
class Records:
    """What records say of their rows. `broken` are those that cannot be read at all, and why."""

    operations: pa.Array
    has_before: Mask
    has_after: Mask
    broken: dict[int, str]


@dataclass(frozen=True)
class Events:
    """Which events there are: of which record each, and whether its row is the one after the change."""

    record: Ticks
    after: Mask
    bad: dict[int, str]


def events_of(records: Records, keyed: bool) -> Events:
    """The events that records tell of, the row that goes before the one that comes.

    With a key nothing is taken back here: what goes is what was last told of the key.

    >>> yes, no = np.array([True, True, True]), np.array([False, True, False])
    >>> found = events_of(Records(pa.array(["c", "u", "x"]), no, yes, {}), keyed=False)
    >>> found.record.tolist(), found.after.tolist(), found.bad
    ([0, 1, 1], [True, False, True], {2: "op 'x' is no change of a row: c, r, u or d"})
    """
    said, bad = records.operations, dict(records.broken)
    comes, goes = (_among(said, some) for some in (["c", "r", "u"], ["d"] if keyed else ["u", "d"]))
    for i in np.flatnonzero(~comes & ~goes).tolist():
        op = said[i].as_py()
        bad.setdefault(i, "no `op`" if op is None else f"op '{op}' is no change of a row: c, r, u or d")
    for i in np.flatnonzero(comes & ~records.has_after).tolist():
        bad.setdefault(i, f"op '{said[i].as_py()}' without `after`")
    for i in np.flatnonzero(goes & ~records.has_before).tolist():
        bad.setdefault(i, f"op '{said[i].as_py()}' {'without `before`' if keyed else _NO_BEFORE}")
    sound = np.ones(len(said), bool)
    sound[list(bad)] = False
    both = np.column_stack([goes & sound, comes & sound]).ravel()
    at = np.flatnonzero(both)
    return Events(at // 2, at % 2 == 1, bad)


def read_debezium(split: Split, schema: Schema, *, keyed: bool) -> RowsRead:
    """The events of the records of a split."""
    if split.format == "json":
        lines = Lines.of(split)
        return _from_lines(lines.texts, schema, lines.first, keyed)
    place = locate(split.path)
    with place.filesystem.open_input_file(place.path) as handle, pq.ParquetFile(handle) as file:
        names = [n for n in file.schema_arrow.names if n in _ENVELOPE]
        table = file.read_row_groups(list(split.row_groups), columns=names, use_threads=False)
        first = sum(file.metadata.row_group(i).num_rows for i in range(split.row_groups[0]))
    table = table.slice(split.start - first, split.stop - split.start)
    return _from_structs(table, schema, split.start, keyed, f"stream '{split.stream}': file '{split.path}'")


def _from_lines(lines: pa.Array, schema: Schema, first: int, keyed: bool) -> RowsRead:
    """The events of lines of JSON, with or without the envelope `payload`."""
    names = [n for n in schema.names if n != CHANGE]
    listed = json_paths(names)
    sides = ", ".join(
        f"json_extract_string({side}, {listed}) AS {name}"
        for name, side in (("b", "before"), ("a", "after"), ("e", "record"))
    )
    sql = f"""
        WITH read AS (SELECT line, trim(line, ' \t\r\n') AS text FROM source),
        known AS (SELECT *, coalesce(CASE WHEN json_valid(text) THEN json_type(text) END, '') AS kind FROM read),
        opened AS (
            SELECT *, CASE WHEN kind <> 'OBJECT' THEN NULL WHEN json_type(text, '/payload') IN ('OBJECT', 'NULL')
                THEN json_extract(text, '/payload') ELSE json(text) END AS record FROM known
        ),
        apart AS (
            SELECT *, json_extract(record, '/before') AS before, json_extract(record, '/after') AS after FROM opened
        )
        SELECT text = '' AS blank, kind, json_type(record) AS within, json_extract_string(record, '/op') AS op,
            coalesce(json_type(before) = 'OBJECT', false) AS has_before,
            coalesce(json_type(after) = 'OBJECT', false) AS has_after, {sides}
        FROM apart"""
    connection = duckdb.connect(config={"threads": 1})
    try:
        connection.register("source", pa.table({"line": lines}))
        found = connection.sql(sql).to_arrow_table()
    finally:
        connection.close()
    present = np.flatnonzero(~found.column("blank").to_numpy())
    found, texts = found.take(pa.array(present)), lines.take(pa.array(present))
    kind = found["kind"]
    nothing = pc.or_(pc.equal(kind, "NULL"), pc.fill_null(pc.equal(found["within"], "NULL"), False))
    signs = (
        (nothing, _TOMBSTONE),
        (pc.not_equal(kind, "OBJECT"), "not a JSON object"),
        (pc.match_substring(texts, "\ufffd"), "text is not valid UTF-8"),
    )
    broken: dict[int, str] = {}
    for mask, why in signs:
        for i in np.flatnonzero(np.asarray(mask)).tolist():
            broken.setdefault(i, why)
    has_before, has_after = (found.column(c).to_numpy() for c in ("has_before", "has_after"))
    events = events_of(Records(whole(found["op"]), has_before, has_after, broken), keyed)

    def column(name: str) -> pa.ChunkedArray:
        sides = "e" if name in STAMPS else "ba"
        return _chosen([nth(found[side], names.index(name), len(names)) for side in sides], events)

    typed = schema.select(names)
    table, bad, reasons = cast_texts({n: column(n) for n in names}, typed)

    def raw(record: int) -> str:
        text = str(texts[record]).strip()
        return text if kind[record].as_py() in ("OBJECT", "NULL") else json.dumps(text, ensure_ascii=False)

    return _assembled(table, schema, events, bad, reasons, present + first, raw)


def _from_structs(table: pa.Table, schema: Schema, first: int, keyed: bool, what: str) -> RowsRead:
    """The events of records with columns for `op` and for the rows, with or without the envelope `payload`."""
    if "payload" in table.column_names and pa.types.is_struct(table.schema.field("payload").type):
        payload = whole(table["payload"])
        gone = np.asarray(payload.is_null())
        inside = _fields(payload)
    else:
        gone = np.zeros(table.num_rows, bool)
        inside = {n: whole(table[n]) for n in table.column_names}
    for name in ("op", "before", "after"):
        if name not in inside or (name != "op" and not _is_row(inside[name].type)):
            raise SchemaError(
                f"{what} has no {'row' if name != 'op' else 'column'} `{name}`",
                hint="changes(debezium=True) reads records with `op`, `before` and `after`; of flattened ones"
                " changes('op', key=…)",
            )
    rows = [inside["before"], inside["after"]]
    masks = [np.asarray(r.is_valid()) for r in rows]
    broken = dict.fromkeys(np.flatnonzero(gone).tolist(), _TOMBSTONE)
    records = Records(inside["op"].cast(pa.string()), masks[0], masks[1], broken)
    events = events_of(records, keyed)
    columns: dict[str, pa.ChunkedArray] = {}
    bad: Mask | None = None
    reasons: dict[int, str] = {}
    for attribute in schema:
        name = attribute.name
        if name == CHANGE:
            continue
        sides = [inside] if name in STAMPS else [_fields(r) for r in rows]
        sources = [side.get(name) for side in sides]
        kind = next((s.type for s in sources if s is not None), None)
        if kind is None:
            raise SchemaError(f"{what} has no '{name}' in its rows", hint=did_you_mean(name, sides[-1]))
        if fit(kind, attribute.type) is Fit.NEVER:
            raise SchemaError(
                f"{what}: '{name}' is {kind}, declared {type_text(attribute.type)}",
                hint="correct the declaration, or cast the column when the file is written",
            )
        nothing = pa.nulls(table.num_rows, kind)
        found = _chosen([pa.chunked_array([nothing if s is None else s]) for s in sources], events)
        columns[name], wrong = convert(found, attribute.type)
        if wrong is not None:
            bad = wrong if bad is None else bad | wrong
            for i in np.flatnonzero(wrong).tolist():
                reasons.setdefault(i, f"'{name}' {misfit_text(kind, attribute.type)}")
    numbers = np.arange(table.num_rows, dtype=np.int64) + first

    def raw(record: int) -> str:
        return json.dumps(table.slice(record, 1).to_pylist()[0], ensure_ascii=False, default=str)

    return _assembled(pa.table(columns), schema, events, bad, reasons, numbers, raw)


def _assembled(
    table: pa.Table,
    schema: Schema,
    events: Events,
    bad: Mask | None,
    reasons: dict[int, str],
    numbers: Ticks,
    raw: Callable[[int], str],
) -> RowsRead:
    """The events of records in which nothing is wrong; the others are dead letters, each once."""
    outcast = dict(events.bad)
    for name in schema.times:
        for i in np.flatnonzero(np.asarray(table[name].is_null())).tolist():
            reasons.setdefault(i, f"time attribute '{name}' is null")
    for i in sorted(reasons):
        outcast.setdefault(int(events.record[i]), reasons[i])
    kinds = pa.array(["-", "+"]).take(pa.array(events.after.astype(np.int64)))
    told = pa.table({**{n: table[n] for n in table.column_names}, CHANGE: kinds}).select(schema.names)
    record = events.record
    if outcast:
        kept = ~np.isin(record, list(outcast))
        told, record = told.filter(pa.array(kept)), record[kept]
    letters = tuple((int(numbers[i]), outcast[i], raw(i)) for i in sorted(outcast))
    first = int(numbers[0]) if len(numbers) else 0
    return RowsRead(told.cast(schema.arrow), first, numbers=numbers[record], outcast=letters)


def _chosen(sides: Sequence[pa.ChunkedArray], events: Events) -> pa.ChunkedArray:
    """The value of each event, of the record or of its row before and after."""
    size = len(sides[0])
    at = events.record if len(sides) == 1 else events.after * size + events.record
    return pa.chunked_array([c for s in sides for c in s.chunks], sides[0].type).take(pa.array(at, pa.int64()))


def _among(said: pa.Array, some: Sequence[str]) -> Mask:
    return np.asarray(pc.is_in(said, pa.array(some, pa.string())))


def _is_row(t: pa.DataType) -> bool:
    return bool(pa.types.is_struct(t) or pa.types.is_null(t))


def _fields(row: pa.Array) -> dict[str, pa.Array]:
    """The columns of rows, null where there is no row."""
    return {f.name: pc.struct_field(row, f.name) for f in row.type} if pa.types.is_struct(row.type) else {}
