"""The tables of functions as a page of the documentation. To write it anew:

python tests/sql/functions_page.py > docs/functions.md
"""

from __future__ import annotations

from operator_rows import OPERATORS

from penstock.sql.catalog import INSTEAD, functions
from penstock.sql.function import Function

_FAMILIES = {
    "operators": "Operators, literals and casts",
    "strings": "Texts",
    "patterns": "Patterns in texts",
    "hashes": "Bytes and hashes",
    "numbers": "Numbers",
    "times": "Dates and times",
    "conditions": "Choices and nulls",
}
_HEAD = """# Functions

Expressions are written in Spark SQL and mean what Spark 4 means by them, in ANSI mode and with the session's time zone
UTC: the same values, the same types, and an error where Spark raises one (a cast that does not fit, a number that
overflows, a divisor of zero). `try_cast`, `try_divide` and the other `try_` functions give null instead.

Every line here is compared with Spark itself by a test, on nulls, NaN, the smallest and largest numbers, leap days,
years 1 to 9999 and texts beyond ASCII, and by `make fuzz` on random values and inside each other. What is not listed is
refused when the query is built, with what to write instead; so is a constant that has no value, such as the text in
`i = 'x'`, or `1 / 0`. Where a function raises although Spark would answer, its line says so. An argument that raises
does so even where Spark would not look at it, because another one is null. An event on which something raises goes to
the dead letters. Aggregates have [a page of their own](aggregates.md); they are compared in the same way.

This page is written from the tables in `penstock.sql`.
"""


def page() -> str:
    """The text of docs/functions.md.

    >>> page().startswith("# Functions")
    True
    """
    parts = [_HEAD]
    rows = [*OPERATORS, *functions().values()]
    for family, title in _FAMILIES.items():
        parts.append(f"\n## {title}\n\n| written | remarks |\n| --- | --- |\n")
        parts += [_line(f) for f in rows if f.family == family]
    parts.append("\n## What to write in place of others\n\n| not available | write |\n| --- | --- |\n")
    parts += [f"| `{name}` | `{_cell(instead)}` |\n" for name, instead in sorted(INSTEAD.items())]
    return "".join(parts)


def _line(function: Function) -> str:
    written = ", ".join(f"`{_cell(call)}`" for call in function.calls()) or f"`{_cell(function.name)}`"
    remarks = [function.note] if function.note else []
    if function.close:
        remarks.append(f"up to {function.close} units in the last place from Java's")
    return f"| {written} | {_cell('; '.join(remarks))} |\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print(page(), end="")
