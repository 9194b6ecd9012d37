"""Where files are: local paths and URLs behind one interface, and the fingerprint that shows a file is unchanged."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.fs as fs

from penstock.errors import SourceError, UserError


@dataclass(frozen=True)
class Located:
    """A path inside a file system, and how to write the address of another path in the same one."""

    filesystem: Any
    path: str
    prefix: str = ""
    suffix: str = ""

    @property
    def local(self) -> bool:
        return isinstance(self.filesystem, fs.LocalFileSystem)

    def address(self, path: str) -> str:
        return f"{self.prefix}{path}{self.suffix}"


@dataclass(frozen=True)
class Fingerprint:
    """What is compared to tell whether a file is still the one that was planned."""

    size: int
    mtime_ns: int


def locate(address: str) -> Located:
    """The file system of a path or URL.

    >>> locate("data/traffic").local
    True
    """
    if "://" not in address:
        return Located(_local(), os.path.abspath(os.path.expanduser(address)))
    try:
        filesystem, path = fs.FileSystem.from_uri(address)
    except (pa.ArrowException, ValueError, OSError) as error:
        raise UserError(
            f"cannot open '{address}': {first_line(error)}", hint="use a local path or a URL such as s3://bucket/folder"
        ) from None
    if isinstance(filesystem, fs.LocalFileSystem):
        return Located(filesystem, path)
    # Connection options in the query part (region, endpoint) hold for every file of the folder.
    plain, mark, options = address.partition("?")
    return Located(filesystem, path.rstrip("/"), plain.rstrip("/").removesuffix(path.rstrip("/")), mark + options)


@lru_cache(maxsize=1)
def _local() -> Any:
    return fs.LocalFileSystem()


def fingerprint(address: str) -> Fingerprint:
    """Size and modification time of a file that was planned; an error if it is gone."""
    place = locate(address)
    if place.local:
        try:
            found = os.stat(place.path)
        except OSError:
            raise _gone(address) from None
        return Fingerprint(found.st_size, found.st_mtime_ns)
    info = place.filesystem.get_file_info(place.path)
    if info.type != fs.FileType.File:
        raise _gone(address)
    return Fingerprint(int(info.size), int(info.mtime_ns or 0))


def _gone(address: str) -> SourceError:
    return SourceError(
        f"file '{address}' is gone, but it was planned to be read",
        hint="put it back: files may be removed only after the epoch that read them",
    )


def first_line(error: BaseException) -> str:
    """The first line of an error's text, for messages of one line."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
