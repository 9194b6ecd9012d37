"""Rows that may be taken back: they carry a weight (see docs/decisions/0008).

A row of weight +1 holds from now on; one of weight −1 says that an equal row, told before, does not. What holds is the
sum of the weights of equal rows, and never less than nothing. Only plans that speculate have such rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from penstock.errors import UserError
from penstock.pattern.schema import Attribute, Schema
from penstock.plan.operator import Operator

#: The attribute with the weight of a row.
WEIGHT = "_weight"
#: What stands in the column that says what an event does: as databases, Debezium and Flink write it.
HOLDS = ("c", "r", "i", "insert", "create", "+i", "+u", "+", "1", "+1")
GONE = ("d", "delete", "retract", "-d", "-u", "-", "-1")
#: What is told of a row that is taken back, when it is over and there was none.
NEVER_CAME = "it is taken back, and has never come"
#: The attribute of a table that is told in parts: where a row lies.
PART = "_part"

_ATTRIBUTE = Attribute(WEIGHT, pa.int64())

O = TypeVar("O", bound=Operator)  # noqa: E741


def is_weighted(operator: Operator) -> bool:
    """Whether what comes out of it may be taken back."""
    return WEIGHT in operator.schema


def with_weight(schema: Schema) -> Schema:
    """The schema of rows that may be taken back.

    >>> print(with_weight(Schema.parse("k int")))
    k int, _weight bigint
    """
    return schema if WEIGHT in schema else schema.extend([_ATTRIBUTE])


def without_weight(schema: Schema) -> Schema:
    """The schema of what holds."""
    return schema.select([n for n in schema.names if n != WEIGHT])


def passing_weights(operator: O, inputs: Sequence[Operator]) -> O:
    """An operator for which the weight of a row is an attribute like any other, over other inputs."""
    weighted = any(is_weighted(i) for i in inputs)
    return replace(operator, inputs=tuple(inputs), schema=with_weight(operator.schema) if weighted else operator.schema)


def refusing_weights(operator: O, inputs: Sequence[Operator]) -> O:
    """An operator that can do nothing with a row that is taken back, over inputs that have none."""
    for below in inputs:
        if is_weighted(below):
            raise UserError(
                f"{operator.word}() cannot take back what it has told, but {below.word}() before it corrects its own",
                hint="consistency=ps.Consistency.strong(remember=…) waits for what is final",
            )
    return replace(operator, inputs=tuple(inputs))
