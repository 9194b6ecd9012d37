"""A piece of DuckDB SQL with the type Spark would give it, and how such pieces are put together."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from penstock.errors import a
from penstock.pattern.types import TIMESTAMP, duckdb_type, type_text

#: Types that no attribute has but a part of an expression may: spans of months and of microseconds.
MONTHS = pa.month_day_nano_interval()
SPAN = pa.duration("us")
NULL = pa.null()
BOOLEAN, STRING, BINARY, DATE = pa.bool_(), pa.string(), pa.binary(), pa.date32()
TINY, SMALL, INT, BIG = pa.int8(), pa.int16(), pa.int32(), pa.int64()
FLOAT, DOUBLE = pa.float32(), pa.float64()
TEXTS = pa.list_(pa.string())
#: The type of a bare word such as `day` where a unit of time belongs.
UNIT = pa.large_string()
INTEGERS = (TINY, SMALL, INT, BIG)
ATTRIBUTE_TYPES = (BOOLEAN, *INTEGERS, FLOAT, DOUBLE, STRING, BINARY, DATE, TIMESTAMP)
#: How many digits an integer type may have.
DIGITS = {TINY: 3, SMALL: 5, INT: 10, BIG: 20}
_OWN_TYPES = {MONTHS: "INTERVAL", SPAN: "INTERVAL", TEXTS: "VARCHAR[]", NULL: '"NULL"'}
_SHOWN = {MONTHS: "interval of months", SPAN: "interval", TEXTS: "array<string>", NULL: "null", UNIT: "unit"}
_ATOM = re.compile(
    r'"(?:[^"]|"")*"|[0-9.]+(?:e[+-]?[0-9]+)?|\'(?:[^\']|\'\')*\'|[A-Za-z_]\w*\([^()]*\)|TRUE|FALSE|v__\d+'
)

_ATTRIBUTE = re.compile(r'"(?:[^"]|"")*"|v__\d+')
_SLOT = re.compile(r"\{(\d)\}")


class Unfit(Exception):  # noqa: N818 - it is not an error yet: the caller knows where it is.
    """Arguments that a function or operator does not take; its text says why, and `hint` what to write."""

    def __init__(self, text: str, hint: str | None = None) -> None:
        super().__init__(text)
        self.hint = hint


@dataclass(frozen=True)
class Term:
    """SQL, its type, and its value if it is a literal.

    >>> Term('"a" + 1', INT).inner
    '("a" + 1)'
    >>> Term('"a"', INT).inner
    '"a"'
    """

    sql: str
    type: pa.DataType
    value: Any = None
    closed: bool = False

    @property
    def inner(self) -> str:
        """The SQL as an operand of something else."""
        return self.sql if self.closed or _ATOM.fullmatch(self.sql) else f"({self.sql})"

    @property
    def literal(self) -> bool:
        return self.value is not None

    def typed(self, t: pa.DataType) -> Term:
        return replace(self, type=t)


def call(name: str, *arguments: Term | str, type: pa.DataType) -> Term:
    """A call of a DuckDB function."""
    inside = ", ".join(a if isinstance(a, str) else a.sql for a in arguments)
    return Term(f"{name}({inside})", type, closed=True)


def fill(template: str, *arguments: Term, type: pa.DataType) -> Term:
    """A template with its `{0}`, `{1}` filled in. What is long and used twice is computed once, under a name."""
    slots: dict[str, str] = {}
    bound = []
    for i, argument in enumerate(arguments):
        if template.count(f"{{{i}}}") > 1 and len(argument.sql) > 120:
            name = f"v__{1 + max((_depth(a.sql) for a in arguments), default=0) + i}"
            bound.append((name, argument.sql))
            slots[str(i)] = name
        else:
            slots[str(i)] = argument.inner
    # One pass: what an argument contains is no slot.
    text = _SLOT.sub(lambda found: slots.get(found[1], found[0]), template)
    for name, sql in bound:
        text = f"list_transform([{sql}], lambda {name}: {text})[1]"
    return Term(text, type, closed=bool(bound) or template.startswith("CASE"))


def once(a: Term, make: Callable[[Term], Term], *others: Term) -> Term:
    """What `make` makes of a term, which is computed once, under a name, if it is long."""
    if len(a.sql) <= 120:
        return replace(make(a), closed=True)
    name = f"v__{1 + max(_depth(x.sql) for x in (a, *others))}"
    made = make(replace(a, sql=name, closed=True))
    return Term(f"list_transform([{a.sql}], lambda {name}: {made.sql})[1]", made.type, closed=True)


def _depth(sql: str) -> int:
    return max((int(n) for n in re.findall(r"\bv__(\d+)", sql)), default=0)


def duck(t: pa.DataType) -> str:
    """The name of a type in DuckDB."""
    return _OWN_TYPES[t] if t in _OWN_TYPES else duckdb_type(t)


def shown(t: pa.DataType) -> str:
    """The name of a type for people."""
    return _SHOWN[t] if t in _SHOWN else type_text(t)


def one(t: pa.DataType) -> str:
    """The name of a type with its article.

    >>> one(INT), one(STRING)
    ('an int', 'a string')
    """
    return a(shown(t))


def forced(term: Term, t: pa.DataType) -> Term:
    """The term under DuckDB's plain cast: only where it can neither fail nor round."""
    if term.type == t:
        return term
    if term.type == NULL:
        return Term(f"CAST(NULL AS {duck(t)})", t, closed=True)
    if isinstance(term.value, int) and t in (DOUBLE, FLOAT, *INTEGERS) and not isinstance(term.value, bool):
        if t == DOUBLE and abs(term.value) < 1 << 53:
            return Term(f"{term.value}e0" if term.value >= 0 else f"CAST({term.value} AS DOUBLE)", t, float(term.value))
        return Term(f"CAST({term.value} AS {duck(t)})", t, term.value, closed=True)
    if t == DOUBLE and is_decimal(term.type) and term.literal:
        return real(float(term.value))
    return Term(f"CAST({term.sql} AS {duck(t)})", t, closed=True)


def real(value: float) -> Term:
    """A literal of type double."""
    text = repr(value)
    plain = text if "e" in text else f"{text}e0"
    if value < 0 or value != value or value in (float("inf"), float("-inf")):
        return Term(f"CAST('{text}' AS DOUBLE)", DOUBLE, value, closed=True)
    return Term(plain, DOUBLE, value)


def text(value: str) -> Term:
    """A literal of type string."""
    quoted = "'" + value.replace("'", "''") + "'"
    if "\0" in value:
        # DuckDB's parser stops at a NUL character.
        return Term("(" + quoted.replace("\0", "' || chr(0) || '") + ")", STRING, value, closed=True)
    return Term(quoted, STRING, value)


def attempted(make: Callable[..., Term], *arguments: Term) -> Term:
    """What `make` makes of its arguments, null where it raises; what the arguments themselves raise, they raise.

    They are computed before, under names: inside TRY their errors would become nulls too.

    >>> attempted(lambda a: forced(a, TINY), Term('"a" + 1', INT)).sql
    'list_transform(["a" + 1], lambda v__1: TRY(CAST(v__1 AS TINYINT)))[1]'
    """
    depth = 1 + max(_depth(a.sql) for a in arguments)
    inner, bound = [], []
    for i, argument in enumerate(arguments):
        if argument.literal or argument.type in (NULL, UNIT) or _ATTRIBUTE.fullmatch(argument.sql):
            inner.append(argument)
        else:
            bound.append((f"v__{depth + i}", argument.sql))
            inner.append(replace(argument, sql=bound[-1][0]))
    made = make(*inner)
    sql = f"TRY({made.sql})"
    for name, inside in bound:
        sql = f"list_transform([{inside}], lambda {name}: {sql})[1]"
    return Term(sql, made.type, closed=True)


def raising(reason: str, t: pa.DataType) -> str:
    """SQL that fails with a reason when it is computed, and not before.

    A cast rather than `error(…)`: that one counts as volatile, which keeps DuckDB from optimising and from TRY.
    """
    failing = "CAST('" + REASON + reason.replace("'", "''") + "' AS INTEGER)"
    return (
        f"CAST({failing} AS {duck(t)})"
        if t in (STRING, BINARY, TEXTS)
        else failing
        if t in INTEGERS
        else (f"CAST('{REASON}" + reason.replace("'", "''") + f"' AS {duck(t)})")
    )


#: How the text begins whose failing cast raises a reason.
REASON = "!"
_FAILED = re.compile(r"'" + REASON + r"(.*?)'(?: to \w+| .*)?|\"" + REASON + r"(.*?)\"")


def reason_of(message: str) -> str | None:
    """The reason inside DuckDB's message, if `raising` put it there.

    >>> reason_of("Conversion Error: Could not convert string '!division by zero' to DOUBLE")
    'division by zero'
    """
    found = _FAILED.search(message)
    return (found[1] or found[2]) if found else None


def is_decimal(t: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(t))


def is_number(t: pa.DataType) -> bool:
    return t in INTEGERS or t in (FLOAT, DOUBLE) or is_decimal(t)


def decimal_type(precision: int, scale: int) -> pa.DataType:
    """Spark's decimal type for a precision that may be beyond 38: digits after the point go first, down to six.

    >>> decimal_type(59, 21)
    Decimal128Type(decimal128(38, 6))
    """
    if precision > 38:
        whole = precision - scale
        scale = max(38 - whole, min(scale, 6))
        precision = 38
    return pa.decimal128(precision, scale)


def as_decimal_type(term: Term) -> pa.DataType:
    """The decimal type of a number; an integer literal needs no more digits than it has."""
    if is_decimal(term.type):
        return term.type
    if isinstance(term.value, int) and term.type in (SMALL, INT, BIG):
        return pa.decimal128(len(str(abs(term.value))), 0)
    return pa.decimal128(DIGITS[term.type], 0)


def common(a: Term, b: Term) -> pa.DataType | None:
    """The type in which Spark (ANSI) brings two values together, or None."""
    return common_type(a.type, b.type)


def common_type(s: pa.DataType, t: pa.DataType) -> pa.DataType | None:
    """
    >>> common_type(pa.int32(), pa.float32()), common_type(pa.decimal128(10, 2), pa.int32())
    (DataType(double), Decimal128Type(decimal128(12, 2)))
    """
    if s == t or t == NULL:
        return s
    if s == NULL:
        return t
    if is_number(s) and is_number(t):
        if s in INTEGERS and t in INTEGERS:
            return max(s, t, key=lambda x: x.bit_width)
        if s in (FLOAT, DOUBLE) or t in (FLOAT, DOUBLE):
            return DOUBLE
        s, t = (pa.decimal128(DIGITS[x], 0) if x in INTEGERS else x for x in (s, t))
        scale, whole = max(s.scale, t.scale), max(s.precision - s.scale, t.precision - t.scale)
        return decimal_type(whole + scale, scale)
    if {s, t} == {DATE, TIMESTAMP}:
        return TIMESTAMP
    return None
