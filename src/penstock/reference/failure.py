"""Expressions that fail on a value, one event at a time: the event is dropped where it happens, and that is all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb

from penstock.errors import FailingError

#: What an expression raises that has no answer to a value.
FAILURES = (FailingError, duckdb.DataError, duckdb.InvalidInputException)

#: Takes note of a failure: what it was about, and why.
Note = Callable[[dict[str, Any], str], None]


def ignore(row: dict[str, Any], why: str) -> None:
    """Takes no note."""
