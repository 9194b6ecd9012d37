"""Casts between the types of attributes, as Spark 4 makes them (ANSI): a value that does not fit raises."""

# ruff: noqa: E501 - a row of a table or a template of SQL reads best as one line.
from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa

from penstock.pattern.types import TIMESTAMP
from penstock.sql.connection import failure
from penstock.sql.term import (
    BIG,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGERS,
    NULL,
    REASON,
    STRING,
    Term,
    Unfit,
    attempted,
    duck,
    fill,
    forced,
    is_decimal,
    is_number,
    one,
    raising,
    shown,
)

_BLANK = r"[\x00-\x20\x7f]*"
#: What Java takes off before it reads a number with a point.
_SPACE = r"[\x00-\x20]*"
_WHOLE = rf"{_BLANK}[+-]?[0-9]+{_BLANK}"
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_DATE_TEXT = rf"^{_BLANK}([0-9]{{4}})(?:-([0-9]{{1,2}})(?:-([0-9]{{1,2}})(?:[ T].*)?)?)?{_BLANK}$"
_ZONE = r"(?:Z|UTC|GMT|UT|(?:UTC|GMT|UT)?([+-])(?:(0?[0-9]|1[0-7])(?::([0-5][0-9]))?|(0[0-9]|1[0-7])([0-5][0-9])))"
_TIME_TEXT = (
    rf"^{_BLANK}([0-9]{{4}}(?:-[0-9]{{1,2}}(?:-[0-9]{{1,2}})?)?)"
    rf"(?:[ T]([0-9]{{1,2}})(?::([0-9]{{1,2}})(?::([0-9]{{1,2}})(?:\.([0-9]*))? *{_ZONE}?)?)?)?{_BLANK}$"
)
#: Texts that Spark reads and `cast` does not: a `try_cast` to null would hide them.
_LONG_YEAR = rf"[+-][0-9]|[0-9]{{5,7}}(?:-|{_BLANK}$)"
_ODD_DATE = rf"^{_BLANK}(?:{_LONG_YEAR})"
_ODD_TIME = (
    rf"^{_BLANK}(?:{_LONG_YEAR}|T[0-9]|[0-9]{{1,2}}:"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}[ T][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:\.[0-9]*)?[^0-9.])"
)
_ODD_REAL = rf"(?i)^{_SPACE}[+-]?0x"
_ODD_DECIMAL = rf"^{_SPACE}[+-]?[\p{{Nd}}.eE+-]*{_SPACE}$"
_WORDS = ("epoch", "now", "today", "yesterday", "tomorrow")
_PLAIN_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_PLAIN_TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?")


def cast(term: Term, t: pa.DataType) -> Term:
    """A term as a value of another type; a literal that is no such value is refused, as Spark refuses it.

    >>> cast(Term("'x'", STRING, "x"), pa.int32())
    Traceback (most recent call last):
    penstock.sql.term.Unfit: 'x' is not of type int
    >>> cast(Term('"x"', DOUBLE), pa.int32()).sql
    'CAST(TRUNC("x") AS INTEGER)'
    >>> cast(Term('"d"', DATE), pa.int32())
    Traceback (most recent call last):
    penstock.sql.term.Unfit: a date cannot be cast to int
    """
    made = _cast(term, t)
    if isinstance(term.value, str) and failure(made) is not None:
        raise Unfit(
            f"'{term.value}' is not of type {shown(t)}", "it would fail whenever it is computed; try_cast gives null"
        )
    return made


def _cast(term: Term, t: pa.DataType) -> Term:
    s = term.type
    if s == t:
        return term
    if s == NULL:
        return forced(term, t)
    if s == STRING:
        return _from_text(term, t)
    if t == STRING:
        return _to_text(term)
    if t == BOOLEAN and is_number(s):
        return Term(f"{term.inner} <> 0", t)
    if s == BOOLEAN and is_number(t):
        # Through a whole number: DuckDB makes 0.001 of true as a decimal(3,3).
        return Term(f"CAST(CAST({term.sql} AS INTEGER) AS {duck(t)})", t, closed=True)
    if is_number(s) and is_number(t):
        return _number(term, t)
    if s == DATE and t == TIMESTAMP:
        return Term(f"CAST({term.sql} AS TIMESTAMP)", t, closed=True)
    if s == TIMESTAMP and t == DATE:
        return Term(f"CAST({term.sql} AS DATE)", t, closed=True)
    if s == TIMESTAMP and is_number(t):
        return _count(term, t)
    if t == TIMESTAMP and is_number(s):
        return _moment(term)
    raise Unfit(f"{one(s)} cannot be cast to {shown(t)}", _HINTS.get((s, t)))


_HINTS = {
    (DATE, pa.int32()): "use unix_date(…)",
    (pa.int32(), DATE): "use date_from_unix_date(…)",
    **{(t, BINARY): "cast it to string first" for t in INTEGERS},
}


def _number(term: Term, t: pa.DataType) -> Term:
    s = term.type
    target = duck(t)
    if t in INTEGERS:
        if s in INTEGERS:
            return forced(term, t)
        if t == BIG and s in (FLOAT, DOUBLE):
            # Spark takes 2^63, the first number too large, for the largest.
            template = (
                "CASE WHEN {0} = 9223372036854775808e0 THEN 9223372036854775807 ELSE CAST(TRUNC({0}) AS BIGINT) END"
            )
            return fill(template, term, type=t)
        return Term(f"CAST(TRUNC({term.sql}) AS {target})", t, closed=True)
    if t in (FLOAT, DOUBLE):
        if s == DOUBLE:
            template = "CASE WHEN isfinite({0}) AND abs({0}) >= 3.4028235677973366e38 THEN sign({0}) * CAST('inf' AS FLOAT) ELSE CAST({0} AS FLOAT) END"
            return fill(template, term, type=t)
        if is_decimal(s) and (s.precision > 15 or t == FLOAT) and not term.literal:
            # Through text: DuckDB divides, which for many digits is not the nearest number.
            return Term(f"CAST(CAST({term.sql} AS VARCHAR) AS {target})", t, closed=True)
        return forced(term, t)
    if s in (FLOAT, DOUBLE):
        wide = term.sql if s == DOUBLE else f"CAST({term.sql} AS DOUBLE)"
        # What is not finite becomes null, in Spark too.
        digits = plain_digits("CAST({0} AS VARCHAR)")
        return fill(f"CASE WHEN isfinite({{0}}) THEN CAST({digits} AS {target}) END", Term(wide, DOUBLE), type=t)
    if is_decimal(s) and is_decimal(t) and isinstance(term.value, Decimal) and t.scale >= s.scale:
        return Term(f"CAST({term.sql} AS {target})", t, term.value, closed=True)
    return Term(f"CAST({term.sql} AS {target})", t, closed=True)


def plain_digits(sql: str) -> str:
    """A number in a text without its exponent: with one DuckDB makes decimals that are too large for their type."""
    parts = f"regexp_extract({sql}, '^([+-]?)([0-9]*)[.]?([0-9]*)[eE](.*)$', ['g', 'i', 'f', 'e'])"
    # Beyond a thousand zeros it is too large, or nothing, for any decimal.
    shift = "greatest(-1000, least(1000, CAST(n__.e AS INTEGER)))"
    larger = f"n__.i || left(rpad(n__.f, CAST(greatest({shift}, length(n__.f)) AS INTEGER), '0'), {shift}) || '.' || n__.f[{shift} + 1:]"
    shifted = f"lpad(n__.i, CAST(length(n__.i) - {shift} AS INTEGER), '0')"
    smaller = f"left({shifted}, length(n__.i)) || '.' || {shifted}[length(n__.i) + 1:] || n__.f"
    moved = f"n__.g || '0' || CASE WHEN {shift} < 0 THEN {smaller} ELSE {larger} END"
    return (
        f"CASE WHEN contains(lower({sql}), 'e') THEN list_transform([{parts}], lambda n__: {moved})[1] ELSE {sql} END"
    )


def _count(term: Term, t: pa.DataType) -> Term:
    """A moment as seconds since 1970."""
    if t in INTEGERS:
        return Term(f"CAST(epoch_us(date_trunc('second', {term.sql})) // 1000000 AS {duck(t)})", t, closed=True)
    if t == DOUBLE:
        return Term(f"epoch_us({term.sql}) / 1000000", t)
    if is_decimal(t):
        exact = f"CAST(epoch_us({term.sql}) AS DECIMAL(19,0)) * CAST(0.000001 AS DECIMAL(7,6))"
        return Term(f"CAST({exact} AS {duck(t)})", t, closed=True)
    raise Unfit(f"a timestamp cannot be cast to {shown(t)} exactly", "cast it to double")


def _moment(term: Term) -> Term:
    s = term.type
    if s in INTEGERS:
        return Term(f"make_timestamp(CAST({term.sql} AS BIGINT) * 1000000)", TIMESTAMP, closed=True)
    if s in (FLOAT, DOUBLE):
        wide = forced(term, DOUBLE)
        template = "CASE WHEN isfinite({0}) THEN make_timestamp(CAST(TRUNC({0} * 1000000) AS BIGINT)) WHEN {0} IS NOT NULL THEN " + _fail(
            "'a number that is not finite is not a timestamp'", "TIMESTAMP"
        ) + " END"  # fmt: skip
        return fill(template, wide, type=TIMESTAMP)
    return Term(f"make_timestamp(CAST(TRUNC({term.inner} * 1000000) AS BIGINT))", TIMESTAMP, closed=True)


def _to_text(term: Term) -> Term:
    s = term.type
    if s == DOUBLE:
        return fill(_DOUBLE_TEXT, term, type=STRING)
    if s == FLOAT:
        raise Unfit("a float cannot be cast to string", "cast it to double or decimal first")
    if s == BINARY:
        return Term(f"decode({term.sql})", STRING, closed=True)
    if is_decimal(s) and s.precision == s.scale:
        # DuckDB writes no zero before the point of a type that has no room for it.
        return fill("regexp_replace(CAST({0} AS VARCHAR), '^(-?)[.]', '\\1' || '0.')", term, type=STRING)
    if s in (DATE, TIMESTAMP):
        return fill(_WRITTEN[s], term, type=STRING)
    if s in INTEGERS or is_decimal(s) or s == BOOLEAN:
        return Term(f"CAST({term.sql} AS VARCHAR)", STRING, closed=True)
    raise Unfit(f"{one(s)} cannot be cast to string")


_TEXT = "CAST(abs({0}) AS VARCHAR)"
#: Java writes numbers below 0.001 and from ten million on with an exponent.
_DOUBLE_TEXT = (
    "CASE WHEN isnan({0}) THEN 'NaN' WHEN isinf({0}) THEN CASE WHEN {0} > 0 THEN 'Infinity' ELSE '-Infinity' END"
    " WHEN {0} <> 0 AND abs({0}) < 1e-320 THEN "
    + raising("a double so close to zero has no text here", STRING)
    + " WHEN {0} = 0 OR (abs({0}) >= 0.001 AND abs({0}) < 1e7) THEN CAST({0} AS VARCHAR)"
    " ELSE CASE WHEN {0} < 0 THEN '-' ELSE '' END || CASE"
    f" WHEN contains({_TEXT}, 'e') THEN split_part({_TEXT}, 'e', 1)"
    f" || CASE WHEN contains({_TEXT}, '.') THEN '' ELSE '.0' END"
    f" || 'E' || CAST(CAST(split_part({_TEXT}, 'e', 2) AS INTEGER) AS VARCHAR)"
    f" WHEN abs({{0}}) < 1 THEN regexp_replace(ltrim({_TEXT}, '0.'), '^(.)(.*)$', '\\1.\\2')"
    f" || CASE WHEN length(ltrim({_TEXT}, '0.')) = 1 THEN '0' ELSE '' END"
    f" || 'E-' || CAST(length({_TEXT}) - length(ltrim({_TEXT}, '0.')) - 1 AS VARCHAR)"
    f" ELSE {_TEXT}[1] || '.' || CASE WHEN rtrim(replace({_TEXT}[2:], '.', ''), '0') = '' THEN '0'"
    f" ELSE rtrim(replace({_TEXT}[2:], '.', ''), '0') END"
    f" || 'E' || CAST(strpos({_TEXT}, '.') - 2 AS VARCHAR) END END"
)
#: Years of other than four digits have a sign; the year before the first is 0, and DuckDB's is "0001 … (BC)".
_WRITTEN = {
    t: f"CASE WHEN {{0}} BETWEEN {duck(t)} '0001-01-01' AND {duck(t)} '9999-12-31{last}' THEN CAST({{0}} AS VARCHAR)"
    " ELSE CASE WHEN year({0}) > 0 THEN '+' WHEN year({0}) < 0 THEN '-' ELSE '' END"
    " || printf('%04d', abs(year({0})))"
    " || regexp_extract(replace(CAST({0} AS VARCHAR), ' (BC)', ''), '-.*') END"
    for t, last in ((DATE, ""), (TIMESTAMP, " 23:59:59.999999"))
}


def _fail(reason: str, target: str) -> str:
    return f"CAST('{REASON}' || {reason} AS {target})"


def _read(template: str) -> Callable[[Term, pa.DataType], Term]:
    def made(term: Term, t: pa.DataType) -> Term:
        target = duck(t)
        bad = _fail(f"{{0}} || ' is not of type {shown(t)}'", target)
        return fill(template.replace("{t}", target).replace("{bad}", bad), term, type=t)

    return made


_TO_WHOLE = _read(
    f"CASE WHEN regexp_full_match({{0}}, '{_WHOLE}') THEN CAST(regexp_extract({{0}}, '[+-]?[0-9]+') AS {{t}})"
    " WHEN {0} IS NOT NULL THEN {bad} END"
)
_TO_REAL = _read(
    f"CASE WHEN regexp_full_match({{0}}, '{_SPACE}{_NUMBER}[dDfF]?{_SPACE}')"
    f" THEN CAST(regexp_extract({{0}}, '{_NUMBER}') AS {{t}})"
    f" WHEN regexp_full_match({{0}}, '{_SPACE}(?:[+-]NaN|(?i)nan){_SPACE}') THEN CAST('nan' AS {{t}})"
    f" WHEN regexp_full_match({{0}}, '(?i){_SPACE}[+]?inf(?:inity)?{_SPACE}') THEN CAST('inf' AS {{t}})"
    f" WHEN regexp_full_match({{0}}, '(?i){_SPACE}-inf(?:inity)?{_SPACE}') THEN CAST('-inf' AS {{t}})"
    " WHEN {0} IS NOT NULL THEN {bad} END"
)
_DIGITS = plain_digits(f"regexp_extract({{0}}, '{_NUMBER}')")
_TO_DECIMAL = _read(
    f"CASE WHEN regexp_full_match({{0}}, '{_SPACE}{_NUMBER}{_SPACE}') THEN CAST({_DIGITS} AS {{t}})"
    " WHEN {0} IS NOT NULL THEN {bad} END"
)
#: Spelt out: to RE2, ſ is another small S.
_TRUE, _FALSE = (
    "|".join("".join(f"[{c}{c.upper()}]" for c in word) for word in words.split()) + f"|{digit}"
    for words, digit in (("t true y yes", 1), ("f false n no", 0))
)
_TO_BOOLEAN = _read(
    f"CASE WHEN regexp_full_match({{0}}, '{_BLANK}(?:{_TRUE}){_BLANK}') THEN TRUE"
    f" WHEN regexp_full_match({{0}}, '{_BLANK}(?:{_FALSE}){_BLANK}') THEN FALSE"
    " WHEN {0} IS NOT NULL THEN {bad} END"
)
_TO_DATE = _read(
    f"CASE WHEN regexp_matches({{0}}, '{_DATE_TEXT}', 's') THEN CAST(regexp_replace(replace(regexp_replace({{0}},"
    f" '{_DATE_TEXT}', '\\1-\\2-\\3', 's'), '--', '-1-'), '-$', '-1') AS DATE)"
    " WHEN {0} IS NOT NULL THEN {bad} END"
)
_TO_TIME = _read(
    f"CASE WHEN regexp_matches({{0}}, '{_TIME_TEXT}') THEN list_transform([regexp_extract({{0}}, '{_TIME_TEXT}',"
    " ['d', 'h', 'm', 's', 'f', 'g', 'oh', 'om', 'oi', 'on'])], lambda p__: CAST(CASE length(p__.d) WHEN 4 THEN p__.d || '-1-1'"
    " ELSE p__.d || CASE WHEN length(p__.d) - length(replace(p__.d, '-', '')) = 1 THEN '-1' ELSE '' END END AS TIMESTAMP)"
    " + to_hours(CASE WHEN p__.h = '' THEN 0 WHEN CAST(p__.h AS INTEGER) < 24 THEN CAST(p__.h AS INTEGER) ELSE"
    " {whole} END)"
    " + to_minutes(CASE WHEN p__.m = '' THEN 0 WHEN CAST(p__.m AS INTEGER) < 60 THEN CAST(p__.m AS INTEGER) ELSE"
    " {whole} END)"
    " + to_microseconds(1000000 * CASE WHEN p__.s = '' THEN 0 WHEN CAST(p__.s AS INTEGER) < 60 THEN"
    " CAST(p__.s AS INTEGER) ELSE {whole} END + CAST(rpad(p__.f, 6, '0') AS INTEGER))"
    " - to_minutes(CASE WHEN p__.g = '' THEN 0 ELSE CAST(p__.g || '1' AS INTEGER) * (CAST(p__.oh || p__.oi AS INTEGER) * 60"
    " + CASE WHEN p__.om || p__.on = '' THEN 0 ELSE CAST(p__.om || p__.on AS INTEGER) END) END))[1]"
    " WHEN {0} IS NOT NULL THEN {bad} END".replace("{whole}", _fail("{0} || ' is not of type timestamp'", "INTEGER"))
)


def _from_text(term: Term, t: pa.DataType) -> Term:
    if isinstance(term.value, str):
        if t == DATE and _PLAIN_DATE.fullmatch(term.value):
            return Term(f"CAST('{term.value}' AS DATE)", t, closed=True)
        if t == TIMESTAMP and (_PLAIN_TIME.fullmatch(term.value) or _PLAIN_DATE.fullmatch(term.value)):
            return Term(f"CAST('{term.value}' AS TIMESTAMP)", t, closed=True)
    if t in INTEGERS:
        return _TO_WHOLE(term, t)
    if t in (FLOAT, DOUBLE):
        return _TO_REAL(term, t)
    if is_decimal(t):
        return _TO_DECIMAL(term, t)
    if t == BOOLEAN:
        return _TO_BOOLEAN(term, t)
    if t == DATE:
        return _TO_DATE(term, t)
    if t == TIMESTAMP:
        return _TO_TIME(term, t)
    return Term(f"encode({term.sql})", BINARY, closed=True)


def try_cast(term: Term, t: pa.DataType) -> Term:
    """The same, with null where Spark's cast raises; texts that Spark reads and this does not still raise."""
    if isinstance(term.value, str) and t in (DATE, TIMESTAMP) and term.value.strip().lower().startswith(_WORDS):
        raise Unfit(f"'{term.value}' as a {shown(t)} is not available", "it would be another one each time")
    made = _cast(term, t)
    if made is term or (t == TIMESTAMP and (term.type in INTEGERS or is_decimal(term.type))):
        # Spark has a time for every whole number and decimal; null would hide those that are too large here.
        return made
    tried = attempted(lambda a: _cast(a, t), term)
    return (
        fill(f"CASE WHEN {odd(t)} THEN {{1}} ELSE {{2}} END", term, made, tried, type=t)
        if odd(t) and term.type == STRING
        else tried
    )


def odd(t: pa.DataType) -> str:
    """A condition on a text that Spark may read as a `t` where `cast` raises; empty if there is none."""
    if t in (FLOAT, DOUBLE):
        return f"regexp_matches({{0}}, '{_ODD_REAL}')"
    if is_decimal(t):
        return f"strlen({{0}}) > length({{0}}) AND regexp_matches({{0}}, '{_ODD_DECIMAL}')"
    if t == DATE:
        return f"regexp_matches({{0}}, '{_ODD_DATE}')"
    if t == TIMESTAMP:
        return f"regexp_matches({{0}}, '{_ODD_TIME}') AND NOT regexp_matches({{0}}, '{_TIME_TEXT}')"
    return ""
