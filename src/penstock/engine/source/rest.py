"""The files of a folder that are still to be read, without listing it anew as long as it stays as it was.

Listing costs the more the more files there are, and most of them have long been read. A folder whose time of change is
that of the last listing has got no file and lost none. Files that are still to be read are looked at again, each when
its turn comes: only that those already read are what they were is found out later, by the next listing.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace

from penstock.engine.source.folder import FoundFile, Listing
from penstock.engine.source.place import locate


class Rest:
    """What was still to be read of a listing, as long as that holds."""

    def __init__(self) -> None:
        self._listing: Listing | None = None
        self._files: Sequence[FoundFile] = ()

    def keep(self, listing: Listing, files: Sequence[FoundFile]) -> None:
        self._listing, self._files = listing, files

    def forget(self) -> None:
        self._listing = None

    @property
    def known(self) -> Sequence[FoundFile]:
        """Those that were to be read when last somebody asked; some may be done by now."""
        return self._files

    def left(self, done: Container[str]) -> Iterator[FoundFile] | None:
        """Those that are not done; None if the folder has to be listed."""
        if self._listing is None or not self._listing.holds():
            self._listing = None
            return None
        self._files = [c for c in self._files if c.name not in done]
        return map(_seen_again, self._files)


def _seen_again(file: FoundFile) -> FoundFile:
    try:
        found = os.stat(locate(file.address).path)
    except OSError:
        return file  # Whoever opens it finds out what is wrong.
    if (found.st_size, found.st_mtime_ns) == (file.size, file.mtime_ns):
        return file
    return replace(file, size=found.st_size, mtime_ns=found.st_mtime_ns)
