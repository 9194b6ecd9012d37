"""Comparisons and conditions: in what type values meet, and what is true of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa

from penstock.sql.cast import cast
from penstock.sql.regex import translate
from penstock.sql.term import (
    BIG,
    BINARY,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    INTEGERS,
    NULL,
    STRING,
    Term,
    Unfit,
    common,
    common_type,
    fill,
    forced,
    is_decimal,
    is_number,
    once,
    one,
    raising,
    shown,
    text,
)


def meeting(a: Term, b: Term) -> tuple[Term, Term]:
    """Both sides of a comparison in one type; a string beside something else is read as that."""
    if a.type == b.type:
        if a.type == NULL:
            return forced(a, BOOLEAN), forced(b, BOOLEAN)
        return a, b
    t = common(a, b) or _read_as(a.type, b.type) or _read_as(b.type, a.type)
    if t is None:
        raise Unfit(f"{one(a.type)} cannot be compared with {one(b.type)}", _hint(a, b))
    return _beside(a, t, b), _beside(b, t, a)


def _hint(a: Term, b: Term) -> str:
    other = b if a.literal else a
    return f"cast one side: cast(… as {shown(other.type)})"


def _read_as(s: pa.DataType, t: pa.DataType) -> pa.DataType | None:
    """The type in which a string meets a value of type `t`."""
    if s != STRING:
        return None
    return BIG if t in INTEGERS else DOUBLE if is_number(t) else t


def _beside(term: Term, t: pa.DataType, other: Term) -> Term:
    # DuckDB itself brings a literal into the type of what it is compared with: the SQL stays plain.
    if isinstance(term.value, int) and term.type in INTEGERS and not other.literal and t in (*INTEGERS, DOUBLE):
        return term
    return to_type(term, t)


def to_type(term: Term, t: pa.DataType) -> Term:
    """The term in a type that Spark itself would bring it to."""
    if term.type == t:
        return term
    if term.type == FLOAT or (term.type in INTEGERS and t != STRING):
        return forced(term, t)
    return cast(term, t)


def compared(operator: str, a: Term, b: Term) -> Term:
    """`a operator b`.

    >>> compared(">=", Term('"speed"', DOUBLE), Term("0", pa.int32(), 0)).sql
    '"speed" >= 0'
    """
    a, b = meeting(a, b)
    return Term(f"{a.inner} {operator} {b.inner}", BOOLEAN)


def among(a: Term, values: Sequence[Term], *, fallible: bool = False) -> Term:
    """`a in (…)`: all in one type. Where a value can fail they are looked at from left to right, as Spark does.

    >>> among(Term('"i"', pa.int32()), [Term('"j"', pa.int32()), Term('"k"', pa.int32())], fallible=True).sql
    'CASE WHEN "i" IS NULL THEN NULL WHEN "i" = "j" THEN TRUE ELSE "i" IN ("j", "k") END'
    """
    this, *others = unified([a, *values], comparing=True)
    listed = ", ".join(t.sql for t in others)
    if not (fallible or any(_read(v, t) for v, t in zip(values, others, strict=True))):
        return Term(f"{this.inner} IN ({listed})", BOOLEAN)

    def asked(one: Term) -> Term:
        found = " ".join(f"WHEN {one.inner} = {t.inner} THEN TRUE" for t in others[:-1])
        return Term(f"CASE WHEN {one.inner} IS NULL THEN NULL {found} ELSE {one.inner} IN ({listed}) END", BOOLEAN)

    return once(this, asked, *others)


def between(a: Term, low: Term, high: Term, *, fallible: bool = False) -> Term:
    """`a between low and high`; where a bound can fail it is looked at only if the question is still open."""
    above, below = meeting(a, low), meeting(a, high)
    careful = fallible or _read(low, above[1]) or _read(high, below[1])
    if above[0].sql == below[0].sql == a.sql and not careful:
        return Term(f"{a.inner} BETWEEN {above[1].inner} AND {below[1].inner}", BOOLEAN)
    first, second = (f"({x.inner} {op} {y.inner})" for op, (x, y) in ((">=", above), ("<=", below)))
    if not careful:
        return Term(f"{first} AND {second}", BOOLEAN)
    whens = f"WHEN {a.inner} IS NULL THEN NULL WHEN {first} = FALSE THEN FALSE"
    return Term(f"CASE {whens} ELSE {first} AND {second} END", BOOLEAN, closed=True)


def _read(given: Term, made: Term) -> bool:
    """Whether a text is read as something else, which may fail; a plain date or time does not."""
    return given.type == STRING != made.type and not made.sql.startswith("CAST('")


def unified(terms: Sequence[Term], *, comparing: bool = False) -> list[Term]:
    """Terms in the one type that Spark finds for all of them, such as the branches of a CASE."""
    t = reduce(lambda s, term: _join(s, term.type, comparing), terms[1:], terms[0].type)
    if (
        all(isinstance(x.value, int) and x.type in INTEGERS for x in terms[1:])
        and comparing
        and t in (*INTEGERS, DOUBLE)
    ):
        return [to_type(terms[0], t), *terms[1:]]
    return [to_type(term, t) for term in terms]


def _join(s: pa.DataType, t: pa.DataType, comparing: bool) -> pa.DataType:
    found = common_type(s, t) or ((_read_as(s, t) or _read_as(t, s)) if comparing else None)
    if found is None:
        raise Unfit(f"{one(s)} and {one(t)} cannot stand in one place", f"cast one of them: cast(… as {shown(t)})")
    return found


def condition(term: Term) -> Term:
    """A term that is true, false or null."""
    if term.type == NULL:
        return forced(term, BOOLEAN)
    if term.type != BOOLEAN:
        raise Unfit(f"{one(term.type)} is not a condition", "compare it with something, such as x > 0")
    return term


def chosen(cases: Sequence[tuple[Term, Term]], default: Term | None) -> Term:
    """CASE WHEN … THEN … ELSE … END."""
    results = unified([*(result for _, result in cases), *([default] if default else [])])
    whens = " ".join(f"WHEN {condition(c).sql} THEN {r.sql}" for (c, _), r in zip(cases, results, strict=False))
    otherwise = f" ELSE {results[-1].sql}" if default else ""
    return Term(f"CASE {whens}{otherwise} END", results[0].type, closed=True)


def like(a: Term, pattern: Term, escape: str = "\\") -> Term:
    """`a like 'pattern'`: the pattern is a literal, so that a wrong one is found before anything runs."""
    a = _text(a)
    if not isinstance(pattern.value, str):
        raise Unfit("the pattern of LIKE is not a literal", "write it as text, or use contains(…) or startswith(…)")
    value, i, escapes = pattern.value, 0, False
    while i < len(value):
        if value[i] == escape:
            if value[i + 1 : i + 2] not in ("_", "%", escape) or i + 1 >= len(value):
                raise Unfit(
                    f"'{value}' ends in its escape, or escapes neither _ nor %", f"write {escape}{escape} for {escape}"
                )
            escapes, i = True, i + 1
        i += 1
    ending = f" ESCAPE {text(escape).sql}" if escapes else ""
    return Term(f"{a.inner} LIKE {text(value).sql}{ending}", BOOLEAN)


def rlike(a: Term, pattern: Term) -> Term:
    """`a rlike 'regular expression'`: whether it matches anywhere."""
    if not isinstance(pattern.value, str):
        raise Unfit("the regular expression is not a literal", "write it as text")
    regex = translate(pattern.value, searching=True)
    template = guarded("regexp_matches({0}, {1})", regex.ascii_only, BOOLEAN)
    return fill(template, _text(a), text(regex.pattern), type=BOOLEAN)


def guarded(template: str, ascii_only: bool, t: pa.DataType) -> str:
    """The template, raising for texts beyond ASCII, for which Java and RE2 do not agree."""
    if not ascii_only:
        return template
    reason = raising("\\b and (?i) work on texts of ASCII characters", t)
    return f"CASE WHEN strlen({{0}}) = length({{0}}) THEN {template} WHEN {{0}} IS NOT NULL THEN {reason} END"


def _text(term: Term) -> Term:
    if term.type == BINARY or not (
        term.type in (STRING, NULL, BOOLEAN) or is_number(term.type) or is_decimal(term.type)
    ):
        raise Unfit(f"{one(term.type)} is not a text", "cast it: cast(… as string)")
    return cast(term, STRING)
