"""Java's regular expressions, as far as RE2 means the same by them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.sql.term import Unfit

_LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_SPACES = r" \t\n\x0b\f\r"
_SAME = frozenset("dDwWAz") | frozenset("tnrfa") | frozenset(r"\.[]{}()*+-?^$|/&~#@!%,:;<>='\"` _")
_QUANTIFIER = re.compile(r"[*+?]|\{(\d{1,4})(?:,(\d{0,4}))?\}")


@dataclass(frozen=True)
class Regex:
    """A pattern for RE2; `ascii_only` if it means the same only for texts of ASCII characters."""

    pattern: str
    groups: int
    ascii_only: bool
    may_be_empty: bool


def translate(java: str, *, searching: bool = False) -> Regex:
    r"""The pattern for RE2, or Unfit with what stands in the way; `searching`: only whether it matches matters.

    >>> translate(r"^a.*\d").pattern
    '^a[^\\n\\r\\x{85}\\x{2028}\\x{2029}]*\\d'
    >>> translate("(?=a)")
    Traceback (most recent call last):
    penstock.sql.term.Unfit: '(?=a)' in the regular expression '(?=a)' is not available
    """
    out: list[str] = []
    i = groups = 0
    ascii_only = False

    def refuse(what: str, hint: str | None = None) -> Unfit:
        return Unfit(f"'{what}' in the regular expression '{java}' is not available", hint)

    while i < len(java):
        c = java[i]
        if c == "\\":
            escape = java[i + 1 : i + 2]
            if escape == "s":
                out.append(f"[{_SPACES}]")
            elif escape == "S":
                out.append(f"[^{_SPACES}]")
            elif escape in "bB" and escape:
                out.append("\\" + escape)
                ascii_only = True
            elif escape == "u" and re.fullmatch(r"[0-9a-fA-F]{4}", java[i + 2 : i + 6]):
                out.append(f"\\x{{{java[i + 2 : i + 6]}}}")
                i += 4
            elif escape in _SAME and escape:
                out.append("\\" + escape)
            else:
                raise refuse(java[i : i + 2])
            i += 2
        elif c == "[":
            end, text = _class(java, i, refuse)
            out.append(text)
            i = end
        elif c == "(":
            opening = re.match(r"\((\?:|\?i\)|\?[^:)]*[:)=!<>]?)?", java[i:])
            assert opening is not None
            if opening[0] == "(":
                groups += 1
            elif opening[0] == "(?i)" and i == 0:
                ascii_only = True
            elif opening[0] != "(?:":
                raise refuse(opening[0])
            out.append(opening[0])
            i += len(opening[0])
        elif c == ".":
            out.append(f"[^{_LINE_ENDS}]")
            i += 1
        elif c == "$":
            if not searching:
                raise refuse("$", r"write \z for the end of the text: $ also matches before a last line break")
            out.append(rf"(?:\r\n|[{_LINE_ENDS}])?\z")
            i += 1
        elif found := _QUANTIFIER.match(java, i):
            if any(n and int(n) > 1000 for n in found.groups()):
                raise refuse(found[0], "repeat at most 1,000 times")
            i = found.end()
            out.append(found[0])
            if java[i : i + 1] == "?":
                out.append("?")
                i += 1
            elif java[i : i + 1] == "+":
                raise refuse(found[0] + "+")
        elif c in "{}]":
            raise refuse(c, f"write \\{c} for the character itself")
        else:
            out.append(c)
            i += 1
    try:
        checked = re.compile(java.replace(r"\z", r"\Z"))
    except (re.error, RecursionError, OverflowError) as error:
        raise Unfit(f"'{java}' is not a regular expression: {error}") from None
    empty = any(m.start() == m.end() for text in ("", "a", " a b ") for m in checked.finditer(text))
    return Regex("".join(out), groups, ascii_only, empty)


def _class(java: str, start: int, refuse: type[Unfit] | object) -> tuple[int, str]:
    """A set of characters in brackets: where it ends, and how RE2 writes it."""
    out, i = ["["], start + 1
    if java[i : i + 1] == "^":
        out.append("^")
        i += 1
    first = True
    while i < len(java):
        c = java[i]
        if c == "]" and not first:
            return i + 1, "".join(out) + "]"
        if c in "[]" or java.startswith("&&", i):
            raise refuse(c if c in "[]" else "&&", "write \\[ or \\] for the brackets themselves")  # type: ignore[operator]
        if c == "\\":
            escape = java[i + 1 : i + 2]
            if escape == "s":
                out.append(_SPACES)
            elif escape and escape in _SAME - frozenset("Az"):
                out.append("\\" + escape)
            else:
                raise refuse(java[i : i + 2])  # type: ignore[operator]
            i += 2
        else:
            out.append(c)
            i += 1
        first = False
    raise refuse("[", "close the bracket")  # type: ignore[operator]


def replacement(java: str, groups: int) -> str:
    """What is put in place of a match: `$1` is the first group.

    >>> replacement("<$1>", 1)
    '<\\\\1>'
    """

    def meant(found: re.Match[str]) -> str:
        if found[0].startswith("$") and found[1]:
            if int(found[1]) > groups:
                raise Unfit(f"'{found[0]}' in '{java}': the regular expression has {groups} groups")
            return f"\\{found[1]}"
        if found[0].startswith("\\") and len(found[0]) == 2:
            return "\\\\" if found[0] == "\\\\" else found[0][1]
        raise Unfit(f"'{found[0]}' in '{java}' is not available", "write \\$ for the character itself")

    return re.sub(r"\$(\d?)|\\.?", meant, java)
