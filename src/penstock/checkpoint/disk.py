"""The local disk, as far as it matters what survives power loss.

What a program writes is in memory until somebody waits for the disk: the rows of a file until `sync`, the name of a
file, a rename or a removal until `sync_folder` of the folder it happened in. Everything the engine changes on a local
disk goes through here, so that tests can put a disk underneath that forgets what nobody has waited for.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import BinaryIO

#: Large enough that a record, or a page of a result, is one call of the system.
_BUFFER = 1 << 18


class Disk:
    """The real one."""

    def create(self, path: str) -> BinaryIO:
        """A new file, or an old one emptied, to write to."""
        return open(path, "wb", _BUFFER)

    def make(self, path: str) -> None:
        os.mkdir(path)

    def replace(self, path: str, target: str) -> None:
        os.replace(path, target)

    def delete(self, path: str) -> None:
        os.unlink(path)

    def sync(self, path: str) -> None:
        """Wait until the contents of a file are on the disk, whoever wrote them in this machine."""
        _wait_for(path, os.O_RDONLY)

    def sync_folder(self, path: str) -> None:
        """Wait until what happened in a folder is on the disk: names that came, went or changed."""
        _wait_for(path, os.O_RDONLY | os.O_DIRECTORY)

    def sync_beside(self, waits: list[Callable[[], None]]) -> None:
        """Wait for several things at once: the disk writes them together, and so in the time of one."""
        first, *others = waits
        beside = [_waiters().submit(wait) for wait in others]
        try:
            first()
        finally:
            for other in beside:
                other.result()


def _wait_for(path: str, how: int) -> None:
    descriptor = os.open(path, how)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_disk = Disk()
_pools: dict[int, ThreadPoolExecutor] = {}


def _waiters() -> ThreadPoolExecutor:
    # Threads do not survive a fork.
    found = _pools.get(os.getpid())
    return found or _pools.setdefault(os.getpid(), ThreadPoolExecutor(4, thread_name_prefix="penstock-disk"))


#: Folders whose own names are known to be on the disk, with their inodes: one made anew is another one.
_settled: dict[str, int] = {}


def disk() -> Disk:
    """The disk underneath."""
    return _disk


@contextmanager
def on_disk(other: Disk) -> Iterator[None]:
    """Put another disk underneath, as after a start of the machine: nothing is known to be on it."""
    global _disk
    before, _disk = _disk, other
    _settled.clear()
    try:
        yield
    finally:
        _disk = before
        _settled.clear()


def make_folder(path: str) -> None:
    """Make a folder and those above it, if they are not there."""
    try:
        _disk.make(path)
    except FileNotFoundError:
        make_folder(os.path.dirname(path))
        with contextlib.suppress(FileExistsError):  # Another task was faster.
            _disk.make(path)
    except FileExistsError:
        if not os.path.isdir(path):
            raise


def sync_all(paths: Iterable[str]) -> None:
    """Wait for files and for their names: once for each file, once for each of their folders."""
    files = list(paths)
    folders = list(dict.fromkeys(os.path.dirname(path) for path in files))
    if files:
        _disk.sync_beside([*(partial(_disk.sync, f) for f in files), *(partial(_disk.sync_folder, f) for f in folders)])
    for folder in folders:
        settle_folder(folder)


def sync_names(folder: str) -> None:
    """Wait for what happened in a folder; the first time also for the folder's own name, and so on upwards."""
    _disk.sync_folder(folder)
    settle_folder(folder)


def settle_folder(folder: str) -> None:
    """Wait until a folder's own name is on the disk, and those of the folders above it."""
    # Nobody can tell whether a folder that is there will be there after power loss: another program may just have made
    # it. So each is waited for once, up to the root: that costs little, and nothing from then on.
    inode = os.stat(folder).st_ino
    if _settled.get(folder) == inode:
        return
    above = os.path.dirname(folder)
    if above != folder:
        with contextlib.suppress(PermissionError):  # Somebody else's: it was not made just now.
            _disk.sync_folder(above)
        settle_folder(above)
    _settled[folder] = inode
