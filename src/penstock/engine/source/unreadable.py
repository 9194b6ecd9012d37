"""Files that cannot be read: waited for, failed at, or passed over with a dead letter, but never overtaken in silence.

Events behind such a file would make its own events late, so reading stops in front of it: in its source partition, or
in the whole source where a promise speaks of the whole. Where no promise depends on order, the others are read.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.engine.source.folder import FoundFile
from penstock.engine.source.letter import DEAD_LETTER_SCHEMA, UNREADABLE
from penstock.engine.source.split import Split
from penstock.errors import UnreadableError
from penstock.plan.promise import OnUnreadable

#: In place of the size of a file that was passed over: whatever becomes of it, it is not read.
PASSED_OVER = -1
# A Parquet file that somebody writes grows in large steps: for so many seconds without a change it may get its footer.
_PATIENCE = 60.0
# After so many seconds a file that a task could not read is tried again: a disk or a network may be well by then.
RETRY = 60.0


@dataclass(frozen=True)
class Trouble:
    """A file as it was when a task could not read it, and why. Once it has changed, or later on, it is tried again."""

    path: str
    size: int
    mtime_ns: int
    why: str
    since: float = field(default_factory=time.monotonic, compare=False)

    def is_about(self, path: str, size: int, mtime_ns: int) -> bool:
        return (self.path, self.size, self.mtime_ns) == (path, size, mtime_ns)


@dataclass
class Unreadable:
    """What one source does at files that cannot be read."""

    stream: str
    policy: OnUnreadable
    settle: float | None
    troubles: list[Trouble] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    #: By address, when files that cannot be read were written: mended, they still come where they were.
    places: dict[str, int] = field(default_factory=dict)
    _seen: dict[str, tuple[int, int, float]] = field(default_factory=dict)
    _told: set[tuple[str, int, int]] = field(default_factory=set)

    def trouble(self, file: FoundFile) -> str | None:
        """What a task has found wrong with a file, as it is now."""
        recent = time.monotonic() - RETRY
        mine = (t for t in self.troubles if t.is_about(file.address, file.size, file.mtime_ns))
        return next((t.why for t in mine if self.policy == "skip" or t.since > recent), None)

    def is_quiet(self, file: FoundFile, seconds: float) -> bool:
        """Whether a file has not changed for some time."""
        now = time.monotonic()
        seen = self._seen.get(file.name)
        if seen is None or seen[:2] != (file.size, file.mtime_ns):
            seen = self._seen[file.name] = (file.size, file.mtime_ns, now)
        return now - seen[2] >= seconds or time.time() - file.mtime_ns / 1e9 >= seconds

    def in_place(self, files: Sequence[FoundFile]) -> Sequence[FoundFile]:
        """Files by the time when they were written, or first seen unreadable."""
        if not self.places:
            return files
        return sorted(files, key=lambda c: (self.places.get(c.address, c.mtime_ns), c.name))

    def forget(self, name: str, address: str = "") -> None:
        """Nothing more is to be known of a file."""
        self._seen.pop(name, None)
        self.places.pop(address, None)

    def passes_over(self, file: FoundFile, why: str, bounded: bool) -> bool:
        """Whether to pass over a file; if not, it is to be waited for. An error where that is not to be borne."""
        patience = _PATIENCE if self.settle is None else self.settle
        over = self.trouble(file) is not None or self.is_quiet(file, patience)
        if over or bounded:
            self.places.setdefault(file.address, file.mtime_ns)
        if self.policy == "fail" and (over or bounded):
            raise self.error(file.address, why, file)
        if over and not (bounded and self.policy == "wait"):
            done = "passed over, see the dead letters" if self.policy == "skip" else "what comes behind it waits for it"
            self._warn(file, f"cannot be read ({why}): {done}")
        return over and self.policy == "skip"

    def vanished(self, name: str) -> None:
        """A file that was there is gone, and nothing of it was read."""
        self.forget(name)
        self.warnings.append(f"stream '{self.stream}': file '{name}' vanished before it was read")

    def error(self, address: str, why: str, file: FoundFile | None = None) -> UnreadableError:
        size, mtime_ns = (file.size, file.mtime_ns) if file is not None else (0, 0)
        return UnreadableError(self.stream, address, size, mtime_ns, why)

    def _warn(self, file: FoundFile, what: str) -> None:
        key = (file.name, file.size, file.mtime_ns)
        if key not in self._told:
            self._told.add(key)
            self.warnings.append(f"stream '{self.stream}': file '{file.address}' {what}")


def passed_over_letters(splits: Iterable[Split]) -> pa.Table:
    """A dead letter for each file that was passed over; `row` is where reading stopped, if that is known."""
    rows: list[dict[str, Any]] = [
        {
            "stream": s.stream,
            "reason": UNREADABLE,
            "detail": f"{s.unreadable}; to have it read after all, repair it and give it another name",
            "file": s.path,
            "row": s.start if s.format == "parquet" else None,
        }
        for s in splits
        if s.unreadable
    ]
    return pa.Table.from_pylist(rows, schema=DEAD_LETTER_SCHEMA)
