"""Numbers as they are written: their digits decide their types, as in Spark."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa

from penstock.sql.term import BIG, DOUBLE, INT, SMALL, TINY, Term, Unfit, duck, real, shown


def computed(term: Term) -> Term:
    """The term as one that is computed: of a literal Spark counts the digits, of what is computed it does not."""
    return replace(term, value=None) if isinstance(term.value, int) else term


def whole(value: int) -> Term:
    """A literal without a point: the narrowest of int, bigint and decimal.

    >>> whole(3_000_000_000).type
    DataType(int64)
    """
    if value <= 1 << 31:
        # One more than the largest: its negative is an int.
        return Term(str(value), INT if value < 1 << 31 else BIG, value)
    if value < 1 << 63:
        return Term(str(value), BIG, value)
    digits = len(str(value))
    if digits > 38:
        raise Unfit(f"the number {value} has more than 38 digits")
    return Term(f"CAST({value} AS DECIMAL({digits},0))", pa.decimal128(digits, 0), Decimal(value), closed=True)


def decimal(written: str) -> Term:
    """A literal with a point: a decimal of just these digits.

    >>> decimal("1.50").type
    Decimal128Type(decimal128(3, 2))
    """
    before, after = written.split(".")
    before = before.lstrip("0")
    precision = max(len(before) + len(after), 1)
    if precision > 38:
        raise Unfit(f"the number {written} has more than 38 digits", "write it with an exponent: 1e-40")
    t = pa.decimal128(precision, len(after))
    return Term(f"CAST({before or '0'}.{after or '0'} AS {_decimal_name(t)})", t, Decimal(written), closed=True)


def _decimal_name(t: pa.DataType) -> str:
    return f"DECIMAL({t.precision},{t.scale})"


def number(written: str) -> Term:
    """A number of whatever kind its digits show.

    >>> number("1e3").type, number("7").type
    (DataType(double), DataType(int32))
    """
    if re.fullmatch(r"\d+", written):
        return whole(int(written))
    if re.fullmatch(r"\d*\.\d*", written) and written != ".":
        return decimal(written)
    try:
        return real(float(written))
    except ValueError:
        raise Unfit(f"'{written}' is not a number") from None


def suffixed(written: str, t: pa.DataType, text: str) -> Term | None:
    """`1L`, `1.5D` in the text of an expression: sqlglot makes casts of them; a literal they stay."""
    if t == DOUBLE and re.fullmatch(r"[\d.eE+-]+", written):
        return real(float(written))
    suffix = {BIG: "l", SMALL: "s", TINY: "y"}.get(t)
    digits = re.fullmatch(r"\d{1,18}", written)
    if digits and suffix and re.search(rf"(?<![\w.]){re.escape(written)}{suffix}(?!\w)", text, re.IGNORECASE):
        if re.search(rf"\b{written}\s*(?:as\b|::)", text, re.IGNORECASE):
            raise Unfit(f"{written}{suffix.upper()} and a cast of {written}", "write the one or the other")
        if int(written) >= 1 << (t.bit_width - 1):
            raise Unfit(f"{written}{suffix.upper()} is too large", f"write cast(… as {shown(t)})")
        return Term(f"CAST({written} AS {duck(t)})", t, int(written), closed=True)
    return None
