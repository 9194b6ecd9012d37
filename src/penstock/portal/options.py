"""Options that several commands have, and what becomes of the dial."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from penstock.engine.query import Queries
from penstock.errors import UserError
from penstock.plan.consistency import Consistency
from penstock.portal.script import Script

File = Annotated[str, typer.Argument(metavar="FILE.py[:NAME]", help="A query file; NAME is the stream, else `query`.")]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Master = Annotated[str | None, typer.Option(help="Spark master, such as local[4] or spark://host:7077.")]
Dial = Annotated[
    str | None,
    typer.Option(
        "--consistency",
        metavar="DIAL",
        help="strong: tell what is final (the default); middle: tell at once, and correct; with how long to remember: "
        "'middle/1 h'; or how long to block and to remember: '5 s/1 h'.",
    ),
]

OnError = Annotated[
    str | None,
    typer.Option(
        metavar="WHAT", help="If an expression fails on an event: reject the event (the default), or fail the run."
    ),
]
Sheds = Annotated[
    str | None,
    typer.Option(metavar="HOW", help="Give something up: auto, 'auto/0.8' (of the cores), or by hand '60%'."),
]


def turned(queries: Queries, dial: str | Consistency | None) -> Queries:
    """The queries at the point that the command line, or `settings` of the query file, names."""
    if dial is None:
        return queries
    return queries.at(Consistency.parse(dial) if isinstance(dial, str) else dial)


def at_dial(script: Script, dial: str | None) -> Script:
    """The script with its query at the point that the command line, or else its settings, name: to look at it."""
    chosen = script.settings.get("consistency") if dial is None else dial
    if isinstance(chosen, str):
        chosen = Consistency.parse(chosen)
    return script if chosen is None else replace(script, query=script.query.at(chosen))


def writable(file: str, option: str) -> Path:
    """A file that an option names to be written, refused before the work is done for it."""
    path = Path(file)
    folder = path.parent
    if not file or path.is_dir():
        raise UserError(f"{option} '{file}' is a folder" if file else f"{option}: no file", hint="name a file to write")
    if not folder.is_dir():
        raise UserError(f"{option} '{file}': there is no folder '{folder}'", hint="create it first, or name another")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise UserError(f"{option} '{file}' may not be written", hint="name a file that you may write")
    return path
