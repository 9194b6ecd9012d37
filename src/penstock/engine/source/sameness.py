"""Whether a file is still the one that was read.

Size and time of modification tell as a rule. But a time changes without the content: by `touch`, by a copy from a
backup, by a sync. So a mark is written down with them, a checksum over parts of the file that a rewrite would change:
of Parquet its beginning and its footer, of text its beginning, its end and places in between.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from penstock.engine.source.folder import FoundFile
from penstock.engine.source.place import fingerprint, locate
from penstock.engine.source.split import Split
from penstock.errors import SourceError

_SAMPLE, _SAMPLES, _TAIL, _LARGEST_FOOTER = 1 << 12, 16, 1 << 16, 1 << 22


@dataclass(frozen=True)
class Look:
    """A file as it was when it was read."""

    size: int
    mtime_ns: int
    mark: str = ""

    def to_json(self) -> list[Any]:
        return [self.size, self.mtime_ns, *([self.mark] if self.mark else [])]

    def is_same(self, address: str, size: int, mtime_ns: int, format: str) -> bool:
        """Whether a file that is there now has the content it had."""
        if self.size != size or self.mtime_ns == mtime_ns:
            return self.size == size
        return bool(self.mark) and mark_of(address, size, format) == self.mark


@dataclass
class Sameness:
    """What one source does at files that are not what they were when they were read."""

    stream: str
    format: str
    lenient: bool = False
    _marks: dict[str, Look] = field(default_factory=dict)

    def mark(self, file: FoundFile) -> str:
        """The mark of a file that is about to be read; it is looked at once, however many splits it has."""
        known = self._marks.get(file.name)
        if known is None or (known.size, known.mtime_ns) != (file.size, file.mtime_ns):
            known = Look(file.size, file.mtime_ns, mark_of(file.address, file.size, self.format))
            self._marks[file.name] = known
        return known.mark

    def forget(self, name: str) -> None:
        self._marks.pop(name, None)

    def news(self, file: FoundFile, before: Look, warnings: list[str]) -> tuple[Look, bool] | None:
        """What is to be noted about a file that was read, and whether its content is another; None: nothing."""
        if (file.size, file.mtime_ns) == (before.size, before.mtime_ns):
            return None
        if before.is_same(file.address, file.size, file.mtime_ns, self.format):
            return Look(file.size, file.mtime_ns, before.mark), False
        what = f"stream '{self.stream}': file '{file.address}' changed after it was read"
        if not self.lenient:
            raise SourceError(
                what,
                hint="write new events to a new file; put the old file back, or go on with what was read of it and "
                'nothing of what it holds now: start(…, changed_files="ignore") or --changed-files ignore',
            )
        warnings.append(f"{what}: what it holds now is not read")
        return Look(file.size, file.mtime_ns, mark_of(file.address, file.size, self.format)), True


def mark_of(address: str, size: int, format: str) -> str:
    """The mark of a file; empty if it cannot be read now, or is shorter than it was."""
    place = locate(address)
    digest = hashlib.blake2b(digest_size=8)
    try:
        with place.filesystem.open_input_file(place.path) as handle:
            for start, length in _parts(handle, size, format == "parquet", place.local):
                handle.seek(start)
                digest.update(handle.read(length))
    except (OSError, ValueError):
        return ""
    return digest.hexdigest()


def _parts(handle: Any, size: int, parquet: bool, local: bool) -> Iterator[tuple[int, int]]:
    if size <= 2 * _TAIL:
        yield 0, size
        return
    tail = _TAIL
    if parquet:
        handle.seek(size - 8)
        tail = max(tail, min(_LARGEST_FOOTER, int.from_bytes(handle.read(4), "little") + 8))
    yield 0, _SAMPLE
    # A footer knows of every change before it. On remote storage each place costs a request.
    for index in range(1, _SAMPLES) if local and not parquet else ():
        yield size * index // _SAMPLES, _SAMPLE
    yield max(0, size - tail), tail


def is_unchanged(split: Split) -> bool:
    """Whether the file of a split is what it was when it was planned; an error if it is gone."""
    now = fingerprint(split.path)
    return Look(split.size, split.mtime_ns, split.mark).is_same(split.path, now.size, now.mtime_ns, split.format)


def changed_file(splits: list[Split]) -> str | None:
    """A file that is no longer what it was when it was split, or is gone."""
    for split in splits:
        if split.format != "generated":
            try:
                if not is_unchanged(split):
                    return split.path
            except SourceError:
                return split.path
    return None
