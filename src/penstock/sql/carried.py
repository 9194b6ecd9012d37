"""Expressions that only pass an attribute on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.sql.expression import Expression


def carried(expression: Expression) -> str | None:
    """The attribute that an expression passes on unchanged, if it does nothing else."""
    if len(expression.columns) != 1:
        return None
    (column,) = expression.columns
    return column if expression.sql == '"' + column.replace('"', '""') + '"' else None
