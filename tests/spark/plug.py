"""Hooks that pull the plug at chosen steps of the commit protocol, and the bookkeeping around them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.checkpoint.fault import Crash, hooked

Hook = Callable[[str], None]


def tear(home: Path, point: str) -> None:
    """Leave what a crash in the middle of a write leaves.

    At a flush: half of the temporary file. At a rename: half of the record itself, as on a storage that cannot rename.
    """
    step, _, name = point.partition(" ")
    for partial in home.rglob(f".{Path(name).name}.*.partial"):
        data = partial.read_bytes()
        if step == "flush":
            partial.write_bytes(data[: len(data) // 2])
        elif step == "rename" and "epochs/" in name:
            (partial.parent / Path(name).name).write_bytes(data[: len(data) // 2])


class EveryStepOnce:
    """Crash at every step the first time it is reached, in the first epoch and in some later one."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.seen: set[str] = set()

    def __call__(self, point: str) -> None:
        epoch = re.search(r"\d{6}", point)
        kind = re.sub(r"\d{6}", "first" if epoch and int(epoch[0]) == 1 else "later", point)
        if kind not in self.seen:
            self.seen.add(kind)
            tear(self.home, point)
            raise Crash(point)


class Seeded:
    """Crash a given number of times, each time after a random number of steps."""

    def __init__(self, home: Path, seed: int, crashes: int, within: int = 60) -> None:
        self.home = home
        self.random = random.Random(seed)
        self.left = crashes
        self.within = within
        self.steps = self._next()
        self.points: list[str] = []

    def _next(self) -> int:
        return self.random.randint(1, self.within)

    def __call__(self, point: str) -> None:
        self.steps -= 1
        if self.steps == 0 and self.left:
            self.left -= 1
            self.steps = self._next()
            self.points.append(point)
            if self.random.random() < 0.5:
                tear(self.home, point)
            raise Crash(point)


def run_to_the_end(start: Callable[[], Any], hook: Hook, limit: int = 500) -> int:
    """Start again after every crash until a run gets through; how many crashes there were."""
    for crashes in range(limit):
        try:
            with hooked(hook):
                start().wait()
            return crashes
        except Crash:
            continue
    raise AssertionError(f"not through after {limit} crashes")


def crash_at(point: str, nth: int) -> Hook:
    """Crash when a step is reached for the nth time."""
    left = nth

    def hook(reached: str) -> None:
        nonlocal left
        if reached == point:
            left -= 1
            if left == 0:
                raise Crash(point)

    return hook
