"""How much one task may hold of what it makes, and what is said when that is too little.

`memory` bounds DuckDB by itself. Results of a join lie outside of it, in Arrow, and one key can have more pairs than
any machine has room for. So they are made and passed on slice by slice; only what cannot be let go before the epoch
ends, rows on their way to a further operator, is counted and must fit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import duckdb
import pyarrow as pa

from penstock.errors import PenstockError

#: What running out of memory looks like, wherever it happens.
FULL = (MemoryError, duckdb.OutOfMemoryException)

_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


class RoomError(PenstockError):
    """More is to be held at once than there is memory for."""


def in_bytes(memory: str) -> int:
    """An amount of memory as DuckDB reads it.

    >>> in_bytes("64MB"), in_bytes("2 GiB"), in_bytes("1.5gb")
    (64000000, 2147483648, 1500000000)
    """
    found = re.fullmatch(r"\s*([\d.]+)\s*([kmgt]?)(i?)b?(?:ytes)?\s*", memory.lower())
    if found is None:
        return 1 << 62  # A limit in other words, such as 80%, is for DuckDB to read.
    return int(float(found[1]) * (1024 if found[3] else 1000) ** _UNITS[found[2]])


def held(tables: Iterable[Iterable[pa.Table]]) -> int:
    """How many bytes tables take."""
    return sum(t.nbytes for some in tables for t in some)


def no_room(operator_id: str, memory: str, rows: int, heaviest: tuple[str, int] | None) -> RoomError:
    """The error for an operator that has made more than can be held.

    >>> print(no_room("join-1", "64MB", 5_000_000, ("k 7", 400_000_000)))
    join-1: k 7 alone makes 400,000,000 pairs in one epoch, more than memory='64MB' holds. Hint: take in less at \
once (max_rows), give it more (memory='4GB'), or make keys rarer: a further key, a window of time, a where before it
    """
    if heaviest is not None:
        what = f"{heaviest[0]} alone makes {heaviest[1]:,} pairs in one epoch"
    else:
        what = f"{rows:,} rows in one bucket and epoch"
    return RoomError(
        f"{operator_id}: {what}, more than memory='{memory}' holds",
        hint="take in less at once (max_rows), give it more (memory='4GB'), or make keys rarer: a further key, a "
        "window of time, a where before it",
    )
