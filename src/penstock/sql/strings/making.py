"""Texts made of others: upper case, padded, cut, put together."""

# ruff: noqa: E501 - a row of a table or a template of SQL reads best as one line.
from __future__ import annotations

from collections.abc import Callable

from penstock.sql.function import Function, function
from penstock.sql.letter_case import INITCAP, LOWER, UPPER
from penstock.sql.term import INT, STRING, Term, fill, raising, text

#: The longest text that repeating or padding may make: a slip in a count must not cost gigabytes.
LONGEST = 1_000_000
_LONG = f"texts of more than {LONGEST:,} characters are not made"


def _concat(*parts: Term) -> Term:
    return Term(" || ".join(p.inner for p in parts), STRING)


def _substring(s: Term, start: Term, length: Term | None = None) -> Term:
    if isinstance(start.value, int) and start.value >= 0 and (length is None or isinstance(length.value, int)):
        end = "" if length is None else f", {max(0, length.value)}"
        return Term(f"substring({s.sql}, {max(1, start.value)}{end})", STRING, closed=True)
    begin = "CASE WHEN {1} > 0 THEN CAST({1} AS BIGINT) - 1 WHEN {1} < 0 THEN length({0}) + {1} ELSE 0 END"
    # Without a length it is Java's largest, which counts from a start before the text.
    length = length or Term("2147483647", INT, 2147483647)
    template = (
        f"CASE WHEN {{1}} IS NOT NULL AND {{2}} IS NOT NULL THEN substring({{0}}, greatest({begin}, 0) + 1,"
        f" greatest({begin} + {{2}} - greatest({begin}, 0), 0)) END"
    )
    return fill(template, s, start, length, type=STRING)


def _pad(side: str) -> Callable[..., Term]:
    def made(s: Term, n: Term, pad: Term | None = None) -> Term:
        pad = pad or text(" ")
        template = (
            f"CASE WHEN {{2}} IS NULL THEN NULL WHEN {{1}} > {LONGEST} THEN {raising(_LONG, STRING)} WHEN {{1}} <= 0 THEN left({{0}}, 0)"
            f" WHEN {{2}} = '' THEN left({{0}}, {{1}}) ELSE {side}({{0}}, {{1}}, {{2}}) END"
        )
        return fill(template, s, n, pad, type=STRING)

    return made


def _repeat(s: Term, n: Term) -> Term:
    template = (
        f"CASE WHEN CAST({{1}} AS BIGINT) * strlen({{0}}) > {LONGEST} THEN {raising(_LONG, STRING)}"
        " ELSE repeat({0}, greatest({1}, 0)) END"
    )
    made = fill(template, s, n, type=STRING)
    return fill("CASE WHEN {1} IS NOT NULL THEN {0} END", made, n, type=STRING)


MADE: tuple[Function, ...] = (
    *function(
        "upper ucase",
        "strings",
        ("string", STRING, UPPER),
        note="raises for the few letters beside ß whose capital is more than one letter, and for letters new in Unicode 16",
    ),
    *function(
        "lower lcase",
        "strings",
        ("string", STRING, LOWER),
        note="raises for Σ and İ, and for letters new in Unicode 16",
    ),
    *function("initcap", "strings", ("string", STRING, INITCAP), note="raises for texts beyond ASCII"),
    *function(
        "length char_length character_length len",
        "strings",
        ("string", INT, "CAST(length({0}) AS INTEGER)"),
        ("binary", INT, "CAST(octet_length({0}) AS INTEGER)"),
    ),
    *function(
        "octet_length",
        "strings",
        ("string", INT, "CAST(strlen({0}) AS INTEGER)"),
        ("binary", INT, "CAST(octet_length({0}) AS INTEGER)"),
    ),
    *function(
        "bit_length",
        "strings",
        ("string", INT, "CAST(8 * strlen({0}) AS INTEGER)"),
        ("binary", INT, "CAST(8 * octet_length({0}) AS INTEGER)"),
    ),
    *function("trim btrim", "strings", ("string", STRING, "trim({0}, ' ')")),
    *function("ltrim", "strings", ("string", STRING, "ltrim({0}, ' ')")),
    *function("rtrim", "strings", ("string", STRING, "rtrim({0}, ' ')")),
    *function("concat", "strings", ("string*", STRING, _concat)),
    *function(
        "concat_ws",
        "strings",
        (
            "string, string*",
            STRING,
            lambda *a: fill(
                "CASE WHEN {0} IS NOT NULL THEN concat_ws(" + ", ".join(f"{{{i}}}" for i in range(len(a))) + ") END",
                *a,
                type=STRING,
            ),
        ),
    ),
    *function("substring substr", "strings", ("string, int, int?", STRING, _substring)),
    *function(
        "left", "strings", ("string, int", STRING, "CASE WHEN {1} <= 0 THEN left({0}, 0) ELSE left({0}, {1}) END")
    ),
    *function(
        "right", "strings", ("string, int", STRING, "CASE WHEN {1} <= 0 THEN left({0}, 0) ELSE right({0}, {1}) END")
    ),
    *function("repeat", "strings", ("string, int", STRING, _repeat), note=f"raises for more than {LONGEST:,} bytes"),
    *function(
        "space", "strings", ("int", STRING, lambda n: _repeat(text(" "), n)), note=f"raises for more than {LONGEST:,}"
    ),
    *function(
        "lpad",
        "strings",
        ("string, int, string?", STRING, _pad("lpad")),
        note=f"raises for more than {LONGEST:,} characters",
    ),
    *function(
        "rpad",
        "strings",
        ("string, int, string?", STRING, _pad("rpad")),
        note=f"raises for more than {LONGEST:,} characters",
    ),
    *function(
        "reverse", "strings", ("string", STRING, "array_to_string(list_reverse(regexp_extract_all({0}, '(?s).')), '')")
    ),
    *function(
        "replace",
        "strings",
        (
            "string, string, string?",
            STRING,
            lambda s, a, b=None: fill(
                "CASE WHEN {1} = '' THEN CASE WHEN {2} IS NOT NULL THEN {0} END ELSE replace({0}, {1}, {2}) END",
                s,
                a,
                b or text(""),
                type=STRING,
            ),
        ),
    ),
    *function("translate", "strings", ("string, string!, string!", STRING, "translate({0}, {1}, {2})")),
)
