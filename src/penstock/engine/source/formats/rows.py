"""Rows as the reader of a format hands them on, before events, punctuations and malformed rows are told apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.engine.source.formats.fit import Mask
from penstock.kernels.ticks import Ticks


@dataclass(frozen=True)
class RowsRead:
    """Declared attributes in declared types, plus what did not fit.

    `bad` marks malformed rows, `reasons` says why by position, `raw` gives their text. `numbers` are the rows' numbers
    in the file, None if they count up from `first`. `outcast` are rows that are in no table at all: number, reason,
    text. `punctuation` and the companion columns in `beside` say which rows are no events, and what they say instead.
    `unheard` tells that the file has a column for punctuation, but nobody has asked for it.
    """

    table: pa.Table
    first: int
    punctuation: pa.ChunkedArray | None = None
    bad: Mask | None = None
    reasons: Mapping[int, str] = field(default_factory=dict)
    raw: Callable[[Sequence[int]], list[str]] | None = None
    numbers: Ticks | None = None
    outcast: tuple[tuple[int, str, str], ...] = ()
    beside: Mapping[str, pa.ChunkedArray] = field(default_factory=dict)
    unheard: bool = False
