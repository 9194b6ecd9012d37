"""A driver without a JVM in a process that can be killed; its tasks that stay are processes too.

It starts within milliseconds, since all that it needs has been imported where it is forked, so many can be killed.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from processes import CONTEXT, ProcessContext, ProcessRDD
from scenario import SCENARIOS, TOLD

from penstock.checkpoint.fault import hooked
from penstock.portal.testing import LocalRDD, LocalSession


def forked_driver(name: str, source: Path, home: Path, point: str = "", nth: int = 0) -> tuple[BaseProcess, Connection]:
    """A run of a scenario, and a line on which it says that it begins, and which ways its epochs took.

    The line ends when the driver and all of its tasks have. At the protocol step that starts with `point`, the nth
    time, it kills itself.
    """
    line, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=_drive, args=(theirs, name, source, home, point, nth))
    process.start()
    theirs.close()
    return process, line


def _drive(line: Connection, name: str, source: Path, home: Path, point: str, nth: int) -> None:
    session = LocalSession()
    session.sparkContext = ForkingContext(_Nest())
    line.send("begun")
    with hooked(suicide(point, nth)):
        run = {**SCENARIOS, **TOLD}[name].start(source, home, session).wait()
    line.send([p.path for p in run.history])


def suicide(point: str, nth: int) -> Callable[[str], None]:
    """A hook that kills this process when a step that starts with `point` is reached for the nth time; 0: never."""
    left = nth

    def hook(reached: str) -> None:
        nonlocal left
        if left and reached.startswith(point):
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    return hook


def ended(line: Connection) -> None:
    """Wait until nobody is left of a driver: a task that outlives it may leave a file behind until the next start."""
    with suppress(EOFError):
        while True:
            line.recv()


def kill_at_steps(name: str, source: Path, home: Path, points: Iterable[tuple[str, int]]) -> None:
    """Drivers that kill themselves, each of which goes on from where the one before was killed."""
    lines = []
    for point, nth in points:
        process, line = forked_driver(name, source, home, point, nth)
        process.join()
        assert process.exitcode == -signal.SIGKILL, point
        lines.append(line)
    for line in lines:
        ended(line)


class _Nest:
    """Where tasks are forked: a process from before there were threads, files and locks, which must not come along."""

    def __init__(self) -> None:
        self.line, theirs = CONTEXT.Pipe()
        self.lock = threading.Lock()
        if os.fork() == 0:
            self.line.close()
            with suppress(EOFError, OSError):
                while True:
                    _hatch(theirs)
            os._exit(0)
        theirs.close()


def _hatch(line: Connection) -> None:
    """Tasks of one job: if one fails, all do."""
    task, count = line.recv()
    pids = []
    for index in range(count):
        if (pid := os.fork()) == 0:
            line.close()
            with suppress(BaseException):
                list(task(index, iter(())))
                os._exit(0)
            os._exit(1)
        pids.append(pid)
    line.send(list(pids))
    failed = False
    while pids:
        pid, status = os.wait()
        pids.remove(pid)
        if status and not failed:
            failed = True
            for other in pids:
                os.kill(other, signal.SIGKILL)
    line.send(failed)


class ForkingContext(ProcessContext):
    def __init__(self, nest: _Nest) -> None:
        super().__init__(2)
        self.nest = nest
        self.pids: list[int] = []

    def parallelize(self, records: Iterable[Any], partitions: int | None = None) -> LocalRDD:
        if isinstance(records, range):
            return ForkingRDD(self, partitions or 1, lambda _: ())
        return super().parallelize(records, partitions)

    def cancelJobGroup(self, _: str) -> None:
        for pid in self.pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class ForkingRDD(ProcessRDD):
    context: ForkingContext

    def count(self) -> int:
        nest = self.context.nest
        with nest.lock:
            nest.line.send((self.task, self.partitions))
            self.context.pids = nest.line.recv()
            if nest.line.recv():
                raise RuntimeError("a task was lost")
        return 0
