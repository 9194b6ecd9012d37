"""A user's function on Arrow tables, and the check that it returned what was declared."""

from __future__ import annotations

import pyarrow as pa

from penstock.errors import SchemaError, UserError
from penstock.operators.map.operator import Map
from penstock.pattern.schema import Schema


def apply_function(operator: Map, operator_id: str, rows: pa.Table) -> pa.Table:
    """What the function of an operator makes of rows, in exactly the declared types."""
    try:
        result = operator.function(rows)
    except Exception as error:
        raise UserError(
            f"operator {operator_id}: function {operator.called} failed: {type(error).__name__}: {error}",
            hint="it gets a pyarrow.Table of the input and returns one of the declared schema",
        ) from error
    return as_declared(result, operator.schema, f"operator {operator_id}: function {operator.called}")


def as_declared(result: object, schema: Schema, who: str, what: str = "") -> pa.Table:
    """What `who` returned, in exactly the declared types; `what` tells which of several things it was."""
    told = f" {what}" if what else ""
    if isinstance(result, pa.RecordBatch):
        result = pa.Table.from_batches([result])
    if not isinstance(result, pa.Table):
        raise UserError(f"{who} returned {type(result).__name__}{told}, not a pyarrow.Table")
    missing = [n for n in schema.names if n not in result.column_names]
    if missing:
        raise SchemaError(f"{who} returned no column '{missing[0]}'{told}", hint=f"it declared: {schema}")
    try:
        return result.select(list(schema.names)).cast(schema.arrow)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaError(
            f"{who} returned other types than declared{told}: {error}", hint=f"it declared: {schema}"
        ) from error
