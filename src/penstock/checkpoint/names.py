"""Names of files: which ones are Penstock's own, and which ones a record may hold.

A checkpoint or the folder of a sink may hold files of other programs. Only what is named as Penstock names files is
ever swept, and only what lies in the folder that it belongs to is ever taken from a record: records are read from
disks that others may write to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from penstock.checkpoint.storage import Storage
from penstock.errors import CheckpointError

STAGING = "_penstock/staging"
#: Results under their final names: `part-`, the epoch, the task, and of many results of one task the slice.
PART = re.compile(r"part-(\d{6,})-[a-z]\d{3,}(?:-\d{4,})?\.(?:parquet|json|arrow)")
#: Parts of a table, whose names stay: what is there is replaced.
_TABLE_PART = re.compile(r"part-\d{4,}(?:-\d+)?\.(?:parquet|json)")
#: The folders of results that are laid out by value: `day=2026-01-01/`, one for each column.
_BY_VALUE = re.compile(r"(?:[^/=]+=[^/]+/)*")
#: Records of epochs, and snapshots of positions.
RECORD = re.compile(r"(\d{6,})\.(plan|commit)\.json")
SNAPSHOT = re.compile(r"(\d{6,})\.json")

_STAGED = r"\d{6,}-[a-z]\d{3,}(?:-\d{4,})?-[0-9a-f]{12}\.(?:parquet|json|arrow)"
_OURS = re.compile(
    rf"state/[^/]+/\d+/\d{{6,}}--?\d+-[a-z-]*[0-9a-f]{{12}}\.arrow"
    rf"|(?:results|rehearsal|{STAGING})/{_STAGED}"
    r"|tables/[^/]+/[0-9a-f]{24}\.arrow"
)
# What a crash leaves of a record that was being written.
_PARTIAL = re.compile(
    r"(?:(?:epochs|snapshots|control|delivered|published|tables)/(?:[^/]+/)*)?\.[^/]+\.\d+\.partial"
    r"|partials/[^/]+\.parquet\.partial"
)
#: The folders of a checkpoint that are walked, read by name or swept.
FOLDERS = ("control", "delivered", "epochs", "published", "rehearsal", "results", "snapshots", "state", "tables")

#: Where a file sink keeps its checkpoint, if the user names no other place.
BESIDE_SINK = "_penstock/checkpoint"


class ForeignNameError(CheckpointError):
    """A record that is whole, and names what it cannot have been written with."""


def is_ours(name: str) -> bool:
    """Whether a file is named as Penstock names runs, staged results and snapshots of tables.

    >>> is_ours("state/aggregate-1/0/000042-0-3f9c0a1b2c3d.arrow"), is_ours("state/new york.csv")
    (True, False)
    """
    return _OURS.fullmatch(name) is not None


def is_partial(name: str) -> bool:
    """Whether a file is what a crash left of a record."""
    return _PARTIAL.fullmatch(name) is not None


def check_names(names: Iterable[str], folders: tuple[str, ...], record: str) -> None:
    """Refuse a record that names anything outside the folders it may speak of.

    >>> check_names(["state/a/0/x.arrow"], ("state/",), "epochs/000001.commit.json")
    >>> check_names(["state/../../x"], ("state/",), "epochs/000001.commit.json")
    Traceback (most recent call last):
    penstock.checkpoint.names.ForeignNameError: epochs/000001.commit.json names ...
    """
    for name in names:
        plain = isinstance(name, str) and not set(name) & {"\\", "\0"}
        if not plain or not name.startswith(folders) or not {"", ".", ".."}.isdisjoint(name.split("/")):
            raise ForeignNameError(
                f"{record} names {name!r}, which is not in {' or '.join(folders)}",
                hint="it was changed by somebody: restore the checkpoint from a backup; nothing has been changed",
            )


def check_plain(names: Iterable[str], start: str, record: str) -> None:
    """Refuse a record that names anything but a file directly in a folder."""
    for name in names:
        check_names([name], (start,), record)
        if "/" in name:
            raise ForeignNameError(
                f"{record} names {name!r}, which is not a plain file name",
                hint="it was changed by somebody: restore the checkpoint from a backup; nothing has been changed",
            )


def is_result(name: str) -> bool:
    """Whether a file is named as Penstock names results, in folders by value or not.

    >>> is_result("part-000042-b1000.parquet"), is_result("day=7/part-0007.parquet"), is_result("a/part-1.json")
    (True, True, False)
    """
    folders = _BY_VALUE.match(name)
    return is_table_part(name) or (folders is not None and PART.fullmatch(name, folders.end()) is not None)


def is_table_part(name: str) -> bool:
    """Whether it is named as a part of a table that is kept as it is now.

    >>> is_table_part("day=7/part-0007-1.parquet"), is_table_part("part-000042-b1000.parquet")
    (True, False)
    """
    folders = _BY_VALUE.match(name)
    return folders is not None and _TABLE_PART.fullmatch(name, folders.end()) is not None


def check_results(names: Iterable[str], record: str) -> None:
    """Refuse a record that names anything but files of results in a folder, or in folders by value below it.

    >>> check_results(["part-1", "day=2026-01-01/part-1"], "epochs/000001.commit.json")
    >>> check_results(["day=7/../../part-1"], "epochs/000001.commit.json")
    Traceback (most recent call last):
    penstock.checkpoint.names.ForeignNameError: epochs/000001.commit.json names ...
    """
    for name in names:
        check_names([name], ("",), record)
        folders = _BY_VALUE.match(name)
        check_plain([name[folders.end() if folders else 0 :]], "part-", record)


def refuse_links_to(storage: Storage, name: str) -> None:
    """Refuse to go to a file through a folder that is a symbolic link: what it leads to is not ours to change."""
    if not storage.local:
        return
    for end in (k for k, letter in enumerate(name) if letter == "/"):
        if os.path.islink(path := storage.path(name[:end])):
            raise CheckpointError(
                f"'{path}' is a symbolic link, and links to folders of results by value are not followed",
                hint="put the folder itself in its place; the sink as a whole may be reached by a link",
            )


def refuse_links(storage: Storage, folders: Iterable[str] = FOLDERS) -> None:
    """Refuse a folder of ours that is a symbolic link, or has one in it: what it leads to is not ours to delete."""
    if not storage.local:
        return
    for folder in folders:
        for path in _links(storage.path(folder)):
            raise CheckpointError(
                f"'{path}' is a symbolic link, and links in a checkpoint or in a sink's _penstock are not followed",
                hint="put the folder itself in its place; the checkpoint or sink as a whole may be reached by a link",
            )


def _links(path: str) -> Iterator[str]:
    if os.path.islink(path):
        yield path
        return
    for folder, inner, files in os.walk(path):
        yield from (p for name in (*inner, *files) if os.path.islink(p := f"{folder}/{name}"))
