"""A bound, and how large rows are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from penstock.contract.rates import Rates, Untold
from penstock.errors import counted
from penstock.pattern.duration import format_duration

#: Bytes of a text: what is taken for its characters, and the offset beside them.
TEXT = 24 + 4
#: Bytes of the hash, or number of arrival, that is stored with a row.
HASH = 8


@dataclass(frozen=True)
class Bound:
    """At most so much. `rows` are those that must be kept; `stored` counts also what is kept until it is tidied up.

    `bytes` is for `rows`; files may hold as much again of rows that are done with. `delay` is in ticks of event time:
    how long after the event, or the end of the window, that it is about a result appears.
    """

    rows: int | None = 0
    stored: int | None = 0
    bytes: int | None = 0
    delay: int | None = 0
    timed: bool = True
    lacks: tuple[str, ...] = ()
    why: str = ""

    @property
    def late(self) -> str | None:
        """The delay as text.

        >>> Bound(delay=5_000_000).late, Bound(delay=7, timed=False).late
        ('5 s', '7 ticks')
        """
        if self.delay is None:
            return None
        return format_duration(self.delay) if self.timed else counted(self.delay, "tick")

    def __str__(self) -> str:
        """
        >>> print(Bound(7000, 7000, 280_000, 5_000_000, why="500 keys × 14 windows"))
        at most 7,000 rows (500 keys × 14 windows), 280 kB; results within 5 s
        """
        if self.rows is None:
            # Where one thing cannot be told, to declare the others would not help.
            if untold := [x for x in self.lacks if isinstance(x, Untold)]:
                return f"rows unknown: {' and '.join(untold)}"
            return f"rows unknown: declare {' and '.join(self.lacks)}" if self.lacks else "no bound"
        why = f" ({self.why})" if self.why else ""
        size = "" if self.bytes is None else f", {size_text(self.bytes)}"
        late = f"; results within {self.late}" if self.delay else ""
        return f"at most {counted(self.rows, 'row')}{why}{size}{late}"


def said(pace: Rates, ticks: int) -> str:
    """`1,000/s for 1 min 10 s`, the reason for a number of rows."""
    assert pace.rate is not None
    ticks = max(0, ticks - pace.after)
    if pace.clock == "us":
        return f"{pace.rate.rate * 1_000_000:,.6g}/s for {format_duration(_rounded(ticks))}"
    return f"{pace.rate.rate:,.6g} a tick for {ticks:,} ticks"


def _rounded(ticks: int) -> int:
    """Without microseconds that nobody cares about."""
    grain = 1_000_000 if ticks >= 10_000_000 else 1_000
    return -(-ticks // grain) * grain


def widths(schema: Iterable[pa.Field], extra: int = 0) -> int | None:
    """Bytes of a row; texts are taken to have 24 bytes. None if an attribute may hold any number of values.

    >>> widths(pa.schema([("a", pa.int32()), ("b", pa.string()), ("c", pa.bool_())]), extra=8)
    41
    """
    total = extra
    for column in schema:
        t = column.type
        if pa.types.is_string(t) or pa.types.is_binary(t) or pa.types.is_large_string(t):
            total += TEXT
        elif pa.types.is_nested(t):
            return None
        else:
            total += max(1, t.bit_width // 8)
    return total


def size_text(size: int) -> str:
    """
    >>> size_text(900), size_text(280_000), size_text(3_000_000_000)
    ('900 bytes', '280 kB', '3 GB')
    """
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size} bytes"
