"""Texts in texts: where a piece is, and what is between the marks."""

# ruff: noqa: E501 - a row of a table or a template of SQL reads best as one line.
from __future__ import annotations

from penstock.sql.compare import guarded
from penstock.sql.function import Function, function
from penstock.sql.strings.matching import regex_of
from penstock.sql.term import BOOLEAN, INT, STRING, TEXTS, Term, Unfit, fill, raising, text


def _locate(part: Term, s: Term, start: Term | None = None) -> Term:
    if start is None:
        return Term(f"CAST(strpos({s.sql}, {part.sql}) AS INTEGER)", INT, closed=True)
    template = (
        "CASE WHEN {2} IS NULL THEN 0 WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN {2} <= 0 THEN 0"
        " WHEN {0} = '' THEN 1 WHEN strpos(substring({1}, {2}), {0}) = 0 THEN 0"
        " ELSE CAST(strpos(substring({1}, {2}), {0}) + {2} - 1 AS INTEGER) END"
    )
    return fill(template, part, s, start, type=INT)


def _elt(n: Term, *values: Term) -> Term:
    whens = " ".join(f"WHEN {i} THEN {{{i}}}" for i in range(1, len(values) + 1))
    fails = raising("elt(…) of a number beyond its values", STRING)
    return fill(f"CASE {{0}} {whens} ELSE CASE WHEN {{0}} IS NOT NULL THEN {fails} END END", n, *values, type=STRING)


def _overlay(s: Term, new: Term, start: Term, length: Term | None = None) -> Term:
    if (
        not isinstance(start.value, int)
        or start.value < 1
        or (length is not None and not isinstance(length.value, int))
    ):
        raise Unfit("overlay(…) takes a literal position from 1 on", "write it like overlay(s placing 'x' from 3)")
    if length is not None and length.value < 0:
        raise Unfit("overlay(…) of a negative number of characters")
    count = "length({1})" if length is None else str(length.value)
    template = f"left({{0}}, {start.value - 1}) || {{1}} || substring({{0}}, {start.value} + {count})"
    return fill(template, s, new, type=STRING)


def _levenshtein(a: Term, b: Term) -> Term:
    # DuckDB counts bytes.
    template = (
        "CASE WHEN strlen({0}) = length({0}) AND strlen({1}) = length({1}) THEN CAST(levenshtein({0}, {1}) AS INTEGER)"
        f" WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN {raising('levenshtein(…) of texts beyond ASCII', INT)} END"
    )
    return fill(template, a, b, type=INT)


def _split_part(s: Term, mark: Term, n: Term) -> Term:
    fails = raising("split_part(…) counts from 1, or from -1 at the end", STRING)
    template = (
        f"CASE WHEN {{0}} IS NULL OR {{1}} IS NULL OR {{2}} IS NULL THEN NULL WHEN {{2}} = 0 THEN {fails} WHEN {{1}} = '' THEN CASE WHEN {{2}} IN (1, -1) THEN {{0}} ELSE '' END"
        " ELSE split_part({0}, {1}, {2}) END"
    )
    return fill(template, s, mark, n, type=STRING)


def _substring_index(s: Term, mark: Term, n: Term) -> Term:
    if not isinstance(n.value, int) or not isinstance(mark.value, str) or not mark.value:
        raise Unfit(
            "substring_index(…) takes a literal mark and a literal count", "write it like substring_index(s, '.', 2)"
        )
    if n.value == 0:
        return fill("CASE WHEN {0} IS NOT NULL THEN '' END", s, type=STRING)
    if n.value > 0:
        return fill(f"array_to_string(string_split({{0}}, {{1}})[:{n.value}], {{1}})", s, mark, type=STRING)
    # From the end, marks that overlap are found from the end: only single characters are the same either way.
    if len(mark.value) > 1:
        raise Unfit("substring_index(…) from the end takes a delimiter of one character")
    return fill(f"array_to_string(string_split({{0}}, {{1}})[{n.value}:], {{1}})", s, mark, type=STRING)


def _split(s: Term, pattern: Term) -> Term:
    regex = regex_of(pattern)
    if regex.may_be_empty:
        raise Unfit(f"'{pattern.value}' matches the empty text", "split at something")
    plain = pattern.value
    if len(plain) == 1 and plain not in r"\.[]{}()*+-?^$|":
        return fill("string_split({0}, {1})", s, pattern, type=TEXTS)
    template = guarded("string_split_regex({0}, {1})", regex.ascii_only, TEXTS)
    return fill(template, s, text(regex.pattern), type=TEXTS)


def _chr(n: Term) -> Term:
    template = "CASE WHEN {0} < 0 THEN '' WHEN {0} % 256 = 0 THEN chr(0) ELSE chr(CAST({0} % 256 AS INTEGER)) END"
    return fill(template, n, type=STRING)


PIECES: tuple[Function, ...] = (
    *function("instr", "strings", ("string, string", INT, lambda s, part: _locate(part, s))),
    *function("locate", "strings", ("string, string, int?", INT, _locate)),
    *function("position", "strings", ("string, string, int?", INT, _locate)),
    *function("startswith", "strings", ("string, string", BOOLEAN, "starts_with({0}, {1})")),
    *function("endswith", "strings", ("string, string", BOOLEAN, "ends_with({0}, {1})")),
    *function("contains", "strings", ("string, string", BOOLEAN, "contains({0}, {1})")),
    *function("ascii", "strings", ("string", INT, "ascii({0})")),
    *function("char chr", "strings", ("bigint", STRING, _chr)),
    *function(
        "split",
        "strings",
        ("string, string!", TEXTS, _split),
        note="only its parts, such as split(s, ',')[0], and their number, size(split(s, ','))",
    ),
    *function("size cardinality", "strings", ("texts", INT, "CAST(len({0}) AS INTEGER)")),
    *function("split_part", "strings", ("string, string, int", STRING, _split_part)),
    *function("substring_index", "strings", ("string, string!, int!", STRING, _substring_index)),
    *function("elt", "strings", ("int, string*", STRING, _elt)),
    *function("overlay", "strings", ("string, string, int, int?", STRING, _overlay)),
    *function("levenshtein", "strings", ("string, string", INT, _levenshtein), note="raises for texts beyond ASCII"),
)
