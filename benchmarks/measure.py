"""CPU seconds and memory of a process and everything it started, read from /proc."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def _stat(pid: int) -> list[str] | None:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None


def tree(root: int) -> list[int]:
    """The process and its descendants that are alive."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (stat := _stat(int(entry))):
            children.setdefault(int(stat[1]), []).append(int(entry))
    found, queue = [], [root]
    while queue:
        pid = queue.pop()
        found.append(pid)
        queue.extend(children.get(pid, ()))
    return found


def cpu_seconds(root: int) -> float:
    """User and system time of the tree, children that have ended included."""
    total = 0
    for pid in tree(root):
        if stat := _stat(pid):
            total += sum(int(x) for x in stat[11:15])
    return total / _TICK


def cpu_by_kind(root: int) -> dict[str, float]:
    """The same, by what the processes are: the driver, its JVM, and the workers that this has started."""
    found = {"jvm": 0.0, "driver": 0.0, "workers": 0.0}
    for pid in tree(root):
        if stat := _stat(pid):
            java = Path(f"/proc/{pid}/comm").read_text().strip() == "java"
            kind = "jvm" if java else "driver" if pid == root else "workers"
            # Children that have ended: only those of Spark's daemon did any work.
            found[kind] += sum(int(x) for x in stat[11 : 15 if kind == "workers" else 13]) / _TICK
    return found


def resident_bytes(root: int) -> int:
    """Resident memory of the tree. Pages that workers share count more than once; exact shares would stall the JVM."""
    return sum(int(stat[21]) * _PAGE for pid in tree(root) if (stat := _stat(pid)))


def held(root: int) -> dict[str, int]:
    """What the tree holds: memory, threads, open files."""
    pids = tree(root)
    threads = sum(int(stat[17]) for pid in pids if (stat := _stat(pid)))
    files = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            files += len(os.listdir(f"/proc/{pid}/fd"))
    return {"memory": resident_bytes(root), "threads": threads, "open files": files}


class Peak:
    """The greatest memory of a process tree while a block runs."""

    def __init__(self, root: int, period: float = 0.5) -> None:
        self.root, self.period, self.bytes = root, period, 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._stop.wait(self.period):
            self.bytes = max(self.bytes, resident_bytes(self.root))

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.bytes = max(self.bytes, resident_bytes(self.root))
