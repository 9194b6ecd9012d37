"""Text on a terminal: values of users as they are, never as markup, commands to the terminal or an encoding error.

A value such as `[/b]` or `[red]` is markup to rich, `ESC [2J` clears a terminal, a right-to-left mark turns a line
around, and half of a surrogate pair cannot be written at all. Whatever is printed of a user's data goes through here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
import pyarrow as pa
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table

#: What a terminal obeys instead of showing it: control characters, surrogates, marks that change the direction.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_OBEYED_IN_CELL = re.compile(f"[\t\n{_OBEYED.pattern[1:]}")


def printable(text: str) -> str:
    r"""The text with everything that a terminal would obey written out; lines and tabs stay.

    >>> print(printable("a\x1b[2Jb \ud800 [/b]"))
    a\x1b[2Jb \ud800 [/b]
    """
    return _OBEYED.sub(_written_out, text)


def cell(value: Any) -> str:
    r"""A value in a table: nothing for null, one line for a text.

    >>> cell(None), cell(1.5), print(cell("two\nlines"))
    two\nlines
    ('', '1.5', None)
    """
    return "" if value is None else _OBEYED_IN_CELL.sub(_written_out, str(value))


def _written_out(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def json_safe(text: str) -> str:
    r"""A line of JSON with everything that a terminal would obey, or that cannot be encoded, as JSON writes it.

    >>> print(json_safe('"\x9b2J"'))
    "\u009b2J"
    """
    return _OBEYED.sub(_escaped, text)


class Terminal(Console):
    """A console that takes every text as it is, and lets none of them command the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


def terminal(file: IO[str] | None = None, *, quiet: bool = False, width: int | None = None) -> Console:
    """The console for everything that is not plain lines."""
    return Terminal(file=file, quiet=quiet, width=width, markup=False, emoji=False, highlight=False)


def say(*lines: str, file: IO[str] | None = None) -> None:
    """Print lines, at once."""
    print(*map(printable, lines), sep="\n", file=file, flush=True)


def grid(table: pa.Table, limit: int, title: str | None = None) -> Table:
    """The first rows of a table, for a console."""
    made = Table(
        *map(cell, table.column_names), title=None if title is None else printable(title), title_justify="left"
    )
    shown = table.slice(0, limit)
    for row in zip(*map(values, shown.columns)) if shown.num_columns else ():
        made.add_row(*map(cell, row))
    return made


def values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column; those that Python has no object for as text.

    >>> values(pa.chunked_array([pa.array([10**18, None], pa.timestamp("us"))]))
    ['33658-09-27 01:46:40.000000', None]
    """
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):  # beyond the year 9999, or not UTF-8
        return [_as_text(v) for v in column]


def _as_text(scalar: pa.Scalar) -> str | None:
    if not scalar.is_valid:
        return None
    if pa.types.is_string(scalar.type) or pa.types.is_large_string(scalar.type):
        return bytes(scalar.as_buffer()).decode(errors="backslashreplace")
    if pa.types.is_timestamp(scalar.type):
        return str(np.datetime64(scalar.value, scalar.type.unit)).replace("T", " ")
    return str(scalar)
