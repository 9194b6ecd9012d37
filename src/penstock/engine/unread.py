"""Files that tasks could not read: which they are, and whether the run goes on without them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.engine.source.listing import SourceReader
from penstock.engine.source.split import Split
from penstock.engine.source.unreadable import Trouble
from penstock.errors import UnreadableError


class Unread:
    """What tasks have found in the way. An epoch that was planned over such a file is planned anew without it."""

    def __init__(self, bounded: bool) -> None:
        self.bounded = bounded
        self._troubles: list[tuple[str, Trouble]] = []
        self._suspects: list[tuple[str, Trouble]] = []

    def take(self, error: UnreadableError, readers: Mapping[str, SourceReader]) -> bool:
        """Whether the run goes on in spite of an error: the file is waited for, or passed over."""
        told = Trouble(error.path, error.size, error.mtime_ns, error.why)
        found = (error.stream, told)
        mine = [r.unreadable for r in readers.values() if r.unreadable and r.unreadable.stream == error.stream]
        if not mine or any(u.policy == "fail" or (self.bounded and u.policy == "wait") for u in mine):
            return False
        if any(u.policy == "skip" for u in mine):
            if found in self._troubles:
                return False
            if found not in self._suspects:
                # What is passed over is lost, so it is tried twice: a disk or a network may have had a bad moment.
                self._suspects.append(found)
                return True
        self._troubles = [f for f in self._troubles if f != found] + [found]
        return True

    def tell(self, readers: Mapping[str, SourceReader]) -> None:
        """Let fresh readers know what stands in their way."""
        for reader in readers.values():
            if reader.unreadable is not None:
                own = [t for stream, t in self._troubles if stream == reader.unreadable.stream]
                reader.unreadable.troubles = own

    def stands_in(self, splits: Iterable[Split]) -> bool:
        """Whether a plan wants a file read that could not be."""
        return any(
            trouble.is_about(s.path, s.size, s.mtime_ns) and not s.unreadable and stream == s.stream
            for s in splits
            for stream, trouble in self._troubles
        )


def check_unread(readers: Mapping[str, SourceReader]) -> None:
    """A run that ends by itself does not end without a file that is there."""
    for reader in readers.values():
        if reader.unreadable is not None and reader.waiting:
            raise reader.unreadable.error(*reader.waiting[0])
