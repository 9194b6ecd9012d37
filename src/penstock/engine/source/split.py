"""A split: the unit of reading, named exactly enough to be read again after a crash."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Split:
    """A contiguous part of one file (or of a generator), in arrival order within its source partition.

    `start` and `stop` are row numbers for Parquet and the generator, byte offsets for text. `low` and `high` are the
    exact least and greatest tick of the attribute whose disorder is promised (else the first time attribute); they
    are None where that is not known without reading. `last` says that nothing of the file is left behind it. What is
    `spared` is not read: nobody wants a row of it, and `high` says all that its rows would have told. `unreadable` says
    why what is left of the file is passed over, with a dead letter in its place. `mark` tells its content from others.
    `shed` says that it is spared for want of time.

    >>> s = Split("traffic", "", 0, "a.parquet", "parquet", 0, 10, 10, 400, 400, 1, (0,), None, 7, last=True)
    >>> Split.from_json(s.to_json()) == s
    True
    """

    stream: str
    partition: str
    ordinal: int
    path: str
    format: str
    start: int
    stop: int
    rows: int | None
    bytes: int
    size: int
    mtime_ns: int
    row_groups: tuple[int, ...] = ()
    low: int | None = None
    high: int | None = None
    last: bool = False
    spared: bool = False
    unreadable: str = ""
    mark: str = ""
    shed: bool = False

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "row_groups": list(self.row_groups)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Split:
        return cls(**{**stored, "row_groups": tuple(stored["row_groups"])})

    def __str__(self) -> str:
        what = "rows" if self.format in ("parquet", "generated") else "bytes"
        return f"{self.path or self.stream} {what} {self.start:,}–{self.stop:,}"
