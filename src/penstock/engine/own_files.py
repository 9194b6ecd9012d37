"""Where a run writes must not be where it reads: results that are read as input feed themselves for ever.

Symbolic links are resolved, those inside the source's folder too, and only files that would really be read count: what
lies below a name that starts with `_` or `.`, or that no glob matches, is none of the source's business.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.checkpoint.storage import Storage
from penstock.engine.source.folder import Folder
from penstock.engine.source.place import Located
from penstock.errors import UserError
from penstock.operators.lookup.operator import tables_of
from penstock.operators.source.operator import Source
from penstock.plan.plan import Plan
from penstock.plan.promise import Files


@dataclass(frozen=True)
class WrittenFolder:
    """A folder that a run writes to, as its user calls it, and names of files as they will appear in it."""

    what: str
    storage: Storage
    names: tuple[str, ...]


def refuse_reading_own_files(plan: Plan, written: Sequence[WrittenFolder]) -> None:
    """Refuse a query that would read what it writes."""
    for reader, folder in _read(plan):
        for place in written:
            if _would_read(folder, place):
                what = {"sink": "its results", "dead_letters": "its dead letters"}.get(place.what, "its own records")
                raise UserError(
                    f"{place.what} '{place.storage.url}' lies in '{folder.files.path}', which {reader} reads: "
                    f"it would read {what} as input",
                    hint="name a folder beside it, or a subfolder whose name starts with '_', which is not read",
                )


def _read(plan: Plan) -> Iterator[tuple[str, Folder]]:
    for node in plan.sources:
        source = node.operator
        if isinstance(source, Source) and isinstance(source.reader, Files):
            yield f"stream '{source.name}'", Folder(source.name, source.reader)
    for name, table in tables_of([n.operator for n in plan]).items():
        if isinstance(table.reader, Files):
            yield f"table '{name}'", Folder(name, table.reader)


def _would_read(folder: Folder, place: WrittenFolder) -> bool:
    root = folder.root
    if root.local != place.storage.local or not (root.local or root.filesystem.equals(place.storage.filesystem)):
        return False
    if root.local and not os.path.isdir(root.path):
        return False  # One file, or nothing at all, which is told elsewhere.
    for prefix, path in _ways_in(root):
        for base in {place.storage.base, _real(root, place.storage.base)}:
            below = _relative(base, path)
            if below is not None and any(folder.reads("/".join(filter(None, (prefix, below, n)))) for n in place.names):
                return True
    return False


def _ways_in(root: Located) -> Iterator[tuple[str, str]]:
    """Folders that are listed with this one: the name below it, and where that really is."""
    yield "", root.path
    if not root.local:
        return
    seen = {_real(root, root.path)}
    yield "", os.path.realpath(root.path)
    waiting = [("", root.path)]
    while waiting:
        prefix, path = waiting.pop()
        for at, inner, _ in os.walk(path):
            for name in inner:
                if os.path.islink(link := f"{at}/{name}") and (real := os.path.realpath(link)) not in seen:
                    seen.add(real)
                    below = "/".join(filter(None, (prefix, os.path.relpath(link, path))))
                    yield below, real
                    waiting.append((below, real))


def _real(root: Located, path: str) -> str:
    return os.path.realpath(path) if root.local else path


def _relative(path: str, folder: str) -> str | None:
    """The name of a path below a folder; empty for the folder itself.

    >>> _relative("/data/out", "/data"), _relative("/data", "/data"), _relative("/data2", "/data")
    ('out', '', None)
    """
    if path == folder:
        return ""
    start = folder.rstrip("/") + "/"
    return path.removeprefix(start) if path.startswith(start) else None
