"""Spark's patterns for dates and times, such as `yyyy-MM-dd HH:mm`: writing and reading with them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.sql.term import Unfit, text

_PIECE = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|(.)", re.DOTALL)
#: What strftime writes for a run of letters.
_WRITES = {
    "yyyy": "%Y", "yy": "%y", "M": "%-m", "MM": "%m", "MMM": "%b", "MMMM": "%B", "L": "%-m", "LL": "%m", "LLL": "%b",
    "LLLL": "%B", "d": "%-d", "dd": "%d", "E": "%a", "EE": "%a", "EEE": "%a", "EEEE": "%A", "H": "%-H", "HH": "%H",
    "h": "%-I", "hh": "%I", "m": "%-M", "mm": "%M", "s": "%-S", "ss": "%S", "SSS": "%g", "SSSSSS": "%f", "a": "%p",
    "D": "%-j", "DDD": "%j",
}  # fmt: skip
#: What is written by an expression over the moment.
_COMPUTED = {
    "y": "CAST(year({0}) AS VARCHAR)",
    "yyy": "lpad(CAST(year({0}) AS VARCHAR), CAST(greatest(3, length(CAST(year({0}) AS VARCHAR))) AS INTEGER), '0')",
    "Q": "CAST(quarter({0}) AS VARCHAR)",
    "q": "CAST(quarter({0}) AS VARCHAR)",
    "QQ": "'0' || CAST(quarter({0}) AS VARCHAR)",
    "qq": "'0' || CAST(quarter({0}) AS VARCHAR)",
    "QQQ": "'Q' || CAST(quarter({0}) AS VARCHAR)",
    "qqq": "'Q' || CAST(quarter({0}) AS VARCHAR)",
    "QQQQ": "['1st', '2nd', '3rd', '4th'][quarter({0})] || ' quarter'",
    "qqqq": "['1st', '2nd', '3rd', '4th'][quarter({0})] || ' quarter'",
    "k": "CAST((hour({0}) + 23) % 24 + 1 AS VARCHAR)",
    "kk": "lpad(CAST((hour({0}) + 23) % 24 + 1 AS VARCHAR), 2, '0')",
    "K": "CAST(hour({0}) % 12 AS VARCHAR)",
    "KK": "lpad(CAST(hour({0}) % 12 AS VARCHAR), 2, '0')",
    "DD": "lpad(strftime({0}, '%-j'), CAST(greatest(2, length(strftime({0}, '%-j'))) AS INTEGER), '0')",
    "S": "left(strftime({0}, '%f'), 1)",
    "SS": "left(strftime({0}, '%f'), 2)",
    "SSSS": "left(strftime({0}, '%f'), 4)",
    "SSSSS": "left(strftime({0}, '%f'), 5)",
    "SSSSSSS": "strftime({0}, '%f') || '0'",
    "SSSSSSSS": "strftime({0}, '%f') || '00'",
    "SSSSSSSSS": "strftime({0}, '%f') || '000'",
}
#: What is the same for all times: their zone is UTC, their years are of this era.
_FIXED = {
    "G": "AD", "GG": "AD", "GGG": "AD", "GGGG": "Anno Domini", "X": "Z", "XX": "Z", "XXX": "Z", "x": "+00",
    "xx": "+0000", "xxx": "+00:00", "Z": "+0000", "ZZ": "+0000", "ZZZ": "+0000", "ZZZZ": "GMT", "ZZZZZ": "Z",
    "z": "UTC", "zz": "UTC", "zzz": "UTC", "zzzz": "Coordinated Universal Time", "VV": "UTC", "O": "GMT",
    "OOOO": "GMT",
}  # fmt: skip
_READS = {
    "yyyy": ("[0-9]{4}", "%Y"), "MM": ("[0-9]{2}", "%m"), "dd": ("[0-9]{2}", "%d"), "HH": ("[0-9]{2}", "%H"),
    "mm": ("[0-9]{2}", "%M"), "ss": ("[0-9]{2}", "%S"),
    **{"S" * n: (f"[0-9]{{1,{n}}}", "%f") for n in range(1, 7)},
}  # fmt: skip
_NEVER = {"Y": "y", "w": "D", "W": "d", "F": "d", "u": "E", "e": "E", "c": "E"}


def pieces(pattern: str) -> Iterator[tuple[str, str]]:
    """The runs of letters of a pattern and the text between them: ("letters" or "text", what)."""
    for found in _PIECE.finditer(pattern):
        if found[1] is not None:
            if "{" in found[1]:
                raise Unfit(f"'{{' in the pattern '{pattern}' is not available")
            yield "text", found[1].replace("''", "'") or "'"
        elif found[2]:
            yield "letters", found[0]
        elif found[3] in "[]{}#'":
            raise Unfit(f"'{found[3]}' in the pattern '{pattern}' is not available", "quote text in it: 'o''clock'")
        else:
            yield "text", found[3]


def writing(pattern: str) -> str:
    """A template over a timestamp that writes it by a pattern.

    >>> writing("yyyy-MM-dd")
    "strftime({0}, '%Y-%m-%d')"
    >>> writing("w")
    Traceback (most recent call last):
    penstock.sql.term.Unfit: 'w' in the pattern 'w' is not available
    """
    parts: list[tuple[bool, str]] = []
    for kind, what in pieces(pattern):
        if kind == "text":
            parts.append((True, what.replace("%", "%%")))
        elif what in _WRITES:
            parts.append((True, _WRITES[what]))
        elif what in _COMPUTED:
            parts.append((False, _COMPUTED[what]))
        elif what in _FIXED:
            parts.append((True, _FIXED[what]))
        else:
            hint = f"there is {_NEVER[what[0]]}" if what[0] in _NEVER else None
            raise Unfit(f"'{what}' in the pattern '{pattern}' is not available", hint)
    sql, run = [], ""
    for plain, part in [*parts, (False, "")]:
        if plain:
            run += part
            continue
        if run:
            sql.append(f"strftime({{0}}, {text(run).sql})")
        run = ""
        if part:
            sql.append(f"({part})" if "||" in part else part)
    return " || ".join(sql) if sql else "CASE WHEN {0} IS NOT NULL THEN '' END"


def leniently(regex: str) -> str:
    """What Spark may read by the pattern behind a regular expression: signs, long years, letters of any case."""
    return "(?i)" + regex.replace("[0-9]{4}", "[+-]?[0-9]{4,}")


def reading(pattern: str) -> tuple[str, str]:
    """The regular expression a text must match to be read by a pattern, and strptime's pattern.

    >>> reading("dd.MM.yyyy")
    ('[0-9]{2}\\\\.[0-9]{2}\\\\.[0-9]{4}', '%d.%m.%Y')
    """
    regex, duck, seen = "", "", set()
    for kind, what in pieces(pattern):
        if kind == "text":
            regex += re.escape(what) if what.isascii() else what
            duck += what.replace("%", "%%")
        elif what in _READS and what[0] not in seen:
            seen.add(what[0])
            regex += _READS[what][0]
            duck += _READS[what][1]
        else:
            hint = "read with yyyy, MM, dd, HH, mm, ss and S, each once, all digits written"
            raise Unfit(f"'{what}' in the pattern '{pattern}' cannot be read", hint)
    if not {"y", "M", "d"} <= seen:
        raise Unfit(f"the pattern '{pattern}' names no day", "it needs yyyy, MM and dd")
    return regex, duck
