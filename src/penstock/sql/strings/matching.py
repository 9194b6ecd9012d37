"""What patterns match: regular expressions as Java reads them, and LIKE."""

from __future__ import annotations

from penstock.sql.compare import guarded, like, rlike
from penstock.sql.function import Function, function
from penstock.sql.regex import Regex, replacement, translate
from penstock.sql.term import BOOLEAN, INT, STRING, Term, Unfit, fill, text


def regex_of(pattern: Term) -> Regex:
    return translate(pattern.value)


def _regexp_replace(s: Term, pattern: Term, new: Term) -> Term:
    regex = regex_of(pattern)
    if regex.may_be_empty:
        raise Unfit(f"'{pattern.value}' matches the empty text", "write + in place of *")
    made = replacement(new.value, regex.groups)
    template = guarded("regexp_replace({0}, {1}, {2}, 'g')", regex.ascii_only, STRING)
    return fill(template, s, text(regex.pattern), text(made), type=STRING)


def _regexp_extract(s: Term, pattern: Term, group: Term | None = None) -> Term:
    regex, n = regex_of(pattern), 1 if group is None else group.value
    if not 0 <= n <= regex.groups:
        hint = "write 0 for the whole match" if group is None else None
        raise Unfit(f"'{pattern.value}' has {regex.groups} groups, not {n}", hint)
    template = guarded(f"regexp_extract({{0}}, {{1}}, {n})", regex.ascii_only, STRING)
    return fill(template, s, text(regex.pattern), type=STRING)


def _regexp_count(s: Term, pattern: Term) -> Term:
    regex = regex_of(pattern)
    if regex.may_be_empty:
        raise Unfit(f"'{pattern.value}' matches the empty text", "write + in place of *")
    template = guarded("CAST(len(regexp_extract_all({0}, {1})) AS INTEGER)", regex.ascii_only, INT)
    return fill(template, s, text(regex.pattern), type=INT)


def _regexp_substr(s: Term, pattern: Term) -> Term:
    regex = regex_of(pattern)
    # An empty match is none, in Spark too.
    template = "nullif(regexp_extract({0}, {1}), '')"
    return fill(guarded(template, regex.ascii_only, STRING), s, text(regex.pattern), type=STRING)


MATCHED: tuple[Function, ...] = (
    *function(
        "regexp_like regexp rlike",
        "patterns",
        ("string, string!", BOOLEAN, rlike),
        note="Java's regular expressions without look-around, back references and possessive quantifiers",
    ),
    *function(
        "regexp_replace",
        "patterns",
        ("string, string!, string!", STRING, _regexp_replace),
        note="the pattern does not match the empty text",
    ),
    *function("regexp_extract", "patterns", ("string, string!, int!?", STRING, _regexp_extract)),
    *function("regexp_count", "patterns", ("string, string!", INT, _regexp_count)),
    *function("regexp_substr", "patterns", ("string, string!", STRING, _regexp_substr)),
    *function("like", "patterns", ("string, string!", BOOLEAN, like)),
)
