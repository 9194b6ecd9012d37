"""Which expressions can fail on a value, and in what order their conditions are asked.

A cast of a text, a sum of whole numbers, a date read by a format: each may find a value that it has no answer to. An
event on which one fails goes to the dead letters, so it must be the same events whatever else is in the batch. SQL
leaves open whether both sides of AND are looked at, and engines choose by speed. Here, as in Spark, the left side
decides whether the right one is asked, and that is written into the SQL where it can make a difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from penstock.pattern.schema import Schema


@dataclass(frozen=True)
class Fallible:
    """An expression that may fail: as its author wrote it, and as it is computed."""

    text: str
    sql: str


#: Nodes that never fail by themselves: only what is below them may.
_SAFE = (
    exp.Column,
    exp.Identifier,
    exp.Literal,
    exp.Null,
    exp.Boolean,
    exp.Paren,
    exp.Not,
    exp.And,
    exp.Or,
    exp.Is,
    exp.Coalesce,
    exp.Case,
    exp.If,
    exp.DataType,
    exp.DataTypeParam,
)
_SURELY_TRIED = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary")
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In)


def can_fail(tree: exp.Expr, schema: Schema) -> bool:
    """Whether there may be values on which an expression fails; in doubt, yes.

    >>> from sqlglot import parse_one
    >>> s = Schema.parse("a int, b int, t string")
    >>> [can_fail(parse_one(e), s) for e in ("a > 3 and not t = 'x'", "a < b", "a > t", "cast(t as int)", "a + 1")]
    [False, False, True, True, True]
    """
    for node in tree.walk():
        if isinstance(node, _COMPARISONS):
            if not _alike(node, schema):
                return True
        elif isinstance(node, exp.TryCast):
            # Of some dates, times and decimals Spark has a value and `try_cast` has none: it fails.
            if not node.to.is_type(*_SURELY_TRIED):
                return True
        elif not isinstance(node, _SAFE) or (isinstance(node, exp.Case) and node.this):
            return True
    return False


def _alike(comparison: exp.Expr, schema: Schema) -> bool:
    """Whether only attributes and literals of one kind are compared, so that nothing has to be cast for it."""
    kinds = set()
    for node in comparison.iter_expressions():
        if isinstance(node, exp.Column):
            name = schema.resolve(node.name)
            kinds.add(None if name is None else _kind(schema.type_of(name)))
        elif isinstance(node, exp.Literal):
            kinds.add("string" if node.is_string else "double" if "." in node.name else "int")
        else:
            return False
    return len(kinds) == 1 or kinds == {"int", "double"}


def _kind(t: pa.DataType) -> str:
    if pa.types.is_integer(t):
        return "int"
    return "double" if pa.types.is_floating(t) else str(t)
