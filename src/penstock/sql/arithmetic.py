"""Arithmetic with Spark's types: integers that raise when they overflow, decimals with their digits, spans of time."""

from __future__ import annotations

import re

import pyarrow as pa

from penstock.pattern.types import TIMESTAMP
from penstock.sql.cast import cast
from penstock.sql.term import (
    BIG,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTEGERS,
    MONTHS,
    NULL,
    SMALL,
    SPAN,
    STRING,
    TINY,
    Term,
    Unfit,
    as_decimal_type,
    common,
    decimal_type,
    duck,
    fill,
    forced,
    is_decimal,
    is_number,
    one,
    raising,
    shown,
)

_DAYS = (TINY, SMALL, INT)


def arithmetic(operator: str, a: Term, b: Term) -> Term:
    """`a operator b` for + - * / % div.

    >>> arithmetic("+", Term('"a"', INT), Term("1", INT, 1)).sql
    'add("a", 1)'
    >>> arithmetic("/", Term('"m"', pa.decimal128(10, 2)), Term("3", INT, 3)).type
    Decimal128Type(decimal128(14, 6))
    """
    if a.type == NULL and b.type == NULL:
        a = forced(a, DOUBLE)
    if a.type == NULL:
        a = forced(a, b.type)
    if b.type == NULL:
        b = forced(b, a.type)
    if not (is_number(a.type) and is_number(b.type)):
        return _times(operator, a, b)
    if (is_decimal(a.type) and b.type not in (FLOAT, DOUBLE)) or (is_decimal(b.type) and a.type not in (FLOAT, DOUBLE)):
        return _decimal(operator, a, b)
    if operator == "/":
        # Whole numbers DuckDB itself divides as doubles: the SQL stays plain.
        plain = a.type in INTEGERS and b.type in INTEGERS
        return _divide(a, b) if plain else _divide(_real(a), _real(b))
    if operator == "div":
        if not (a.type in INTEGERS and b.type in INTEGERS):
            raise Unfit(f"div of {one(a.type)} and {one(b.type)} is not available", "use floor(a / b)")
        return _guarded("//", _as(a, BIG, b), _as(b, BIG, a), BIG)
    t = common(a, b)
    assert t is not None
    a, b = _as(a, t, b), _as(b, t, a)
    if operator == "%":
        return remainder(a.typed(t), b)
    return _whole(operator, a, b, t) if t in INTEGERS else Term(f"{a.inner} {operator} {b.inner}", t)


_NAMES = {"+": "add", "-": "subtract", "*": "multiply"}
_QUOTED = re.compile(r"'(?:[^']|'')*'")


def _whole(operator: str, a: Term, b: Term, t: pa.DataType) -> Term:
    """Whole numbers that raise when they overflow.

    With a constant DuckDB would make `a > 4` of `a + 1 > 5`, which answers where the sum overflows; it knows the
    operators only, so it is given the functions of the same meaning.
    """
    if _constant(a.sql) or _constant(b.sql):
        return Term(f"{_NAMES[operator]}({a.sql}, {b.sql})", t, closed=True)
    return Term(f"{a.inner} {operator} {b.inner}", t)


def _constant(sql: str) -> bool:
    """Whether no attribute is in it, nor the name of something computed."""
    bare = _QUOTED.sub("", sql) if "'" in sql else sql
    return '"' not in bare and "v__" not in bare


def remainder(a: Term, b: Term) -> Term:
    """The remainder, with the sign of the left side; the smallest integer by -1 overflows in DuckDB alone."""
    if a.type in INTEGERS and not (isinstance(b.value, int) and b.value != -1):
        template = "CASE WHEN {1} = 0 THEN CASE WHEN {0} IS NOT NULL THEN " + raising("remainder by zero", a.type)
        template += f" END WHEN {{1}} = -1 THEN CASE WHEN {{0}} IS NOT NULL THEN CAST(0 AS {duck(a.type)}) END"
        return fill(template + " ELSE {0} % {1} END", a, b, type=a.type)
    return _guarded("%", a, b, a.type)


def negative(a: Term) -> Term:
    """The number with the other sign.

    >>> negative(Term("5", INT, 5)).value
    -5
    """
    if a.literal and is_number(a.type) and not isinstance(a.value, bool):
        # A literal of its own, so that the smallest integer can be written.
        if a.type in (INT, BIG) and a.value in (1 << 31, 1 << 63):
            return Term(f"CAST(-{a.value} AS {duck(_narrow(-a.value))})", _narrow(-a.value), -a.value, closed=True)
        if a.type in (INT, BIG):
            return Term(f"-{a.value}" if a.value > 0 else str(-a.value), a.type, -a.value)
        return Term(f"-{a.inner}", a.type, -a.value)
    if a.type == NULL:
        return forced(a, DOUBLE)
    if a.type in INTEGERS:
        # DuckDB widens where it could overflow; from zero it raises, as Spark does.
        return _whole("-", Term(f"CAST(0 AS {duck(a.type)})", a.type), a, a.type)
    if is_number(a.type):
        return Term(f"-{a.inner}", a.type)
    raise Unfit(f"minus {one(a.type)} is not available", "it needs a number")


def _narrow(value: int) -> pa.DataType:
    return INT if -(1 << 31) <= value < 1 << 31 else BIG


def _as(term: Term, t: pa.DataType, other: Term) -> Term:
    """The term in the common type; a literal beside a column DuckDB itself brings into the column's type."""
    if term.type == t and not (term.literal and other.literal):
        return term
    if isinstance(term.value, int) and term.type in INTEGERS and not other.literal and other.type == t and t != TINY:
        return term if t in (DOUBLE, BIG) else forced(term, t)
    if t == DOUBLE and term.type in INTEGERS and other.type == DOUBLE and not term.literal:
        return term
    if term.type == t:
        return Term(f"CAST({term.sql} AS {duck(t)})", t, closed=True) if t in INTEGERS else term
    return cast(term, t) if is_decimal(term.type) else forced(term, t)


def _real(term: Term) -> Term:
    return cast(term, DOUBLE) if is_decimal(term.type) else forced(term, DOUBLE)


def _divide(a: Term, b: Term) -> Term:
    return _guarded("/", a, b, DOUBLE)


def _guarded(operator: str, a: Term, b: Term, t: pa.DataType) -> Term:
    """An operator that raises where the right side is zero, unless the left one is null."""
    if b.literal and b.value != 0:
        return Term(f"{a.inner} {operator} {b.inner}", t)
    reason = "remainder by zero" if operator == "%" else "division by zero"
    zero = f"CASE WHEN {{0}} IS NOT NULL THEN {raising(reason, t)} END"
    return fill(f"CASE WHEN {{1}} = 0 THEN {zero} ELSE {{0}} {operator} {{1}} END", a, b, type=t)


def _decimal(operator: str, a: Term, b: Term) -> Term:
    s, t = as_decimal_type(a), as_decimal_type(b)
    a, b = (
        x if x.type == d else Term(f"CAST({x.sql} AS {duck(d)})", d, x.value, closed=True) for x, d in ((a, s), (b, t))
    )
    whole, scale = max(s.precision - s.scale, t.precision - t.scale), max(s.scale, t.scale)
    if operator in "+-":
        result = decimal_type(whole + scale + 1, scale)
        wide = duck(pa.decimal128(min(38, whole + scale + 1), scale))
        sides = (x.inner if duck(x.type) == wide else f"CAST({x.sql} AS {wide})" for x in (a, b))
        return Term(f"CAST({f' {operator} '.join(sides)} AS {duck(result)})", result, closed=True)
    if operator == "*":
        result = decimal_type(s.precision + t.precision + 1, s.scale + t.scale)
        if s.scale + t.scale > 38:
            raise Unfit(f"{shown(s)} * {shown(t)} has too many digits", "cast one side to fewer, or to double")
        if s.precision + t.precision > 18:
            # In 128 bits: DuckDB multiplies narrow decimals in 64.
            a = Term(f"CAST({a.sql} AS DECIMAL({max(19, s.precision)},{s.scale}))", s, closed=True)
        return Term(f"CAST({a.inner} * {b.inner} AS {duck(result)})", result, closed=True)
    if operator == "%":
        result = decimal_type(min(s.precision - s.scale, t.precision - t.scale) + scale, scale)
        wide = pa.decimal128(min(38, whole + scale), scale)
        a, b = (
            x if x.type == wide else Term(f"CAST({x.sql} AS {duck(wide)})", wide, x.value, closed=True) for x in (a, b)
        )
        made = _guarded("%", a, b, wide)
        return Term(f"CAST({made.sql} AS {duck(result)})", result, closed=True)
    if operator == "div":
        return quotient(a, b, pa.decimal128(38, 0), BIG, half_up=False)
    scale = max(6, s.scale + t.precision + 1)
    result = decimal_type(s.precision - s.scale + t.scale + scale, scale)
    return quotient(a, b, result, result, half_up=True)


def overflows(operator: str, s: pa.DataType, t: pa.DataType) -> bool:
    """Whether an operator on two decimals may raise only because it is computed in 38 digits, where Spark has more."""
    whole, scale = max(s.precision - s.scale, t.precision - t.scale), max(s.scale, t.scale)
    if operator == "/":
        digits = max(6, s.scale + t.precision + 1)
        result = decimal_type(s.precision - s.scale + t.scale + digits, digits)
        shift = result.scale - s.scale + t.scale
        return bool(max(s.precision + max(shift, 0), t.precision + max(-shift, 0) + 1) > 38)
    return bool({"*": s.precision + t.precision, "%": whole + scale}.get(operator, whole + scale + 1) > 38)


def quotient(a: Term, b: Term, digits: pa.DataType, result: pa.DataType, *, half_up: bool) -> Term:
    """Decimals are divided as integers of 128 bits: exactly, rounded once, and raising where they do not fit."""
    shift = digits.scale - a.type.scale + b.type.scale
    sides = (unscaled(a, max(shift, 0)), unscaled(b, max(-shift, 0)))
    n, d = (Term(sql, pa.decimal128(38, 0)) for sql in sides)
    rounded = "{0} // {1}"
    if half_up:
        rounded += " + CASE WHEN 2 * abs({0} % {1}) >= abs({1}) THEN sign({0}) * sign({1}) ELSE 0 END"
    exact = f"CAST({rounded} AS DECIMAL(38,0))"
    if digits.scale:
        exact += f" * CAST(0.{'0' * (digits.scale - 1)}1 AS DECIMAL({digits.scale + 1},{digits.scale}))"
    zero = f"CASE WHEN {{0}} IS NOT NULL THEN {raising('division by zero', result)} END"
    nonzero = f"CAST({exact} AS {duck(result)})"
    return fill(f"CASE WHEN {{1}} = 0 THEN {zero} ELSE {nonzero} END", n, d, type=result)


def unscaled(a: Term, more: int = 0) -> str:
    """The digits of a decimal as an integer of 128 bits, with `more` zeros."""
    t = a.type
    if t.precision + t.scale + 1 <= 38:
        whole = f"CAST({a.inner} * CAST(1{'0' * t.scale} AS DECIMAL({t.scale + 1},0)) AS HUGEINT)"
    else:
        whole = f"CAST(replace(CAST({a.sql} AS VARCHAR), '.', '') AS HUGEINT)"
    return f"{whole} * CAST(1{'0' * more} AS HUGEINT)" if more else whole


def _times(operator: str, a: Term, b: Term) -> Term:
    """Dates, timestamps and spans."""
    if operator == "+" and (b.type in (DATE, TIMESTAMP) or a.type in (SPAN, MONTHS)) and b.type not in (SPAN, MONTHS):
        a, b = b, a
    if operator in "+-":
        if a.type == DATE and b.type in _DAYS:
            return Term(f"CAST({a.inner} {operator} {forced(b, INT).inner} AS DATE)", DATE, closed=True)
        if a.type in (DATE, TIMESTAMP) and b.type in (SPAN, MONTHS):
            kept = DATE if a.type == DATE and (b.type == MONTHS or b.value == "days") else TIMESTAMP
            return Term(f"CAST({a.inner} {operator} {b.inner} AS {duck(kept)})", kept, closed=True)
        if a.type == b.type and a.type in (SPAN, MONTHS):
            return Term(f"{a.inner} {operator} {b.inner}", a.type)
        if operator == "-" and a.type in (DATE, TIMESTAMP) and b.type in (DATE, TIMESTAMP):
            days = f"{a.inner} - {b.inner}" if a.type == b.type == DATE else None
            hint = (
                f"use datediff({'a, b'})"
                if days
                else "use unix_micros(a) - unix_micros(b), or timestampdiff(SECOND, b, a)"
            )
            raise Unfit(f"the difference of {one(a.type)} and {one(b.type)} is an interval", hint)
    if STRING in (a.type, b.type):
        other = b.type if a.type == STRING else a.type
        target = "double" if not is_number(other) else shown(other)
        raise Unfit(
            f"{operator} of {one(a.type)} and {one(b.type)} is not available", f"cast the string: cast(… as {target})"
        )
    raise Unfit(f"{operator} of {one(a.type)} and {one(b.type)} is not available")
