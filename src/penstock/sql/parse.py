"""From the text a user wrote to a syntax tree in which every call keeps the name that was written.

sqlglot's Spark dialect knows functions by what they mean, and its knowledge is not always Spark's; here it only reads
the grammar. Strings are read here: Spark has its own escapes, and `''` inside a string is a quote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError

from penstock.errors import UserError

#: What nobody writes by hand; beyond it the parser would run out of stack.
MAX_DEPTH, MAX_LENGTH = 60, 50_000
_KEPT = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "POSITION", "OVERLAY")
_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[01][0-7]{2}|.)", re.DOTALL)
_TOKEN = re.compile(
    r"""(?P<raw>\b[rR](?:'[^']*'|"[^"]*"))|(?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")|(?P<name>`(?:[^`]|``)*`)"""
    r"""|(?P<comment>--[^\n]*|/\*.*?\*/)|(?P<open>['"`]|/\*)""",
    re.DOTALL,
)


class Dialect(Spark):
    """Spark's grammar without sqlglot's table of functions."""

    class Parser(Spark.Parser):  # type: ignore[misc,valid-type]
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            k: v for k, v in Spark.Parser.FUNCTION_PARSERS.items() if k in _KEPT
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            "CASE": Spark.Parser.NO_PAREN_FUNCTION_PARSERS["CASE"],
        }
        UNARY_PARSERS: ClassVar[dict[Any, Any]] = {
            **Spark.Parser.UNARY_PARSERS,
            # Not left out: to Spark `+1` is computed, no literal, and has the digits of any int.
            TokenType.PLUS: lambda self: exp.Anonymous(this="positive", expressions=[self._parse_unary()]),
        }
        STRICT_CAST = True


def parse(text: str, where: str = "expression") -> exp.Expr:
    """The syntax tree of one expression.

    >>> parse("'O''Brien'").name
    "O'Brien"
    >>> parse("(a", where="select 'slow'")
    Traceback (most recent call last):
    penstock.errors.UserError: select 'slow': syntax error in '(a' at line 1, column 2 near 'a': Expecting )
    """
    if not isinstance(text, str):
        raise UserError(f"{where}: {text!r} is not a SQL expression", hint="write it as text, such as 'speed > 40'")
    if not text.strip():
        raise UserError(f"{where}: empty expression", hint="write a SQL expression such as speed > 40")
    if len(text) > MAX_LENGTH:
        raise UserError(
            f"{where}: an expression of {len(text):,} characters", hint=f"at most {MAX_LENGTH:,}: compute it in steps"
        )
    if not text.isprintable() and any("\ud800" <= c <= "\udfff" for c in text):
        shown = text.encode("utf-8", "backslashreplace").decode()
        raise UserError(f"{where}: '{shown}' is not text: half a character in it (a lone surrogate)")
    plain = _plain(text, where)
    _check_depth(plain, text, where)
    try:
        trees = sqlglot.parse(plain, read=Dialect)
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        near = f" near '{first['highlight']}'" if first.get("highlight") else ""
        position = f"line {first.get('line', 1)}, column {first.get('col', 1)}"
        what = str(first.get("description") or "cannot be read").split("\n")[0].rstrip(".")
        raise UserError(
            f"{where}: syntax error in '{text}' at {position}{near}: {what}", hint=_odd_name(text)
        ) from None
    except RecursionError:
        raise too_deep(text, where) from None
    except (SqlglotError, ValueError, AttributeError, TypeError, KeyError, IndexError) as error:
        what = str(error).split("\n")[0].rstrip(".")
        raise UserError(f"{where}: syntax error in '{text}': {what or 'cannot be read'}") from None
    tree = trees[0] if len(trees) == 1 else None
    if isinstance(tree, exp.Alias):
        raise UserError(f"{where}: '{text}' names its result", hint=f"leave out 'AS {tree.alias}' here")
    kinds = (exp.Condition, exp.Interval, exp.Star, exp.Query, exp.Filter, exp.IgnoreNulls)
    if tree is None or not isinstance(tree, kinds):
        raise UserError(f"{where}: '{text}' is not an expression", hint="write one SQL expression such as speed > 40")
    return tree


def written(tree: exp.Expr) -> str:
    """A part of an expression as text, for messages.

    >>> written(parse("Upper(s) = 'a'"))
    "Upper(s) = 'a'"
    """
    return tree.sql(Dialect, normalize_functions=False)


#: Words that stand beside a name without being part of it.
_WORDS = {"and", "between", "case", "date", "in", "interval", "is", "like", "not", "or", "rlike", "timestamp", "when"}


def _odd_name(text: str) -> str | None:
    """What to write if two words side by side may be meant as one name.

    >>> _odd_name("Sensor Id + 1"), _odd_name("speed +")
    ('a name with spaces or signs in it goes between backquotes: `Sensor Id`', None)
    """
    words = re.match(r"[^\W\d]\w* [^\W\d]\w*", text.strip())
    if words and _WORDS & set(words[0].lower().split()):
        return None
    return f"a name with spaces or signs in it goes between backquotes: `{words[0]}`" if words else None


def too_deep(text: str, where: str) -> UserError:
    shown = text if len(text) <= 60 else f"{text[:40]}…"
    return UserError(f"{where}: '{shown}' is nested too deeply", hint="compute it in steps, with several attributes")


def _plain(text: str, where: str) -> str:
    """The text with every string in one plain spelling."""
    out, end = [], 0
    for found in _TOKEN.finditer(text):
        out.append(text[end : found.start()])
        end = found.end()
        if found["open"]:
            raise UserError(
                f"{where}: syntax error in '{text}': a quote or comment is not closed",
                hint="close it; write '' inside a text",
            )
        if found["raw"]:
            out.append(quoted(found["raw"][2:-1]))
        elif found["text"]:
            mark = found["text"][0]
            meant = _joined(unescaped(found["text"][1:-1].replace(mark * 2, "\\" + mark)))
            if meant is None:
                raise UserError(
                    f"{where}: {found[0]} in '{text}' has half a character in it (a lone surrogate)",
                    hint=r"write both halves, '\ud83d\ude00', or the character itself: '\U0001f600'",
                )
            out.append(quoted(meant))
        elif found["comment"]:
            out.append(" ")
        else:
            out.append(found[0])
    return "".join(out) + text[end:]


def _joined(value: str) -> str | None:
    r"""A text in which the two halves of a character, written as Java writes them, are one; None if a half is alone.

    >>> _joined("\ud83d\ude00") == "\U0001f600", _joined("\ud83d")
    (True, None)
    """
    try:
        return value.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeError:
        return None


def unescaped(body: str) -> str:
    r"""What the inside of a Spark string means.

    >>> unescaped(r"a\tb\_\u0041")
    'a\tb\\_A'
    """

    def meant(found: re.Match[str]) -> str:
        code = found[1]
        if code[0] in "uU" and len(code) > 1:
            return chr(int(code[1:], 16))
        if len(code) == 3:
            return chr(int(code, 8))
        return _ESCAPES.get(code, code)

    return _ESCAPE.sub(meant, body)


def quoted(value: str) -> str:
    """A string as this dialect reads it back.

    >>> unescaped(quoted("it's")[1:-1])
    "it's"
    """
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _check_depth(plain: str, text: str, where: str) -> None:
    depth = 0
    for token in _structure(plain):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token, 0)
        if depth > MAX_DEPTH:
            raise too_deep(text, where)
    if re.search(rf"(?:\bnot\s+|[-+~!]\s*){{{MAX_DEPTH}}}", plain, re.IGNORECASE):
        raise too_deep(text, where)
    if len(re.findall(r"\bcase\b", plain, re.IGNORECASE)) > MAX_DEPTH:
        raise too_deep(text, where)


def _structure(plain: str) -> Iterator[str]:
    for found in re.finditer(r"'(?:[^'\\]|\\.)*'|`(?:[^`]|``)*`|[()\[\]]", plain, re.DOTALL):
        yield found[0]
