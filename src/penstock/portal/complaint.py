"""How the command line complains: one line that says what is wrong, one that says what to do, exit code 2."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import typer

from penstock.engine.terminal import say
from penstock.errors import PenstockError
from penstock_command import INTERRUPTED

P = ParamSpec("P")
T = TypeVar("T")

#: Exit code of a mistake of the user, the same as for options that do not exist.
MISTAKE = 2


def lines(error: PenstockError) -> list[str]:
    """What is printed for an error: never more than two lines, however long the text.

    >>> from penstock.errors import UserError
    >>> lines(UserError("no column\\n'sped'", hint="did you mean 'speed'?"))
    ["error: no column 'sped'", "hint: did you mean 'speed'?"]
    """
    said = [f"error: {_one_line(error.message)}"]
    if error.hint:
        said.append(f"hint: {_one_line(error.hint)}")
    return said


def _one_line(text: str) -> str:
    return " ".join(text.split())


def complaining(command: Callable[P, T]) -> Callable[P, T]:
    """A command whose user mistakes become two lines and an exit code; anything else keeps its stack trace."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except PenstockError as error:
            say(*lines(error), file=sys.stderr)
            raise typer.Exit(MISTAKE) from None
        except KeyboardInterrupt:
            say("stopped", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None

    return run
