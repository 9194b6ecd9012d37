"""The functions of texts and bytes."""

# ruff: noqa: E501 - a row of a table or a template of SQL reads best as one line.
from __future__ import annotations

from collections.abc import Callable

from penstock.sql.compare import guarded, like, rlike
from penstock.sql.function import Function, function
from penstock.sql.letter_case import INITCAP, LOWER, UPPER
from penstock.sql.regex import Regex, replacement, translate
from penstock.sql.term import BIG, BINARY, BOOLEAN, INT, NULL, STRING, TEXTS, Term, Unfit, fill, raising, text

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


def _regex(pattern: Term) -> Regex:
    return translate(pattern.value)


def _regexp_replace(s: Term, pattern: Term, new: Term) -> Term:
    regex = _regex(pattern)
    if regex.may_be_empty:
        raise Unfit(f"'{pattern.value}' matches the empty text", "write + in place of *")
    made = replacement(new.value, regex.groups)
    template = guarded("regexp_replace({0}, {1}, {2}, 'g')", regex.ascii_only, STRING)
    return fill(template, s, text(regex.pattern), text(made), type=STRING)


def _regexp_extract(s: Term, pattern: Term, group: Term | None = None) -> Term:
    regex, n = _regex(pattern), 1 if group is None else group.value
    if not 0 <= n <= regex.groups:
        hint = "write 0 for the whole match" if group is None else None
        raise Unfit(f"'{pattern.value}' has {regex.groups} groups, not {n}", hint)
    template = guarded(f"regexp_extract({{0}}, {{1}}, {n})", regex.ascii_only, STRING)
    return fill(template, s, text(regex.pattern), type=STRING)


def _regexp_count(s: Term, pattern: Term) -> Term:
    regex = _regex(pattern)
    if regex.may_be_empty:
        raise Unfit(f"'{pattern.value}' matches the empty text", "write + in place of *")
    template = guarded("CAST(len(regexp_extract_all({0}, {1})) AS INTEGER)", regex.ascii_only, INT)
    return fill(template, s, text(regex.pattern), type=INT)


def _regexp_substr(s: Term, pattern: Term) -> Term:
    regex = _regex(pattern)
    # An empty match is none, in Spark too.
    template = "nullif(regexp_extract({0}, {1}), '')"
    return fill(guarded(template, regex.ascii_only, STRING), s, text(regex.pattern), type=STRING)


def _split(s: Term, pattern: Term) -> Term:
    regex = _regex(pattern)
    if regex.may_be_empty:
        raise Unfit(f"'{pattern.value}' matches the empty text", "split at something")
    plain = pattern.value
    if len(plain) == 1 and plain not in r"\.[]{}()*+-?^$|":
        return fill("string_split({0}, {1})", s, pattern, type=TEXTS)
    template = guarded("string_split_regex({0}, {1})", regex.ascii_only, TEXTS)
    return fill(template, s, text(regex.pattern), type=TEXTS)


def _sha2(s: Term, bits: Term) -> Term:
    if bits.value not in (0, 256):
        raise Unfit(f"sha2(…, {bits.value}) is not available", "sha2(…, 256) is")
    return fill("sha256({0})", s, type=STRING)


def _chr(n: Term) -> Term:
    template = "CASE WHEN {0} < 0 THEN '' WHEN {0} % 256 = 0 THEN chr(0) ELSE chr(CAST({0} % 256 AS INTEGER)) END"
    return fill(template, n, type=STRING)


def _charset(name: Term) -> None:
    if name.value.lower() not in ("utf-8", "utf8"):
        raise Unfit(f"the character set '{name.value}' is not available", "'utf-8' is")


def _encode(s: Term, charset: Term) -> Term:
    _charset(charset)
    return fill("encode({0})", s, type=BINARY)


def _decode(b: Term, charset: Term) -> Term:
    _charset(charset)
    return fill("decode({0})", b, type=STRING)


def _format(pattern: Term, *values: Term) -> Term:
    """Only what C and Java write alike: whole numbers and texts."""
    import re

    from penstock.sql.term import INTEGERS, forced

    out, used, end = [], 0, 0
    for found in re.finditer(r"%(?:%|(-?)(0?)(\d{0,3})([a-zA-Z])|)", pattern.value):
        out.append(text(pattern.value[end : found.start()]).sql) if found.start() > end else None
        end = found.end()
        left, zero, width, kind = found.groups()
        if found[0] == "%%":
            out.append("'%'")
            continue
        if (
            kind not in ("d", "s")
            or (kind == "s" and (zero or width))
            or (zero and left)
            or ((zero or left) and not width)
        ):
            raise Unfit(f"'{found[0]}' in '{pattern.value}' is not available", "%d, %5d, %05d, %-5d and %s are")
        if used >= len(values):
            raise Unfit(f"'{pattern.value}' needs more values")
        value, used = values[used], used + 1
        if value.type == NULL:
            value = forced(value, BIG if kind == "d" else STRING)
        if (kind == "d" and value.type not in INTEGERS) or (
            kind == "s" and value.type not in (*INTEGERS, STRING, BOOLEAN)
        ):
            raise Unfit(
                f"'{found[0]}' in '{pattern.value}' does not fit the type of its value",
                "cast the value to bigint or string",
            )
        plain = f"coalesce(CAST({value.sql} AS VARCHAR), 'null')"
        if width and kind == "d" and zero:
            digits = f"CAST(greatest({width}, length({plain})) AS INTEGER)"
            plain = (
                f"CASE WHEN {value.inner} < 0 THEN '-' || lpad(substring({plain}, 2), CAST({digits} - 1 AS INTEGER), '0')"
                f" WHEN {value.inner} IS NULL THEN lpad('null', greatest({width}, 4), ' ')"
                f" ELSE lpad({plain}, {digits}, '0') END"
            )
        elif width:
            pad = "rpad" if left else "lpad"
            plain = f"{pad}({plain}, CAST(greatest({width}, length({plain})) AS INTEGER), ' ')"
        out.append(plain)
    if used < len(values):
        raise Unfit(f"'{pattern.value}' has places for {used} of {len(values)} values", "write %s for each")
    rest = pattern.value[end:]
    if rest or not out:
        out.append(text(rest).sql)
    return Term(" || ".join(f"({o})" for o in out), STRING)


_UNHEX = (
    "CASE WHEN regexp_full_match({0}, '[0-9a-fA-F]*') THEN unhex({0})"
    f" WHEN {{0}} IS NOT NULL THEN {raising('a text that is not hexadecimal', BINARY)} END"
)
_UNBASE64 = (
    "CASE WHEN regexp_full_match({0}, '(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?')"
    f" THEN from_base64({{0}}) WHEN {{0}} IS NOT NULL THEN {raising('a text that is not base64', BINARY)} END"
)
_URL = "replace(replace(replace(url_encode({0}), '%20', '+'), '%2A', '*'), '~', '%7E')"

STRINGS: tuple[Function, ...] = (
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
    *function(
        "initcap",
        "strings",
        ("string", STRING, INITCAP),
        note="raises for texts beyond ASCII",
        tried=("initcap(s)", "initcap(q)", "initcap(' aB c-d  E')"),
    ),
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
    *function(
        "trim btrim",
        "strings",
        ("string", STRING, "trim({0}, ' ')"),
        tried=("trim(both 'a' from s)", "trim(leading 'a' from s)", "trim(trailing from s)", "trim(both r from s)"),
    ),
    *function("ltrim", "strings", ("string", STRING, "ltrim({0}, ' ')")),
    *function("rtrim", "strings", ("string", STRING, "rtrim({0}, ' ')")),
    *function(
        "concat",
        "strings",
        ("string*", STRING, _concat),
        tried=("concat(s, r, i)", "concat(s, x)", "concat(ok, d, ts, m)"),
    ),
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
        tried=("concat_ws('-', s, r)", "concat_ws(', ', s, null, i)"),
    ),
    *function(
        "substring substr",
        "strings",
        ("string, int, int?", STRING, _substring),
        tried=tuple(f"substring(s, {n})" for n in (-9, -2, 0, 1, 2, 9))
        + tuple(f"substring(s, {n}, {k})" for n in (-9, -2, 0, 2) for k in (-1, 0, 1, 8))
        + ("substring(s from 2 for 1)", "substr(s, 2, 2)", "substring(s, j)", "substring(s, j, 2)"),
    ),
    *function(
        "left",
        "strings",
        ("string, int", STRING, "CASE WHEN {1} <= 0 THEN left({0}, 0) ELSE left({0}, {1}) END"),
        tried=("left(s, 2)", "left(s, -1)", "left(s, 0)"),
    ),
    *function(
        "right",
        "strings",
        ("string, int", STRING, "CASE WHEN {1} <= 0 THEN left({0}, 0) ELSE right({0}, {1}) END"),
        tried=("right(s, 2)", "right(s, -1)"),
    ),
    *function(
        "repeat",
        "strings",
        ("string, int", STRING, _repeat),
        note=f"raises for more than {LONGEST:,} bytes",
        tried=("repeat(s, 3)", "repeat(s, 0)", "repeat(s, -1)", "repeat(s, t)"),
    ),
    *function(
        "space",
        "strings",
        ("int", STRING, lambda n: _repeat(text(" "), n)),
        note=f"raises for more than {LONGEST:,}",
        tried=("space(3)", "space(t)"),
    ),
    *function(
        "lpad",
        "strings",
        ("string, int, string?", STRING, _pad("lpad")),
        note=f"raises for more than {LONGEST:,} characters",
        tried=("lpad(s, 5)", "lpad(s, 2, 'xy')", "lpad(s, 7, 'xy')", "lpad(s, 7, '')", "lpad(s, t, r)"),
    ),
    *function(
        "rpad",
        "strings",
        ("string, int, string?", STRING, _pad("rpad")),
        note=f"raises for more than {LONGEST:,} characters",
        tried=("rpad(s, 5)", "rpad(s, 2, 'xy')", "rpad(s, 7, 'xy')", "rpad(s, 7, '')", "rpad(s, t, r)"),
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
        tried=("replace(s, 'a', 'bb')", "replace(s, 'a')", "replace(s, '', 'x')", "replace(s, r, 'x')"),
    ),
    *function(
        "translate",
        "strings",
        ("string, string!, string!", STRING, "translate({0}, {1}, {2})"),
        tried=("translate(s, 'abc', 'xy')", "translate(s, 'aé', 'éa')"),
    ),
    *function(
        "instr",
        "strings",
        ("string, string", INT, lambda s, part: _locate(part, s)),
        tried=("instr(s, 'a')", "instr(s, '')"),
    ),
    *function(
        "locate",
        "strings",
        ("string, string, int?", INT, _locate),
        tried=("locate('a', s)", "locate('a', s, 2)", "locate('', s, 2)", "locate('a', s, 0)", "locate(r, s, t)"),
    ),
    *function(
        "position",
        "strings",
        ("string, string, int?", INT, _locate),
        tried=("position('a', s)", "position('a' in s)", "position(r, s)"),
    ),
    *function(
        "startswith", "strings", ("string, string", BOOLEAN, "starts_with({0}, {1})"), tried=("startswith(s, 'a')",)
    ),
    *function("endswith", "strings", ("string, string", BOOLEAN, "ends_with({0}, {1})"), tried=("endswith(s, 'a')",)),
    *function("contains", "strings", ("string, string", BOOLEAN, "contains({0}, {1})"), tried=("contains(s, 'a')",)),
    *function("ascii", "strings", ("string", INT, "ascii({0})")),
    *function("char chr", "strings", ("bigint", STRING, _chr), tried=("chr(65)", "char(l)")),
    *function(
        "split",
        "strings",
        ("string, string!", TEXTS, _split),
        note="only its parts, such as split(s, ',')[0], and their number, size(split(s, ','))",
        tried=(
            "split(s, ',')[0]",
            "split(s, 'a')[0]",
            "size(split(s, ','))",
            "split(s, ',')[1]",
            "split(s, '[ab]')[0]",
            "size(split(s, '[,;]'))",
        ),
    ),
    *function(
        "size cardinality", "strings", ("texts", INT, "CAST(len({0}) AS INTEGER)"), tried=("size(split(s, 'a'))",)
    ),
    *function(
        "split_part",
        "strings",
        ("string, string, int", STRING, _split_part),
        tried=(
            "split_part(s, 'a', 1)",
            "split_part(s, 'a', -1)",
            "split_part(s, 'a', 0)",
            "split_part(s, '', 1)",
            "split_part(s, r, 2)",
            "split_part(s, r, j)",
        ),
    ),
    *function(
        "substring_index",
        "strings",
        ("string, string!, int!", STRING, _substring_index),
        tried=(
            "substring_index(s, 'a', 1)",
            "substring_index(s, 'a', -1)",
            "substring_index(s, ',', 2)",
            "substring_index(s, ',', 0)",
            "substring_index(s, 'ab', 1)",
        ),
    ),
    *function(
        "elt", "strings", ("int, string*", STRING, _elt), tried=("elt(t, s, r)", "elt(1, s, 'b')", "elt(j, s, r, 'c')")
    ),
    *function(
        "overlay",
        "strings",
        ("string, string, int, int?", STRING, _overlay),
        tried=(
            "overlay(s placing r from 2)",
            "overlay(s, 'xy', 2)",
            "overlay(s, r, 2, 1)",
            "overlay(s placing 'z' from 3 for 2)",
            "overlay(s, 'z', 1, 0)",
        ),
    ),
    *function(
        "levenshtein",
        "strings",
        ("string, string", INT, _levenshtein),
        note="raises for texts beyond ASCII",
        tried=("levenshtein(g, 'abc')", "levenshtein(g, q)"),
    ),
    *function(
        "format_string printf",
        "strings",
        ("string!, any*", STRING, _format),
        note="%d, %5d, %05d, %-5d, %s and %%",
        tried=(
            "format_string('%05d', i)",
            "format_string('%d|%s|%%', l, s)",
            "format_string('%6d %-4d.', t, h)",
            "format_string('%s|%s', s, s)",
            "format_string('%s %s', ok, i)",
        ),
    ),
    *function("md5", "hashes", ("text", STRING, "md5({0})"), ("binary", STRING, "md5({0})")),
    *function("sha1 sha", "hashes", ("text", STRING, "sha1({0})"), ("binary", STRING, "sha1({0})")),
    *function(
        "sha2",
        "hashes",
        ("text, int!", STRING, _sha2),
        ("binary, int!", STRING, _sha2),
        note="of 256 bits",
        tried=("sha2(s, 256)", "sha2(b, 0)"),
    ),
    *function("hex", "hashes", ("text", STRING, "hex(encode({0}))"), ("binary", STRING, "hex({0})")),
    *function(
        "base64",
        "hashes",
        ("text", STRING, "base64(encode({0}))"),
        ("binary", STRING, "base64({0})"),
        note="as Spark writes it without line breaks",
    ),
    *function("encode", "hashes", ("string, string!", BINARY, _encode), tried=("encode(s, 'utf-8')",)),
    *function(
        "decode",
        "hashes",
        ("binary, string!", STRING, _decode),
        note="raises for bytes that are not UTF-8",
        tried=("decode(encode(s, 'utf-8'), 'UTF-8')",),
    ),
    *function(
        "unhex",
        "hashes",
        ("string", BINARY, _UNHEX),
        note="raises for what is not hexadecimal",
        tried=("unhex(hex(s))", "unhex('abc')", "unhex(s)", "unhex(g)"),
    ),
    *function(
        "unbase64",
        "hashes",
        ("string", BINARY, _UNBASE64),
        note="raises for what base64 does not write",
        tried=("unbase64(base64(s))", "unbase64(base64(b))"),
    ),
    *function("url_encode", "hashes", ("string", STRING, _URL)),
    *function(
        "regexp_like regexp rlike",
        "patterns",
        ("string, string!", BOOLEAN, rlike),
        note="Java's regular expressions without look-around, back references and possessive quantifiers",
        tried=(
            "regexp_like(s, 'a+')",
            "s rlike '^a.*$'",
            "s rlike '[a-c]{2}'",
            r"s rlike r'\d+\s\w'",
            "g rlike '(?i)A'",
            r"q rlike r'\bjunk\b'",
            "not s rlike '.'",
        ),
    ),
    *function(
        "regexp_replace",
        "patterns",
        ("string, string!, string!", STRING, _regexp_replace),
        note="the pattern does not match the empty text",
        tried=(
            "regexp_replace(s, 'a', 'x')",
            "regexp_replace(s, '([a-z])([0-9])?', '<$1>')",
            r"regexp_replace(s, r'\s+', '')",
            r"regexp_replace(s, '[^a-z]', '\\$')",
        ),
    ),
    *function(
        "regexp_extract",
        "patterns",
        ("string, string!, int!?", STRING, _regexp_extract),
        tried=("regexp_extract(s, '(a)(b)?')", "regexp_extract(s, '(a)(b)?', 2)", "regexp_extract(s, '[a-z]+', 0)"),
    ),
    *function("regexp_count", "patterns", ("string, string!", INT, _regexp_count), tried=("regexp_count(s, '[a-z]')",)),
    *function(
        "regexp_substr",
        "patterns",
        ("string, string!", STRING, _regexp_substr),
        tried=("regexp_substr(s, '[b-z]+')", "regexp_substr(s, 'b*')"),
    ),
    *function(
        "like",
        "patterns",
        ("string, string!", BOOLEAN, like),
        tried=(
            "s like 'a%'",
            "s like '_b%'",
            r"s like '%\\_%'",
            r"s like '%\_%'",
            r"s like '%\%%'",
            "s like '%!_%' escape '!'",
            "s not like '%a%'",
            "s ilike 'A%'",
            "s like ''",
        ),
    ),
)
