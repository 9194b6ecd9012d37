"""The first line of a CSV file: which columns it names, and whether they are the declared ones."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.csv as csv

from penstock.engine.source.place import locate
from penstock.errors import SchemaError, did_you_mean
from penstock.pattern.schema import Schema
from penstock.pattern.types import type_text

_BLOCK = 1 << 16


def read_header(path: str, delimiter: str) -> tuple[list[str], int]:
    """The names in the first line of a file, and where the events begin."""
    place = locate(path)
    with place.filesystem.open_input_file(place.path) as handle:
        line = b""
        while b"\n" not in line and (block := handle.read(_BLOCK)):
            line += block
    line = line.partition(b"\n")[0]
    return column_names(line, delimiter), len(line) + 1


def column_names(line: bytes, delimiter: str) -> list[str]:
    """The names in a header line.

    >>> column_names(b'ts,"speed, km/h" ', ",")
    ['ts', 'speed, km/h']
    """
    if not line.strip():
        return []
    text = line.removeprefix(b"\xef\xbb\xbf") + b"\n"
    parsed = csv.read_csv(
        pa.BufferReader(text),
        read_options=csv.ReadOptions(autogenerate_column_names=True, use_threads=False),
        parse_options=csv.ParseOptions(delimiter=delimiter),
        convert_options=csv.ConvertOptions(
            column_types={f"f{i}": pa.string() for i in range(text.count(delimiter.encode()) + 1)}
        ),
    )
    return [str(c[0].as_py()).strip() for c in parsed.columns]


def require_columns(stream: str, path: str, names: Sequence[str], schema: Schema, delimiter: str) -> None:
    """Refuse a file that lacks a declared column.

    >>> require_columns("cars", "a.csv", ["ts", "speed"], Schema.parse("ts int, speed double"), ",")
    """
    what = f"stream '{stream}': file '{path}'"
    for name in schema.names:
        if names.count(name) > 1:
            raise SchemaError(f"{what} has {names.count(name)} columns '{name}'", hint="give each a name of its own")
        if name not in names:
            raise SchemaError(
                f"{what} has no column '{name}' ({type_text(schema.type_of(name))})",
                hint=_other_delimiter(names, schema, delimiter)
                or _no_header(names, schema)
                or did_you_mean(name, names),
            )


def _other_delimiter(names: Sequence[str], schema: Schema, delimiter: str) -> str | None:
    """What to write if the header makes sense with another character between its names."""
    (line, *more) = names
    for other in (";", "\t", "|", ","):
        if not more and other != delimiter and {n.strip().strip('"') for n in line.split(other)} >= set(schema.names):
            return f"its fields are separated by {json.dumps(other)}: read_csv(…, delimiter={json.dumps(other)})"
    return None


def _no_header(names: Sequence[str], schema: Schema) -> str | None:
    """What to write if the first line looks like an event: as many fields as attributes, and a number among them."""
    if len(names) != len(schema) or set(names) & set(schema.names) or not any(n[:1].isdigit() for n in names):
        return None
    return f"its first line is {','.join(names)!r}; if it has no line of column names: read_csv(…, header=False)"
