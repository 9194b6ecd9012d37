"""Reading CSV and JSON lines: fast while the text is as declared, exact about the rows that are not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.json as arrow_json

from penstock.engine.source.formats.fit import Mask
from penstock.engine.source.formats.header import read_header, require_columns
from penstock.engine.source.formats.rows import RowsRead
from penstock.engine.source.formats.textcast import cast_texts
from penstock.engine.source.place import first_line, locate
from penstock.engine.source.promises.in_band import PUNCTUATION, BandColumns
from penstock.engine.source.split import Split
from penstock.errors import UnreadableError
from penstock.kernels.index import whole
from penstock.kernels.ticks import Ticks
from penstock.pattern.schema import Attribute, Schema

# Types that the JSON reader converts exactly as `cast_texts` does; the others are read as text.
_NATIVE = {pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float64(), pa.bool_(), pa.string()}


def _bytes(split: Split) -> bytes:
    place = locate(split.path)
    with place.filesystem.open_input_file(place.path) as handle:
        handle.seek(split.start)
        return bytes(handle.read(split.stop - split.start))


def _rows_before(split: Split, first_byte: int) -> int:
    """How many lines come before a split: counted only when a row has to be named."""
    place = locate(split.path)
    lines, at = 0, first_byte
    with place.filesystem.open_input_file(place.path) as handle:
        handle.seek(first_byte)
        while at < split.start and (block := handle.read(min(1 << 24, split.start - at))):
            lines += block.count(b"\n")
            at += len(block)
    return lines


def _with_band(schema: Schema, band: BandColumns | None) -> Schema:
    """The columns to read: those of events, and those that make a record a punctuation."""
    if band is None:
        return schema
    return schema.extend([Attribute(band.column, pa.string()), *band.beside])


def _found(band: BandColumns | None, names: Sequence[str]) -> BandColumns | None:
    """The columns of punctuation that a file has."""
    if band is None or band.column not in names:
        return None
    return replace(band, beside=tuple(a for a in band.beside if a.name in names))


def read_csv(split: Split, schema: Schema, in_band: BandColumns | None, options: Mapping[str, Any]) -> RowsRead:
    """Rows of a CSV split. Every field is read as text, then converted: one way, whatever the text holds."""
    delimiter = str(options.get("delimiter", ","))
    header = bool(options.get("header", True))
    names, first_byte = read_header(split.path, delimiter) if header else (list(schema.names), 0)
    if not names:
        why = "its first line is empty"
        hint = "the first line has to name the columns"
        raise UnreadableError(split.stream, split.path, split.size, split.mtime_ns, why, hint=hint)
    if in_band is not None and not header:
        names.append(in_band.column)  # without a header the punctuation is the last column
    require_columns(split.stream, split.path, names, schema, delimiter)
    unheard = in_band is None and PUNCTUATION in names and PUNCTUATION not in schema
    in_band = _found(in_band, names)
    wanted = _with_band(schema, in_band)
    ragged: list[tuple[int | None, str, str]] = []

    def keep(row: Any) -> str:
        ragged.append((row.number, f"{row.actual_columns} fields for {row.expected_columns} columns", row.text))
        return "skip"

    data = _bytes(split)
    valid, undecodable = _decodable(data)
    null = str(options.get("null", ""))
    try:
        texts = csv.read_csv(
            pa.BufferReader(valid),
            read_options=csv.ReadOptions(use_threads=False, column_names=names, block_size=_block_size(valid)),
            parse_options=csv.ParseOptions(
                delimiter=delimiter,
                newlines_in_values=bool(options.get("multiline", False)),
                invalid_row_handler=keep,
            ),
            convert_options=csv.ConvertOptions(
                include_columns=list(wanted.names),
                column_types={n: pa.string() for n in wanted.names},
                null_values=[null],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        raise UnreadableError(
            split.stream,
            split.path,
            split.size,
            split.mtime_ns,
            f"it is not CSV: {first_line(error)}",
            hint="quotes that never close? Values with newlines need multiline=True",
        ) from None
    typed = _typed(schema, in_band)
    table, bad, reasons = cast_texts({n: texts.column(n) for n in typed.names}, typed)
    if undecodable:
        bad, reasons = _blame(texts, bad, reasons, "\ufffd", "text is not valid UTF-8")
    if b"\0" in data:
        bad, reasons = _blame(texts, bad, reasons, "\0", "text has zero bytes, as damaged files have")
    total = texts.num_rows + len(ragged)
    first = _rows_before(split, first_byte) if split.start > first_byte else 0
    numbers: Ticks | None = None
    if ragged:
        taken = np.array([(n if n is not None else total) - 1 for n, _, _ in ragged], np.int64)
        numbers = np.setdiff1d(np.arange(total, dtype=np.int64), taken) + first
    outcast = tuple(
        ((n if n is not None else total) - 1 + first, f"{why}", json.dumps(text, ensure_ascii=False))
        for n, why, text in ragged
    )

    def raw(positions: Sequence[int]) -> list[str]:
        return [json.dumps(row, ensure_ascii=False) for row in texts.take(pa.array(positions, pa.int64())).to_pylist()]

    band = texts.column(in_band.column) if in_band is not None else None
    aside = _beside(table, in_band)
    return RowsRead(table.select(schema.names), first, band, bad, reasons, raw, numbers, outcast, aside, unheard)


def _typed(schema: Schema, band: BandColumns | None) -> Schema:
    """The columns with a type of their own: attributes and companions."""
    return schema.extend(band.beside) if band is not None and band.beside else schema


def _beside(table: pa.Table, band: BandColumns | None) -> dict[str, pa.ChunkedArray]:
    return {a.name: table.column(a.name) for a in band.beside} if band is not None else {}


def _block_size(data: bytes) -> int:
    # One block, so that no row straddles two; the reader's limit is a signed 32-bit size.
    return min(max(len(data) + 1, 1 << 10), (1 << 31) - 1)


def _decodable(data: bytes) -> tuple[bytes, bool]:
    """The data as valid UTF-8; whether something had to be replaced for that."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("utf-8", errors="replace").encode("utf-8"), True
    return data, False


def _blame(
    texts: pa.Table, bad: Mask | None, reasons: dict[int, str], sign: str, why: str
) -> tuple[Mask, dict[int, str]]:
    """The rows that have a sign of damage are bad, too."""
    mask = np.zeros(texts.num_rows, bool) if bad is None else bad
    for column in texts.columns:
        found = pc.match_substring(column, sign).fill_null(False).to_numpy()
        for i in np.flatnonzero(found).tolist():
            reasons.setdefault(i, why)
        mask = mask | found
    return mask, reasons


@dataclass(frozen=True)
class Lines:
    """The lines of a split: where in the data each begins, and the number of the first in the file.

    `replaced`: something in them was no text.
    """

    data: bytes
    starts: Ticks
    first: int
    replaced: bool

    @classmethod
    def of(cls, split: Split) -> Self:
        data, replaced = _decodable(_bytes(split))
        return cls(data, _line_starts(data), _rows_before(split, 0) if split.start else 0, replaced)

    @property
    def texts(self) -> pa.Array:
        return pa.LargeStringArray.from_buffers(
            len(self.starts) - 1, pa.py_buffer(self.starts), pa.py_buffer(self.data)
        )


def read_json(split: Split, schema: Schema, in_band: BandColumns | None) -> RowsRead:
    """Rows of a split of JSON lines: one object per line, attributes by name, others ignored."""
    lines = Lines.of(split)
    wanted = _with_band(schema, in_band)
    texts = None if lines.replaced else _plain_objects(lines.data, lines.starts, wanted)
    if texts is not None:
        return _from_objects(texts, schema, in_band, lines.data, lines.starts, lines.first)
    return _from_lines(lines.texts, schema, wanted, in_band, lines.first)


def _line_starts(data: bytes) -> Ticks:
    """Where each line begins, and the end of the data."""
    buffer = np.frombuffer(data, np.uint8)
    starts = np.concatenate([[0], np.flatnonzero(buffer == 10) + 1]).astype(np.int64)
    return starts if starts[-1] == len(data) else np.append(starts, len(data))


def _plain_objects(data: bytes, starts: Ticks, wanted: Schema) -> pa.Table | None:
    """The lines by the fast reader, or None if it does not take all of them as they are."""
    lines = len(starts) - 1
    if lines:
        # A line that is `null` crashes the reader and the process with it (apache/arrow#47409). It also reads on over
        # line ends, so that two objects on one line and one object on two could make up for each other in the count.
        buffer = np.frombuffer(data, np.uint8)
        ends = starts[1:] - 1
        ends = np.where(buffer[ends] == ord("\n"), np.maximum(ends - 1, 0), ends)
        if not bool(((buffer[starts[:-1]] == ord("{")) & (buffer[ends] == ord("}"))).all()):
            return None
    types = pa.schema([(a.name, a.type if a.type in _NATIVE else pa.string()) for a in wanted])
    try:
        table = arrow_json.read_json(
            pa.BufferReader(data),
            read_options=arrow_json.ReadOptions(use_threads=False, block_size=_block_size(data)),
            parse_options=arrow_json.ParseOptions(explicit_schema=types, unexpected_field_behavior="ignore"),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return table if table.num_rows == lines else None


def _from_objects(
    read: pa.Table, schema: Schema, in_band: BandColumns | None, data: bytes, starts: Ticks, first: int
) -> RowsRead:
    typed = _typed(schema, in_band)
    foreign = [a.name for a in typed if a.type not in _NATIVE]
    bad: Mask | None = None
    reasons: dict[int, str] = {}
    columns = {n: read.column(n) for n in typed.names}
    if foreign:
        converted, bad, reasons = cast_texts({n: columns[n] for n in foreign}, typed.select(foreign))
        columns.update({n: converted.column(n) for n in foreign})
    table = pa.table([columns[n] for n in typed.names], schema=typed.arrow)

    def raw(positions: Sequence[int]) -> list[str]:
        return [data[starts[i] : starts[i + 1]].decode("utf-8").strip() for i in positions]

    band = read.column(in_band.column) if in_band is not None else None
    return RowsRead(table.select(schema.names), first, band, bad, reasons, raw, beside=_beside(table, in_band))


def json_paths(names: Sequence[str]) -> str:
    """The fields of an object by name, as a list in SQL.

    >>> json_paths(["id", "a/b"])
    "['/id', '/a~1b']"
    """
    paths = [f"/{n.replace('~', '~0').replace('/', '~1')}".replace("'", "''") for n in names]
    return "[" + ", ".join(f"'{p}'" for p in paths) + "]"


def _from_lines(lines: pa.Array, schema: Schema, wanted: Schema, in_band: BandColumns | None, first: int) -> RowsRead:
    """Line by line in the database: a bad line spoils itself only."""
    source = pa.table({"line": lines})
    connection = duckdb.connect(config={"threads": 1})
    try:
        connection.register("source", source)
        found = connection.sql(
            "SELECT trim(line, ' \t\r\n') = '' AS blank, ok, "
            f"CASE WHEN ok THEN json_extract_string(line, {json_paths(wanted.names)}) END AS texts "
            "FROM (SELECT line, coalesce(CASE WHEN json_valid(line) THEN json_type(line) = 'OBJECT' END, false) AS ok "
            "FROM source)"
        ).to_arrow_table()
    finally:
        connection.close()
    blank = found.column("blank").to_numpy()
    present = np.flatnonzero(~blank)
    found, line_of = found.take(pa.array(present)), lines.take(pa.array(present))
    ok = found.column("ok").to_numpy()
    columns = {n: nth(found.column("texts"), i, len(wanted)) for i, n in enumerate(wanted.names)}
    typed = _typed(schema, in_band)
    table, bad, reasons = cast_texts({n: columns[n] for n in typed.names}, typed)
    mask = ~ok if bad is None else bad | ~ok
    for i in np.flatnonzero(~ok).tolist():
        reasons[i] = "not a JSON object"
    unread = pc.match_substring(line_of, "\ufffd").to_numpy(zero_copy_only=False)
    for i in np.flatnonzero(unread & ok).tolist():
        reasons.setdefault(i, "text is not valid UTF-8")
    mask = mask | unread

    def raw(positions: Sequence[int]) -> list[str]:
        texts = [str(t).strip() for t in line_of.take(pa.array(positions, pa.int64())).to_pylist()]
        return [t if ok[i] else json.dumps(t, ensure_ascii=False) for i, t in zip(positions, texts)]

    band = columns[in_band.column] if in_band is not None else None
    numbers = present + first if len(present) < len(blank) else None
    return RowsRead(
        table.select(schema.names), first, band, mask, reasons, raw, numbers, beside=_beside(table, in_band)
    )


def nth(lists: pa.ChunkedArray, index: int, width: int) -> pa.ChunkedArray:
    """The n-th text of every list; null where the list is."""
    array = whole(lists)
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    position = np.cumsum(valid) - 1
    picks = pa.array(np.where(valid, position * width + index, 0), mask=~valid)
    return pa.chunked_array([array.flatten().take(picks)])
