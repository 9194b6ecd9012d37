"""Which files of a folder may be read, in order of appearance, and to which source partition each belongs."""

from __future__ import annotations

import fnmatch
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import pyarrow.fs as fs

from penstock.engine.source.place import Located, first_line, locate
from penstock.errors import SourceError, UserError
from penstock.plan.promise import Files

# Other programs write under such names until the file is whole.
UNFINISHED = (".tmp", ".inprogress", ".crc", ".part")
COMPRESSED = (".gz", ".bz2", ".zst", ".xz", ".zip", ".lz4")
_WILDCARD = re.compile(r"[*?\[]")
#: Seconds after which a folder is listed again even if it looks unchanged: files in it may have been rewritten.
RELIST = 1.0
#: File systems note times by a clock that stands still for so many nanoseconds.
_GRAIN = 50_000_000


@dataclass(frozen=True)
class FoundFile:
    """A file that is there now, whole or not."""

    name: str
    address: str
    partition: str
    size: int
    mtime_ns: int


@dataclass(frozen=True)
class Listing:
    """The files that were there at a time, and when each folder had last been changed by then, as far as is known."""

    files: tuple[FoundFile, ...]
    folders: Mapping[str, int] = field(default_factory=dict)
    at: int = 0

    def holds(self) -> bool:
        """Whether no file has come or gone since. One look at each folder, instead of one at each file."""
        if not self.folders or not 0 <= time.time_ns() - self.at < RELIST * 1e9:
            return False
        try:
            # What happened in the same tick as the listing does not show.
            return all(os.stat(f).st_mtime_ns == t < self.at - _GRAIN for f, t in self.folders.items())
        except OSError:
            return False


class Listed(Protocol):
    """Where files come from: what may be read now, in order, and the short name of each."""

    def listing(self) -> Listing: ...
    def name_of(self, address: str) -> str: ...


@dataclass(frozen=True)
class Folder:
    """A folder, one file, or a glob, as declared by `Files`."""

    stream: str
    files: Files

    @cached_property
    def _where(self) -> tuple[Located, str | None]:
        """The folder to list, and the glob that names below it must match."""
        path = self.files.path
        wildcard = _WILDCARD.search(path.partition("?")[0] if "://" in path else path)
        if wildcard is None:
            return locate(path), None
        cut = path.rfind("/", 0, wildcard.start())
        return (locate(path[:cut] or "/"), path[cut + 1 :]) if cut >= 0 else (locate("."), path)

    @property
    def root(self) -> Located:
        """The folder (or file) that is listed."""
        return self._where[0]

    def reads(self, name: str) -> bool:
        """Whether a file of this name, relative to the root, would be read."""
        glob = self._where[1]
        return not _hidden(name) and (glob is None or _matches(name, glob))

    def name_of(self, address: str) -> str:
        """The short name of a file, from its address."""
        place, _ = self._where
        path = address.removesuffix(place.suffix).removeprefix(place.prefix)
        return path.removeprefix(place.path).lstrip("/") or path.rpartition("/")[2]

    def candidates(self) -> tuple[FoundFile, ...]:
        """The files that may be read now, in the order in which they are to be read."""
        return self.listing().files

    def listing(self) -> Listing:
        """The same, with what tells whether it still holds."""
        place, at = self.root, time.time_ns()
        infos, single = self._infos(place)
        folders = {}
        if place.local and not single:
            folders = {i.path: int(i.mtime_ns or 0) for i in infos if i.type == fs.FileType.Directory}
        found = []
        for info in infos:
            name = info.base_name if single else info.path[len(place.path) :].lstrip("/")
            if info.type != fs.FileType.File or not (single or self.reads(name)):
                continue
            self._refuse_compressed(name)
            parent = "" if single or self.files.partitions == "single" else name.rpartition("/")[0]
            found.append(FoundFile(name, place.address(info.path), parent, int(info.size), int(info.mtime_ns or 0)))
        return Listing(self._ordered(found), folders, at)

    def _infos(self, place: Located) -> tuple[list[fs.FileInfo], bool]:
        what = f"stream '{self.stream}': path '{self.files.path}'"
        try:
            info = place.filesystem.get_file_info(place.path)
            if info.type == fs.FileType.NotFound:
                raise UserError(f"{what} does not exist", hint="check the path, or create the folder first")
            if info.type == fs.FileType.File:
                return [info], True
            return [info, *place.filesystem.get_file_info(fs.FileSelector(place.path, recursive=True))], False
        except OSError as error:
            raise SourceError(f"{what} cannot be listed: {first_line(error)}", hint="check its permissions") from None

    def _refuse_compressed(self, name: str) -> None:
        if self.files.format != "parquet" and name.lower().endswith(COMPRESSED):
            raise SourceError(
                f"stream '{self.stream}': file '{name}' is compressed", hint="unpack it, or write Parquet instead"
            )

    def _ordered(self, found: list[FoundFile]) -> tuple[FoundFile, ...]:
        if self.files.order == "time":
            return tuple(sorted(found, key=lambda c: (c.mtime_ns, c.name)))
        found.sort(key=lambda c: c.name)
        # Partitions take turns: a stream is only as far as its slowest partition.
        turns: dict[str, int] = {}
        turn = {}
        for c in found:
            turn[c.name] = turns[c.partition] = turns.get(c.partition, -1) + 1
        return tuple(sorted(found, key=lambda c: (turn[c.name], c.name)))


def _hidden(name: str) -> bool:
    parts = name.split("/")
    return any(p.startswith(("_", ".")) for p in parts) or parts[-1].lower().endswith(UNFINISHED)


def _matches(name: str, glob: str) -> bool:
    """Glob per path component, so that `*` stays within one folder."""
    parts, patterns = name.split("/"), glob.split("/")
    return len(parts) == len(patterns) and all(map(fnmatch.fnmatchcase, parts, patterns))
