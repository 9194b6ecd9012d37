"""Streams of changes: which column says what an event does, and what tells rows apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from penstock.errors import UserError, did_you_mean
from penstock.operators.latest.operator import Latest
from penstock.operators.source.operator import Source
from penstock.pattern.schema import Attribute
from penstock.plan.operator import Operator
from penstock.plan.promise import CHANGE, STAMPS, Files, InBand


def change_data(
    source: Source, kind: str | None, debezium: bool, key: str | Sequence[str] | None
) -> tuple[Operator, tuple[str, ...]]:
    """What reads changes, and the attributes that say something of a change, not of a row: those go behind it."""
    keys = () if key is None else (key,) if isinstance(key, str) else tuple(key)
    for name in keys:
        if name not in source.schema or name == kind:
            raise UserError(f"changes: no attribute '{name}'", hint=did_you_mean(str(name), source.schema.names))
    if key is not None and not keys:
        raise UserError("changes(key=[]) tells no rows apart", hint="changes(…, key='id')")
    if debezium:
        source, kind = _of_records(source, kind, bool(keys)), CHANGE
    elif kind is None:
        raise UserError(
            "changes() does not say which column tells what an event does",
            hint="changes('op'), or changes(debezium=True)",
        )
    else:
        found = source.schema.resolve(kind)
        if found is None:
            raise UserError(f"changes: no attribute '{kind}'", hint=did_you_mean(kind, source.schema.names))
        kind = found
        if len(source.schema) == 1 or kind in source.schema.times:
            raise UserError(f"changes('{kind}') leaves no attribute, or no time", hint="name the column with the kind")
    made: Operator = replace(source, changes=kind, keyed=bool(keys))
    if keys:
        made = Latest((made,), made.schema, keys=keys, aggregations=())
    # Without a key, what is taken back is a row that is equal; it cannot be by when it was changed.
    stamps = [n for n in STAMPS if debezium and not keys and n in source.schema]
    if len(source.schema) <= 1 + len(stamps):
        raise UserError(f"changes() leaves no attribute of '{source.name}'", hint="declare those of the rows")
    return made, (kind, *stamps)


def _of_records(source: Source, kind: str | None, keyed: bool) -> Source:
    """The source, reading records of change data: an event is a row before a change, or after it."""
    reader = source.reader
    if kind is not None:
        raise UserError(
            f"changes('{kind}', debezium=True): records of Debezium say in `op` what they do",
            hint="changes(debezium=True), or for flattened ones changes('op', key=…)",
        )
    if not isinstance(reader, Files) or reader.format == "csv":
        raise UserError(
            f"stream '{source.name}': records of Debezium are read from files of JSON lines or Parquet",
            hint=f"{source.name}.read_json(…).changes(debezium=True)",
        )
    if any(isinstance(p, InBand) for p in source.promises):
        raise UserError(
            f"stream '{source.name}': records of Debezium cannot be punctuations", hint="leave out punctuated()"
        )
    if CHANGE in source.schema:
        raise UserError(
            f"stream '{source.name}': the attribute '{CHANGE}' says which row of a record an event is",
            hint="give yours another name",
        )
    options = (*(o for o in reader.options if o[0] != "debezium"), ("debezium", "keyed" if keyed else "rows"))
    schema = source.schema.extend([Attribute(CHANGE, pa.string())])
    return replace(source, schema=schema, reader=replace(reader, options=options))
