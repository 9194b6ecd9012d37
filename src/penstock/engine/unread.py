"""Files that tasks could not read: which they are, and whether the run goes on without them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.checkpoint.storage import Storage, seal, unseal
from penstock.engine.source.listing import SourceReader
from penstock.engine.source.split import Split
from penstock.engine.source.unreadable import Trouble
from penstock.errors import CheckpointError, UnreadableError

PLACES = "unread.json"


class Unread:
    """What tasks have found in the way. An epoch that was planned over such a file is planned anew without it."""

    def __init__(self, storage: Storage, bounded: bool, warnings: list[str]) -> None:
        self.storage, self.bounded, self.warnings = storage, bounded, warnings
        self._places = self._stored()
        self._written = {stream: dict(files) for stream, files in self._places.items()}
        self._troubles: list[tuple[str, Trouble]] = []
        self._suspects: list[tuple[str, Trouble]] = []

    def take(self, error: UnreadableError, readers: Mapping[str, SourceReader]) -> bool:
        """Whether the run goes on in spite of an error: the file is waited for, or passed over."""
        if not error.size:
            return False  # From the planning of an epoch, which has asked for the policy already.
        told = Trouble(error.path, error.size, error.mtime_ns, error.why)
        found = (error.stream, told)
        mine = [r.unreadable for r in readers.values() if r.unreadable and r.unreadable.stream == error.stream]
        for each in mine:
            each.places.setdefault(error.path, error.mtime_ns)
        if not mine or any(u.policy == "fail" or (self.bounded and u.policy == "wait") for u in mine):
            self.save()
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
                reader.unreadable.places = self._places.setdefault(reader.unreadable.stream, {})

    def hear(self, readers: Mapping[str, SourceReader]) -> list[str]:
        """What readers have to say after planning; where files belong that they cannot read is written down."""
        found: list[str] = []
        for reader in readers.values():
            if reader.unreadable is not None:
                found += reader.unreadable.warnings
                reader.unreadable.warnings.clear()
        self.save()
        return found

    def save(self) -> None:
        """Write down where files that cannot be read belong: who mends them may do so when the run is over."""
        places = {stream: dict(files) for stream, files in self._places.items() if files}
        if places != self._written:
            self.storage.write(PLACES, seal(places))
            self._written = places

    def _stored(self) -> dict[str, dict[str, int]]:
        try:
            return {s: dict(places) for s, places in unseal(self.storage.read(PLACES), PLACES).items()}
        except FileNotFoundError:
            return {}
        except (CheckpointError, TypeError, ValueError) as error:
            told = error.message if isinstance(error, CheckpointError) else f"{PLACES} does not say where files belong"
            self.warnings.append(f"{told}: files that could not be read and were mended since may be read too late")
            return {}

    def stands_in(self, splits: Iterable[Split]) -> bool:
        """Whether a plan wants a file read that could not be, now or in an earlier run.

        A file that was mended from a backup may have the size and the time it had, and other lines in other places.
        """
        splits = list(splits)
        return any(s.path in self._places.get(s.stream, ()) and not s.unreadable for s in splits) or any(
            trouble.is_about(s.path, s.size, s.mtime_ns) and not s.unreadable and stream == s.stream
            for s in splits
            for stream, trouble in self._troubles
        )


def check_unread(readers: Mapping[str, SourceReader]) -> None:
    """A run that ends by itself does not end without a file that is there."""
    for reader in readers.values():
        if reader.unreadable is not None and reader.waiting:
            raise reader.unreadable.error(*reader.waiting[0])
