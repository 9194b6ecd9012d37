"""Generations: on storage without locks, a writer that was replaced can spoil nothing, whenever it wakes up.

    generations/000007-3f9c0a1b.json        run 7 begins to take over: from now on run 6 is fenced out
    generations/000007-3f9c0a1b/…           the records of run 7: meta.json, epochs/, snapshots/, control/, …
    generations/000007-3f9c0a1b/taken.json  it has all it needs from run 6: from now on these records count

A lease cannot stop a writer that slept while it ran out; and few stores refuse to overwrite. So no two writers ever
write to the same record: each has a folder of its own, numbered upwards. Who takes over says so first, then copies what
there is, then says that it has. Who commits looks afterwards whether somebody has said so, and publishes only if not:
then whoever comes later finds the commit. What it writes after that is in a folder that does not count any more.
Files of state, staged results and tables have names that nobody else uses, so these need no folder of their own.

On local disks the operating system's lock does all this, and there are no generations, unless a checkpoint that has
some was copied there.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import uuid
from dataclasses import dataclass

from penstock.checkpoint.fault import reach
from penstock.checkpoint.storage import Storage, seal, unseal
from penstock.errors import CheckpointError

FOLDER = "generations"
_INTENT = re.compile(r"((\d{6,})-[0-9a-f]{8})\.json")
#: What a generation takes over. Manifests first: all that one refers to was written before it.
_TAKEN = ("epochs", "snapshots", "control", "delivered", "published")


class TakenOverError(CheckpointError):
    """Another run has the checkpoint now."""


@dataclass(frozen=True)
class Generation:
    """The turn of one writer: `records` is where it, and nobody else, writes them."""

    root: Storage
    name: str
    records: Storage

    @property
    def number(self) -> int:
        return int(self.name.partition("-")[0])

    def check(self) -> None:
        """Raise if somebody has taken over."""
        later = [name for number, name in _begun(self.root) if number > self.number]
        if later:
            raise TakenOverError(
                f"checkpoint '{self.root.url}' was taken over by another run{_who(self.root, later[-1])}: this one was "
                "asleep or cut off for longer than its lease",
                hint="let the other run go on, or stop it and start again: nothing is lost or counted twice",
            )


def take(root: Storage) -> Generation | None:
    """Begin a generation; None where the operating system's lock is enough."""
    if not _has_any(root) and root.local:
        return None
    number = max((n for n, _ in _begun(root)), default=0) + 1
    name = f"{number:06d}-{uuid.uuid4().hex[:8]}"
    root.write(f"{FOLDER}/{name}.json", seal({"host": socket.gethostname(), "process": os.getpid()}))
    if any(n >= number and other != name for n, other in _begun(root)):
        root.delete(f"{FOLDER}/{name}.json")
        raise CheckpointError(
            f"checkpoint '{root.url}' is in use by another run that started at the same moment",
            hint="stop that run first, or give this one a checkpoint of its own",
        )
    mine = Generation(root, name, root.within(f"{FOLDER}/{name}"))
    before = records_of(root)
    _copy(before, mine.records)
    mine.records.write("taken.json", seal({"from": before.url}))
    mine.check()
    _forget(root, before)
    return mine


def records_of(root: Storage) -> Storage:
    """Where the records of a checkpoint are: the newest generation that has taken over, or the checkpoint itself."""
    if not _has_any(root):
        return root
    for _, name in reversed(_begun(root)):
        records = root.within(f"{FOLDER}/{name}")
        with contextlib.suppress(CheckpointError, FileNotFoundError):
            unseal(records.read("taken.json"), "taken.json")
            return records
    return root


def _has_any(root: Storage) -> bool:
    return os.path.isdir(root.path(FOLDER)) if root.local else True


def _begun(root: Storage) -> list[tuple[int, str]]:
    found = (m for n in root.names(FOLDER) if (m := _INTENT.fullmatch(n)))
    return sorted((int(m[2]), m[1]) for m in found)


def _copy(before: Storage, mine: Storage) -> None:
    names = [f"{folder}/{name}" for folder in _TAKEN for name in before.names(folder)]
    # Commits first, then plans.
    names.sort(key=lambda n: (not n.startswith("epochs/"), not n.endswith(".commit.json")))
    for name in ("meta.json", *names):
        with contextlib.suppress(FileNotFoundError):  # Retired meanwhile, or never there.
            mine.write(name, before.read(name))
    reach("copied")


def _forget(root: Storage, before: Storage) -> None:
    """Delete generations that are older than the one before. Who still writes there writes for nobody."""
    kept = before.base.rpartition("/")[2]
    begun = [name for _, name in _begun(root)]
    for name in begun[: begun.index(kept)] if kept in begun else ():
        for file in root.tree(f"{FOLDER}/{name}"):
            root.delete(file)
        root.delete(f"{FOLDER}/{name}.json")


def _who(root: Storage, name: str) -> str:
    try:
        said = unseal(root.read(f"{FOLDER}/{name}.json"), name)
        return f" (process {said['process']} on {said['host']})"
    except (CheckpointError, OSError, KeyError):
        return ""
