"""Values put into a text, by `format_string`."""

# ruff: noqa: E501 - a row of a table or a template of SQL reads best as one line.
from __future__ import annotations

import re

from penstock.sql.function import Function, function
from penstock.sql.term import BIG, BOOLEAN, INTEGERS, NULL, STRING, Term, Unfit, forced, text


def _format(pattern: Term, *values: Term) -> Term:
    """Only what C and Java write alike: whole numbers and texts."""
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


FORMATTED: tuple[Function, ...] = (
    *function(
        "format_string printf", "strings", ("string!, any*", STRING, _format), note="%d, %5d, %05d, %-5d, %s and %%"
    ),
)
