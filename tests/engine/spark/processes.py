"""A context whose tasks that stay are processes, without a JVM: they can be killed and stopped for real."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Iterable
from multiprocessing.process import BaseProcess
from typing import Any

from penstock.engine.tasks import exchange
from penstock.portal.testing import LocalContext, LocalRDD, LocalSession

# Not forked from here: threads of Arrow and DuckDB do not come along.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["penstock", "penstock.engine.epoch.driver", "penstock.portal.testing"])


class ProcessRDD(LocalRDD):
    """What counts is that it is counted: each partition in a process, all at once, and if one fails, all do."""

    def __init__(self, context: ProcessContext, partitions: int, compute: Callable[[int], Iterable[Any]]) -> None:
        super().__init__(partitions, compute)
        self.context = context
        self.task: Callable[[int, Iterable[Any]], Iterable[Any]] | None = None

    def mapPartitionsWithIndex(self, task: Any) -> LocalRDD:
        found = ProcessRDD(self.context, self.partitions, lambda i: task(i, iter(())))
        found.task = task
        return found

    def count(self) -> int:
        given = [(self.task, i, self.context.large) for i in range(self.partitions)]
        started = [CONTEXT.Process(target=_run, args=args, daemon=True) for args in given]
        for process in started:
            process.start()
        self.context.running = started
        self.context.started += 1
        failed = threading.Event()
        waits = [threading.Thread(target=self._watch, args=(p, started, failed), daemon=True) for p in started]
        for thread in waits:
            thread.start()
        for thread in waits:
            thread.join()
        if failed.is_set():
            raise RuntimeError("a task was lost")
        return 0

    def _watch(self, process: BaseProcess, all_of_them: list[BaseProcess], failed: threading.Event) -> None:
        process.join()
        if process.exitcode:
            failed.set()
            for other in all_of_them:
                other.kill()


def _run(task: Callable[[int, Iterable[Any]], Iterable[Any]], index: int, large: int) -> None:
    exchange.LARGE = large
    list(task(index, iter(())))


class ProcessContext(LocalContext):
    """As Spark's in local mode; `waits` says that some other job has no slot."""

    def __init__(self, parallelism: int, master: str = "local[8]") -> None:
        super().__init__(parallelism)
        self.master = master
        self.running: list[BaseProcess] = []
        self.started = 0
        self.waits = False
        self.conf: dict[str, str] = {}
        #: From how many bytes on a parcel is a file.
        self.large = exchange.LARGE

    def parallelize(self, records: Iterable[Any], partitions: int | None = None) -> LocalRDD:
        if isinstance(records, range):  # What tasks that stay are started with.
            return ProcessRDD(self, partitions or 1, lambda _: ())
        return super().parallelize(records, partitions)

    def setJobGroup(self, *_: Any, **__: Any) -> None: ...

    def cancelJobGroup(self, _: str) -> None:
        for process in self.running:
            process.kill()

    def getConf(self) -> dict[str, str]:
        return self.conf

    def statusTracker(self) -> Any:
        return self

    def getActiveStageIds(self) -> list[int]:
        return [0, 1] if self.waits else [1]

    def getJobIdsForGroup(self, _: str) -> list[int]:
        return [7]

    def getJobInfo(self, _: int) -> Any:
        return type("Job", (), {"stageIds": [1]})  # The stage of the tasks that stay, which looks as if it waited.

    def getStageInfo(self, _: int) -> Any:
        return type("Stage", (), {"numTasks": 2, "numActiveTasks": 0, "numCompletedTasks": 0, "numFailedTasks": 0})


class ProcessSession(LocalSession):
    """A session with such a context."""

    def __init__(self, parallelism: int = 2, master: str = "local[8]") -> None:
        super().__init__(parallelism)
        self.sparkContext = ProcessContext(parallelism, master)
