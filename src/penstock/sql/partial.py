"""Partials: the columns of state that an aggregate is put together from."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
from sqlglot import exp

if TYPE_CHECKING:
    from penstock.sql.aggregate_reader import AggregateReader

#: What a single event adds to a count or a sum, in SQL; null where that is nothing.
Added = tuple[Literal["count", "sum"], str]


@dataclass(frozen=True)
class Partial:
    """One partial of an aggregate: a column of state.

    A sum of floating numbers (`is_float_sum`) says only what is summed: how it stays exact is the kernel's business,
    and to `final_sql` its column is the sum.
    """

    column: str
    type: pa.DataType
    partial_sql: str
    merge_sql: str
    is_float_sum: bool = False
    #: The same as a function (count, sum, min, max) of one SQL expression over single events, if it is one; the
    #: expression of `count(*)` is empty.
    plain: tuple[str, str] | None = None
    #: If this is a count or a sum, so that what an event has added can be taken away again.
    adds: Added | None = None

    def renamed(self, column: str) -> Partial:
        return replace(self, column=column, merge_sql=renamed_columns(self.merge_sql, {self.column: column}))


@dataclass(frozen=True)
class AggregateValue:
    """What one aggregate function comes to: SQL over partial columns, and its type."""

    sql: str
    type: pa.DataType


def renamed_columns(sql: str, names: Mapping[str, str]) -> str:
    """Replace quoted partial columns, all at once, so that swapped names do not meet."""
    return re.sub(r'"(__p\d+|)"', lambda m: f'"{names.get(m[1], m[1])}"', sql)


#: Reads the arguments of one aggregate function and the condition of its FILTER.
ReadFunction = Callable[["AggregateReader", list[exp.Expr], str | None], AggregateValue]


def only_if(value: str, keep: str | None) -> str:
    """A value of the events that FILTER keeps, and null of others."""
    return value if keep is None else f"CASE WHEN {keep} THEN {value} END"
