"""Text to declared types, all rows at once, with the rows that do not parse set aside instead of failing the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.source.formats.fit import FINER, Mask
from penstock.errors import a
from penstock.pattern.schema import Schema
from penstock.pattern.types import duckdb_type, type_text

# DuckDB's casts are generous: '1.5' becomes the integer 2, 'infinity' a date, an offset of time zone is ignored.
# What is not written plainly is malformed here, so each type says first how its values look.
_WHOLE = r"[+-]?\d+"
_REAL = r"(?i)[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?"
_SPECIAL = r"(?i)[+-]?(nan|inf|infinity)"
_DECIMAL = r"[+-]?(\d+\.?\d*|\.\d+)"
_TRUTH = r"(?i)true|false"
_DATE = r"\d{4}-\d{1,2}-\d{1,2}"
_CLOCK = r"\d{4}-\d{1,2}-\d{1,2}([ T]\d{1,2}:\d{2}(:\d{2}(\.\d{1,6}0*)?)?)?"
_FINER = re.compile(r".*:\d{2}\.\d{6}\d*[1-9]\d*(\s*(Z|[+-][\d:]+))?\s*")
_ZONED = _CLOCK + r" ?(Z|[+-]\d{2}(:?\d{2})?)"


def cast_texts(
    texts: Mapping[str, pa.Array | pa.ChunkedArray], schema: Schema
) -> tuple[pa.Table, Mask | None, dict[int, str]]:
    """Columns of text in their declared types; a mask of the rows with text that does not parse, and why.

    >>> s = Schema.parse("id int, v double")
    >>> table, bad, why = cast_texts({"id": pa.array(["1", "x"]), "v": pa.array(["2.5", None])}, s)
    >>> table.to_pylist()[0], bad.tolist(), why
    ({'id': 1, 'v': 2.5}, [False, True], {1: "'id' is not an int: 'x'"})
    """
    plain = {a.name: _plain(_chunked(texts[a.name]), a.type) for a in schema}
    found = {name: column for name, column in plain.items() if column is not None}
    hard = [name for name in schema.names if name not in found]
    if hard:
        found.update(_tolerant({name: texts[name] for name in hard}, schema.select(hard)))
    bad: Mask | None = None
    reasons: dict[int, str] = {}
    columns = []
    for attribute in schema:
        column, text = found[attribute.name], _chunked(texts[attribute.name])
        columns.append(column)
        if column.null_count == text.null_count:
            continue
        misfits = column.is_null().to_numpy() & text.is_valid().to_numpy()
        bad = misfits if bad is None else bad | misfits
        at = np.flatnonzero(misfits)
        for k, value in zip(at.tolist(), text.take(pa.array(at, pa.int64())).to_pylist()):
            what = f"is not {a(type_text(attribute.type))}"
            if pa.types.is_timestamp(attribute.type) and _FINER.fullmatch(value):
                what = FINER
            reasons.setdefault(k, f"'{attribute.name}' {what}: {value!r}")
    return pa.table(columns, schema=schema.arrow), bad, reasons


def _chunked(column: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def _plain(text: pa.ChunkedArray, t: pa.DataType) -> pa.ChunkedArray | None:
    """The column by Arrow's own conversion, ten times as fast, or None if it is not sure to agree with the rules."""
    if t == pa.string():
        return text.cast(t)
    if t == pa.bool_() or t == pa.binary():
        return None
    if pa.types.is_integer(t) and _any(pc.match_substring(text, "x", ignore_case=True)):
        return None  # would be taken for hexadecimal
    if pa.types.is_decimal(t) and _any(pc.match_substring(text, "e", ignore_case=True)):
        return None
    if pa.types.is_timestamp(t):
        ends = pc.ends_with(text, "Z")
        if _any(ends):
            if not pc.all(ends).as_py():
                return None
            text = pc.utf8_rtrim(text, "Z")
        length = pc.min_max(pc.utf8_length(text)).as_py()
        # A date alone, or hours and minutes at least: an hour alone is no time of day here.
        if (length["min"] != length["max"] and length["min"] < 16) or length["max"] in range(11, 16):
            return None
        if _any(ends) and length["max"] < 16:
            return None
    try:
        column = text.cast(t)
    except pa.ArrowInvalid:
        return None
    if pa.types.is_floating(t) and not pc.all(pc.is_finite(column)).as_py() and column.null_count < len(column):
        return None  # a number too large, or the word for infinity
    return column


def _any(mask: pa.ChunkedArray) -> bool:
    return bool(pc.any(mask).as_py())


def _tolerant(texts: Mapping[str, pa.Array | pa.ChunkedArray], schema: Schema) -> dict[str, pa.ChunkedArray]:
    """The columns by the database, null where the text is not plainly a value."""
    source = pa.table({f"c{i}": texts[a.name] for i, a in enumerate(schema)})
    casts = ", ".join(f"{_cast(f'c{i}', a.type)} AS c{i}" for i, a in enumerate(schema))
    connection = duckdb.connect(config={"threads": 1})
    try:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("source", source)
        found = connection.sql(f"SELECT {casts} FROM source").to_arrow_table()
    finally:
        connection.close()
    return {a.name: found.column(i).cast(a.type) for i, a in enumerate(schema)}


def _cast(column: str, t: pa.DataType) -> str:
    """A DuckDB expression: the value, or null if the text is not plainly one."""
    name = duckdb_type(t)
    if t == pa.string():
        return column
    if t == pa.binary():
        return f"encode({column})"
    trimmed = f"trim({column})"
    if t == pa.bool_():
        return _when(trimmed, _TRUTH, f"TRY_CAST({trimmed} AS {name})")
    if pa.types.is_integer(t):
        return _when(trimmed, _WHOLE, f"TRY_CAST({trimmed} AS {name})")
    if pa.types.is_floating(t):
        value = f"TRY_CAST({trimmed} AS {name})"
        finite = f"CASE WHEN isfinite({value}) THEN {value} END"
        return f"CASE WHEN {_like(trimmed, _REAL)} THEN {finite} WHEN {_like(trimmed, _SPECIAL)} THEN {value} END"
    if pa.types.is_decimal(t):
        # More digits after the point than declared would be rounded: allowed only if they are zeros.
        exact = rf"[+-]?\d*\.?\d{{0,{t.scale}}}0*" if t.scale else r"[+-]?\d*(\.0*)?"
        value = f"TRY_CAST({trimmed} AS {name})"
        return f"CASE WHEN {_like(trimmed, _DECIMAL)} AND {_like(trimmed, exact)} THEN {value} END"
    if t == pa.date32():
        return _when(trimmed, _DATE, f"TRY_CAST({trimmed} AS DATE)")
    # Behind the microseconds there are zeros only, which the database does not take.
    cut = rf"regexp_replace({trimmed}, '(\.\d{{6}})\d+', '\1')"
    zoned = f"CAST(TRY_CAST({cut} AS TIMESTAMPTZ) AS TIMESTAMP)"
    return (
        f"CASE WHEN {_like(trimmed, _CLOCK)} THEN TRY_CAST({cut} AS TIMESTAMP) "
        f"WHEN {_like(trimmed, _ZONED)} THEN {zoned} END"
    )


def _like(text: str, expression: str) -> str:
    return f"regexp_full_match({text}, '{expression}')"


def _when(text: str, expression: str, value: str) -> str:
    return f"CASE WHEN {_like(text, expression)} THEN {value} END"
