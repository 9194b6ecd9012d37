"""A disk that loses power: what nobody has waited for may be gone, old, torn, or there after all.

It is a real folder, of which every change is noted. When the power goes, the folder is made what a disk might hold
then. Contents of a file that nobody has waited for: all, a part, zeros, or nothing. Names that came, went or changed in
a folder that nobody has waited for: each either happened or did not, by chance, in no particular order; only a rename
happens as a whole. Nothing that the process does afterwards counts.
"""

from __future__ import annotations

import os
import random
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from penstock.checkpoint.disk import Disk
from penstock.checkpoint.fault import Crash

#: What to forget to wait for: ("sync" or "sync_folder", path below the disk's folder).
Forgets = Callable[[str, str], bool]


@dataclass(eq=False)
class Node:
    """A file, whatever its name: waited for or not, and its contents once it has no name any more."""

    path: str
    synced: bool = False
    contents: bytes | None = None

    def read(self) -> bytes:
        return Path(self.path).read_bytes() if self.contents is None else self.contents


@dataclass(eq=False)
class Op:
    """Something that happened to a name: it came (`node`; None: a folder), or went (`gone`), or both."""

    folder: str
    name: str | None
    node: Node | None = None
    gone: str | None = None


@dataclass
class Remains:
    """A disk after the power went."""

    folders: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)


class Fragile(Disk):
    """Loses power after so many steps; a step is a change, a wait, or a point of the protocol that is reached."""

    def __init__(self, root: Path, rng: random.Random, steps: int, forgets: Forgets = lambda how, path: False) -> None:
        self.root, self.rng, self.steps, self.forgets = str(root), rng, steps, forgets
        self.remains: Remains | None = None
        self.point = ""
        self._lock = threading.RLock()
        self.names: dict[str, Node | None] = {self.root: None}
        for path in sorted(root.rglob("*")):
            self.names[str(path)] = None if path.is_dir() else Node(str(path), synced=True)
        #: The names that are on the disk, and what has happened since.
        self.kept = dict(self.names)
        self.pending: list[Op] = []

    def step(self, point: str) -> None:
        """Called at every step, and by the points of the protocol."""
        with self._lock:
            if self.remains is None:
                self.steps -= 1
                if self.steps > 0:
                    return
                self.point, self.remains = point, self._cut()
            raise Crash(self.point)

    # --- what the engine does -----------------------------------------------------------------------------------

    def create(self, path: str) -> BinaryIO:
        self.step(f"create {path}")
        file = super().create(path)
        if self._mine(path):
            with self._lock:
                node = self.names.get(path)
                if node is None:
                    node = Node(path)
                    self._came(path, node)
                node.synced = False
        return file

    def make(self, path: str) -> None:
        self.step(f"make {path}")
        super().make(path)
        if self._mine(path):
            with self._lock:
                self._came(path, None)

    def replace(self, path: str, target: str) -> None:
        self.step(f"replace {path} {target}")
        with self._lock:
            node = self.names.pop(path, None) or Node(path)
            self._bury(target)
            super().replace(path, target)
            node.path = target
            self.names[target] = node
            self.pending.append(Op(os.path.dirname(target), target, node, gone=path))
        self.step(f"replaced {path} {target}")

    def delete(self, path: str) -> None:
        self.step(f"delete {path}")
        with self._lock:
            self._bury(path)
            super().delete(path)
            self.names.pop(path, None)
            self.pending.append(Op(os.path.dirname(path), None, gone=path))

    def sync(self, path: str) -> None:
        self.step(f"sync {path}")
        with self._lock:
            node = self.names.get(path)
            if node is not None and not self.forgets("sync", self._short(path)):
                node.synced = True
        self.step(f"synced {path}")

    def sync_folder(self, path: str) -> None:
        self.step(f"sync_folder {path}")
        with self._lock:
            if self._mine(path) and not self.forgets("sync_folder", self._short(path)):
                for op in [o for o in self.pending if o.folder == path]:
                    _apply(self.kept, op)
                    self.pending.remove(op)
        self.step(f"synced_folder {path}")

    # --- the notes ----------------------------------------------------------------------------------------------

    def _mine(self, path: str) -> bool:
        return path == self.root or path.startswith(f"{self.root}/")

    def _short(self, path: str) -> str:
        return path[len(self.root) + 1 :]

    def _came(self, path: str, node: Node | None) -> None:
        above = os.path.dirname(path)
        if above not in self.names:  # Made by somebody who does not come this way.
            self._came(above, None)
        self.names[path] = node
        self.pending.append(Op(above, path, node))

    def _bury(self, path: str) -> None:
        node = self.names.get(path)
        if node is not None and os.path.exists(path):
            node.contents = node.read()

    # --- the cut ------------------------------------------------------------------------------------------------

    def _cut(self) -> Remains:
        left = dict(self.kept)
        share = self.rng.choice([0.0, 0.2, 0.5, 0.8, 1.0])
        for op in self.pending:
            if self.rng.random() < share:
                _apply(left, op)
        remains = Remains()
        for path, node in sorted(left.items()):
            above = os.path.dirname(path)
            if path != self.root and above != self.root and above not in remains.folders:
                continue  # Its folder is not there.
            if node is None:
                remains.folders.append(path)
            else:
                remains.files[path] = node.read() if node.synced else self._torn(node.read())
        return remains

    def _torn(self, data: bytes) -> bytes:
        part = self.rng.randrange(len(data) + 1)
        return self.rng.choice([data, b"", data[:part], data[:part] + bytes(len(data) - part), bytes(len(data))])

    def leave(self) -> None:
        """Make the folder what the cut has left."""
        assert self.remains is not None
        shutil.rmtree(self.root)
        os.mkdir(self.root)
        for folder in self.remains.folders:
            os.makedirs(folder, exist_ok=True)
        for path, data in self.remains.files.items():
            Path(path).write_bytes(data)


def _apply(names: dict[str, Node | None], op: Op) -> None:
    if op.gone is not None:
        names.pop(op.gone, None)
    if op.name is not None:
        names[op.name] = op.node
