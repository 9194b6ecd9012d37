"""A user's function on Arrow tables, and the check that it returned what was declared."""

from __future__ import annotations

import pyarrow as pa

from penstock.errors import SchemaError, UserError
from penstock.operators.map.operator import Map


def apply_function(operator: Map, operator_id: str, rows: pa.Table) -> pa.Table:
    """What the function of an operator makes of rows, in exactly the declared types."""
    try:
        result = operator.function(rows)
    except Exception as error:
        raise UserError(
            f"operator {operator_id}: function {operator.called} failed: {type(error).__name__}: {error}",
            hint="it gets a pyarrow.Table of the input and returns one of the declared schema",
        ) from error
    if isinstance(result, pa.RecordBatch):
        result = pa.Table.from_batches([result])
    if not isinstance(result, pa.Table):
        raise UserError(
            f"operator {operator_id}: function {operator.called} returned {type(result).__name__}, not a pyarrow.Table"
        )
    missing = [n for n in operator.schema.names if n not in result.column_names]
    if missing:
        raise SchemaError(
            f"operator {operator_id}: function {operator.called} returned no column '{missing[0]}'",
            hint=f"it declared: {operator.schema}",
        )
    try:
        return result.select(list(operator.schema.names)).cast(operator.schema.arrow)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaError(
            f"operator {operator_id}: function {operator.called} returned other types than declared: {error}",
            hint=f"it declared: {operator.schema}",
        ) from error
