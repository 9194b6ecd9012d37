"""What is measured of one epoch: plain numbers by the names of operators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Backlog:
    """What is there of a source and not read yet: rows as far as they are known, bytes, and how old the oldest is.

    >>> str(Backlog(1000, 4_000_000, 2.5)), str(Backlog())
    ('1,000 rows, 3.8 MiB, 2.5 s old', 'nothing')
    """

    rows: int | None = 0
    bytes: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        if not self.bytes and not self.rows:
            return "nothing"
        rows = "rows not known" if self.rows is None else f"{self.rows:,} rows"
        return f"{rows}, {self.bytes / 2**20:.1f} MiB, {self.seconds:.1f} s old"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class EpochFigures:
    """One epoch in numbers. Rows and CPU seconds are by operator, backlogs by source."""

    rows_in: Mapping[str, int] = field(default_factory=dict)
    """Rows that came to an operator: to a source from its files, to one with state as they travel."""
    rows_out: Mapping[str, int] = field(default_factory=dict)
    cpu: Mapping[str, float] = field(default_factory=dict)
    """CPU seconds by the operator at which the statement ends that took them."""
    seconds: float = 0.0
    """From plan to commit."""
    since: float = 0.0
    """Seconds since the plan of the epoch before; 0: not known."""
    every: float = 0.0
    """Seconds between epochs, as asked for; 0: one follows the other."""
    cores: int = 1
    backlog: Mapping[str, Backlog] = field(default_factory=dict)
    spared: Mapping[str, int] = field(default_factory=dict)
    """By source, rows that were there and were passed over unread."""
